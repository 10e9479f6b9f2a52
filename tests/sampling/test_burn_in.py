"""What is kept of burn-in."""

import numpy as np
import pytest

from schuss.sampling.burn_in import BurnIn
from schuss.sampling.whereabouts import begin
from schuss.tuning.burn_in import LEAST, MOST
from schuss.tuning.metric import unit


def after(chunks, *, over=True, since=None):
    """Burn-in after so many chunks, each known by its number."""
    now = begin(np.random.default_rng(0), np.zeros((4, 3)))
    nothing = np.zeros(4)
    rows = tuple(range(chunks))
    since = chunks if since is None else since
    return BurnIn(now, nothing > 0, unit(3), nothing, nothing, nothing, rows, over, since)


def test_the_later_half_of_the_steady_chunks_is_kept():
    assert after(4).steady == (2, 3)
    assert after(9, since=4).steady == (7, 8)


@pytest.mark.parametrize(
    "burnt",
    [after(9, over=False), after(9, since=LEAST - 1), after(MOST)],
    ids=["not over", "began again", "never steady"],
)
def test_nothing_is_kept(burnt):
    assert burnt.steady == ()
