"""Figure 2 in small: the ride agrees with the closed form, and ESH with Boltzmann."""

import json

import numpy as np
import pytest

from schuss.paper.item import Settings
from schuss.paper.roller_coaster import ITEM, slowness
from schuss.plotting import style


@pytest.fixture(scope="module")
def result():
    done = []
    values = ITEM.compute(Settings(quick=True), done.append)
    assert len(done) == ITEM.parts(Settings(quick=True))
    return json.loads(json.dumps(values, allow_nan=False))


def test_esh_spends_its_time_as_boltzmann_does_and_newton_does_not(result):
    for row in result["rows"]:
        assert row["ride_to_exact"] < 0.01
        if row["q"] == 1:
            assert row["distance"] < 0.01
            assert row["high"] == pytest.approx(result["boltzmann_high"], abs=0.005)
        else:
            assert row["distance"] > 0.1


def test_slowness_against_the_speed_of_a_fall():
    """Newton: v² = v_top² + 2(E_top − E), by hand at the bottom of the track."""
    x = np.asarray([4.4736])
    fall = 3.705742 - 0.616118
    assert slowness(0.0, 0.5, x)[0] == pytest.approx((0.25 + 2 * fall) ** -0.5, rel=1e-5)
    assert slowness(1.0, 0.5, x)[0] == pytest.approx(0.5 * np.exp(fall), rel=1e-5)
    near = slowness(1 - 1e-7, 0.5, x)[0]
    assert near == pytest.approx(slowness(1.0, 0.5, x)[0], rel=1e-4)


def test_pictures_and_words(result, tmp_path):
    with style():
        names = ITEM.draw(result, tmp_path)
    for name in names:
        assert name.startswith(ITEM.name)
        assert 1000 < (tmp_path / name).stat().st_size < 200_000
    assert ITEM.tell(result)
