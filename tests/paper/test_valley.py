"""The valley figure in small."""

import json

import numpy as np
import pytest

from schuss.paper.item import Settings
from schuss.paper.valley import ITEM
from schuss.plotting import style


@pytest.fixture(scope="module")
def result():
    done = []
    values = ITEM.compute(Settings(quick=True), done.append)
    assert len(done) == ITEM.parts(Settings(quick=True))
    return json.loads(json.dumps(values, allow_nan=False))


def test_paths_begin_where_the_paper_has_them_and_have_the_length_they_should(result):
    for shown in result["places"].values():
        for row in shown["samplers"].values():
            first, second = (np.asarray(x) for x in row["x"])
            assert first[0] == pytest.approx([-4, 0.4])
            assert second[0] == pytest.approx([4, -0.4])
            assert len(first) == shown["gradients"] + 1


def test_esh_steps_have_one_length(result):
    for shown in result["places"].values():
        x = np.asarray(shown["samplers"]["ESH"]["x"])
        lengths = np.linalg.norm(np.diff(x, axis=1), axis=-1)
        np.testing.assert_allclose(lengths, 0.1, atol=2e-3)


def test_esh_wins_along_the_valley_and_langevin_into_the_well(result):
    along, into = (result["places"][name]["samplers"] for name in ("valley", "well"))
    assert along["ESH"]["arrived"] == 1
    assert along["ULA"]["arrived"] < 0.2
    assert into["ULA"]["distance"] < 0.5
    assert into["ESH"]["distance"] == pytest.approx(np.hypot(4, 0.4) - 0.5, abs=0.02)
    # Newton's leapfrog keeps to its energy, which the well turns into 808 at the start.
    assert max(into["Newton"]["energy"]) > 400


def test_pictures_and_words(result, tmp_path):
    with style():
        names = ITEM.draw(result, tmp_path)
    for name in names:
        assert name.startswith(ITEM.name)
        assert 1000 < (tmp_path / name).stat().st_size < 200_000
    assert ITEM.tell(result)
