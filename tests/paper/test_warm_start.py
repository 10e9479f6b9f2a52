"""Langevin first: equal gradients, and the curve without a start is ESH's."""

import numpy as np
import pytest

from schuss import targets
from schuss.diagnostics import reference
from schuss.paper import warm_start
from schuss.paper.item import Settings
from schuss.plotting import style

from .running import run


def test_without_langevin_the_first_state_is_the_start(monkeypatch):
    """All curves take the same gradients: the chains of ESH make the rest."""
    asked, real = [], warm_start.trajectory

    def watched(*args, **given):
        asked.append((type(given["sampler"]).__name__, given["steps"]))
        return real(*args, **given)

    monkeypatch.setattr(warm_start, "trajectory", watched)
    target = targets.mog()
    exact = reference(target.sample(np.random.default_rng(0), 200))
    curve = warm_start._curve(target, exact, 10, 20, 0)
    assert len(curve) == len(warm_start.CHECKED)
    assert asked == [("ULA", 10), ("ESH", 190)]


@pytest.mark.slow
def test_small(tmp_path):
    found = run(warm_start.ITEM, Settings(quick=True))
    with style():
        assert warm_start.ITEM.draw(found, tmp_path) == ["warm_start.png"]
    assert "nan" not in warm_start.ITEM.tell(found)
