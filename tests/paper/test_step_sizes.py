"""Step sizes in small, and where the printed update must overflow."""

import numpy as np
import pytest

from schuss.paper import step_sizes
from schuss.paper.item import Settings
from schuss.paper.kick_precision import public, textbook
from schuss.plotting import style
from schuss.targets import deep_well

from .running import run


def test_the_printed_update_overflows_beyond_cosh_of_89():
    """cosh δ is beyond single precision at δ = 90, so cosh δ − … is ∞ − ∞ or ∞/∞."""
    u, g = np.asarray([[0.6, 0.8]], np.float32), np.asarray([[1.0, 0.0]], np.float32)
    with np.errstate(all="ignore"):
        assert np.isfinite(textbook(u, g, np.float32(2 * 80))).all()
        assert not np.isfinite(textbook(u, g, np.float32(2 * 90))).all()
    assert np.isfinite(public(u, g, np.float32(2 * 90))).all()


def test_a_sample_by_time_sits_where_the_time_is_spent():
    """Two states, the second nine times as slow as the first: 4.5 standard errors of a mean."""
    x = np.broadcast_to(np.asarray([0.0, 1.0])[:, None, None], (2, 5000, 1))
    r = np.broadcast_to(np.asarray([0.0, 0.0])[:, None], (2, 5000))
    drawn = step_sizes.samples_by_time(x, r, np.asarray([0.3]), 0)
    assert drawn.mean() == pytest.approx(0.5, abs=4.5 * np.sqrt(1 / 12 / 5000))


def test_a_deep_well_breaks_the_printed_update_only():
    # |g| = 400 at the start: δ = 100 with a step of 1.
    assert step_sizes._printed(deep_well(), textbook, 1.0, 20, 0) == 1
    assert step_sizes._printed(deep_well(), textbook, 0.1, 20, 0) == 0


def test_small(tmp_path):
    found = run(step_sizes.ITEM, Settings(quick=True))
    (row,) = found["targets"].values()
    assert all(seen["frozen"] == seen["frozen single"] == 0 for seen in row["esh"].values())
    ends = [seen["step"] for seen in row["monitored"].values()]
    assert max(ends) < 3 * min(ends)
    with style():
        assert step_sizes.ITEM.draw(found, tmp_path) == ["step_sizes.png"]
    assert "nan" not in step_sizes.ITEM.tell(found)
