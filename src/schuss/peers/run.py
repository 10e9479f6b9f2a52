"""What a run of one chain gave, and how far its second moments are from the truth."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from schuss.targets.target import Truth

BAR = 0.01


class Run(NamedTuple):
    """Running estimates of E[x_i²] from the draws after tuning, and what they had cost."""

    gradients: np.ndarray  # (records,), cumulative, tuning included
    second_moment: np.ndarray  # (records, dim)
    tuning: int
    seconds: float  # of tuning and sampling, without compilation
    draws: np.ndarray | None = None  # (n, dim), equally many for each record, where they are kept


Peer = Callable[[int], Run]


def bias(run: Run, truth: Truth) -> np.ndarray:
    """b²max = max_i (estimate of E[x_i²] − truth)²/Var[x_i²] at each record; ∞ if not a number."""
    error = (run.second_moment - truth.second_moment) ** 2 / truth.second_variance
    return np.nan_to_num(error.max(axis=-1), nan=np.inf)


def bias_on_grid(runs: Sequence[Run], truth: Truth, gradients: np.ndarray) -> np.ndarray:
    """b²max (seeds, grid) of each run's last record within each count; ∞ before the first."""
    rows = []
    for run in runs:
        last = np.searchsorted(run.gradients, gradients, side="right")
        rows.append(np.concatenate([[np.inf], bias(run, truth)])[last])
    return np.stack(rows)


def crossing(gradients: np.ndarray, b2max_by_seed: np.ndarray, bar: float = BAR) -> float:
    """The first of the counts from which on the median over seeds stays below the bar, or ∞."""
    above = np.flatnonzero(~(np.median(b2max_by_seed, axis=0) < bar))
    first = above[-1] + 1 if above.size else 0
    return float(gradients[first]) if first < len(gradients) else np.inf
