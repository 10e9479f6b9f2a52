"""The integrators' figures in small."""

import builtins

import numpy as np
import pytest
from seeds import shifted

from schuss.paper import integrators, runge_kutta
from schuss.paper.integrators import ITEM, METHODS, one_per_chain
from schuss.paper.item import Settings
from schuss.plotting import style

from .running import run


@pytest.fixture(scope="module")
def result():
    return run(ITEM, Settings(quick=True))


def test_one_per_chain_is_uniform_in_time():
    """x = t² on an uneven clock with a step of no length, at 20 000 moments: five sigma."""
    time = np.asarray([0.0, 0.5, 0.5, 0.7, 2.0])[:, None] * np.ones((1, 20_000))
    found = one_per_chain(time[..., None] ** 2, time, np.random.default_rng(shifted(0)))[:, 0]
    t = np.linspace(0, 2, 200_001)
    straight = np.interp(t, time[:, 0], time[:, 0] ** 2)
    sigma = straight.std() / np.sqrt(20_000)
    assert found.mean() == pytest.approx(straight.mean(), abs=5 * sigma)
    assert np.mean(found < 0.25) == pytest.approx(0.25, abs=5 * np.sqrt(0.1875 / 20_000))
    assert one_per_chain(time[:1, :, None], time[:1], np.random.default_rng(shifted(0))).shape == (
        20_000,
        1,
    )


def test_the_scaled_leapfrog_is_ahead_on_the_mixture(result):
    rows = result["targets"]["MOG"]["rows"]
    assert set(rows) == set(METHODS)
    assert rows["leap"]["distance"] == pytest.approx(0.1 * result["gradients"][-1], rel=1e-3)
    for method in ("leap-orig", "rk", "rk-orig"):
        assert rows["leap"]["mmd"][-1] < rows[method]["mmd"][-1] / 2
        assert rows["leap"]["distance"] > 5 * rows[method]["distance"]
    assert rows["rk"]["drift"] < 1e-3 < rows["leap"]["drift"]


def test_all_begin_at_the_same_place(result):
    starts = [chain["x"][0] for chain in result["detail"]["chains"].values()]
    assert all(start == starts[0] for start in starts)
    firsts = {row["mmd"][0] for row in result["targets"]["MOG"]["rows"].values()}
    assert len(firsts) == 1


def test_the_adaptive_step_follows_the_speed(result):
    steps = result["detail"]["steps"]
    assert steps["correlation"] > 0.9
    assert steps["slope"] == pytest.approx(1, abs=0.2)


def test_without_diffrax_the_error_says_what_to_install(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "diffrax":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"schuss\[paper\]"):
        runge_kutta.load()


@pytest.mark.slow
def test_full_size_facts():
    """|ΔH| as independent code gave it, .035 and 3.9 (the start's seed matters); MMD² on MOG."""
    full = run(ITEM, Settings())
    assert full["conservation"]["0.01"]["mean"] == pytest.approx(0.035, rel=0.3)
    assert full["conservation"]["0.1"]["mean"] == pytest.approx(3.9, rel=0.2)
    at = dict(zip(full["gradients"], full["targets"]["MOG"]["rows"]["leap"]["mmd"], strict=True))
    assert at[0] == pytest.approx(0.1335, abs=0.015)
    assert abs(at[200]) < 5 * full["targets"]["MOG"]["null"]
    # Others are ahead of it on ICG, for a while, and never on the mixtures or on SCG.
    ahead = integrators._beaten(full)
    assert any(" on ICG at " in words for words in ahead)
    assert all(" on ICG at " in words or " on SCG-bias at " in words for words in ahead)


def test_pictures_and_words(result, tmp_path):
    with style():
        names = ITEM.draw(result, tmp_path)
    for name in names:
        assert name.startswith(ITEM.name)
        assert 1000 < (tmp_path / name).stat().st_size < 200_000
    assert ITEM.tell(result)
