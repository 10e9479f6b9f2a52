"""The funnel's moments."""

import json

import numpy as np
import pytest
from seeds import shifted

from schuss import targets
from schuss.paper import funnel
from schuss.paper.item import Settings
from schuss.plotting import style

from .running import few_samplers


@pytest.fixture(scope="module")
def quick():
    done = []
    with few_samplers():
        return funnel.compute(Settings(quick=True), done.append), done


def test_exact_samples_have_the_true_moments_within_their_errors():
    """5 standard errors of each of the moments and tails of y."""
    draw = targets.funnel().sample
    assert draw is not None
    n = 40_000
    seen = funnel._seen(draw(np.random.default_rng(shifted(0)), n))
    assert abs(seen["mean"]) < 5 * seen["mean_error"]
    assert abs(seen["variance"] - 9) < 5 * seen["variance_error"]
    # For a normal y the variance has the standard error 9 √(2/n).
    assert seen["variance_error"] == pytest.approx(9 * np.sqrt(2 / n), rel=0.05)
    for side in ("wide", "narrow"):
        assert abs(seen[side] - 0.158655) < 5 * np.sqrt(0.16 * 0.84 / n)


def test_quick_funnel_is_complete_drawn_and_told(quick, tmp_path):
    result, done = quick
    assert len(done) == funnel.parts(Settings(quick=True))
    assert set(result["samplers"]) == set(funnel.NAMES)
    json.dumps(result, allow_nan=False)
    with style():
        names = funnel.draw(result, tmp_path / "new")
    assert all((tmp_path / "new" / name).stat().st_size < 200_000 for name in names)
    assert "| ESH-leap |" in funnel.tell(result)


@pytest.mark.slow
def test_every_sampler_fails_as_the_paper_says():
    result = funnel.compute(Settings(), lambda done: None)
    assert funnel.right(result) == []
    assert abs(result["exact"]["variance"] - 9) < 4 * result["exact"]["variance_error"]
