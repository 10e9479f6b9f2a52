"""What one run of one sampler gave: estimates along the way, the verdict, the cost."""

from typing import NamedTuple

import numpy as np

from schuss.diagnostics.vectorised import fast_ess
from schuss.results.verdict import Verdict
from schuss.targets.target import Truth

RECORDS = 16
ENTRIES = 4_000_000
"""Numbers among the draws that are judged; longer runs are thinned."""


class Record(NamedTuple):
    """What was known after so many gradients, tuning included."""

    gradients: int
    second_moment: np.ndarray  # estimates of E[x_i²], (dim,)
    ess: float  # smallest of x and (x − m)²


class Outcome(NamedTuple):
    """One run. Where it failed, `failure` says why and the rest is empty."""

    sampler: str
    seed: int
    gradients: int = 0
    chains: int = 1
    seconds: float = float("nan")
    records: tuple[Record, ...] = ()
    verdict: Verdict | None = None
    failure: str = ""
    note: str = ""  # what one must know of a run that gave draws
    interrupted: bool = False

    @property
    def ess(self) -> float:
        """The smallest effective sample size of all draws."""
        return self.records[-1].ess if self.records else float("nan")

    @property
    def rhat(self) -> float:
        """The verdict's largest R-hat."""
        numbers = {} if self.verdict is None else self.verdict.numbers
        return float(numbers.get("rhat", "nan"))

    def b2max(self, truth: Truth) -> np.ndarray:
        """max_i (estimate of E[x_i²] − truth)²/Var[x_i²] at each record; ∞ if not a number."""
        if not self.records:
            return np.empty(0)
        second = np.stack([record.second_moment for record in self.records])
        error = (second - truth.second_moment) ** 2 / truth.second_variance
        return np.nan_to_num(error.max(axis=-1), nan=np.inf)


def record(gradients: float, x: np.ndarray, weights: np.ndarray | None = None) -> Record:
    """From draws `x` (chains, n, dim) with `weights` (chains, n)."""
    w = np.ones(x.shape[:2]) if weights is None else weights
    w = w / w.sum()
    mean = np.einsum("cn,cni->i", w, x)
    second = np.einsum("cn,cni->i", w, x**2)
    thinned, kept = thin(x, weights)
    columns = np.concatenate([thinned, (thinned - mean) ** 2], axis=-1)
    size = float("nan")
    if columns.shape[1] >= 8 and np.isfinite(columns).all():
        sizes = fast_ess(np.swapaxes(columns, 0, 1), None if kept is None else kept.T)
        size = float(sizes.min())
    return Record(int(gradients), second, size)


def thin(x: np.ndarray, weights: np.ndarray | None = None):
    """Every so many-th draw of `x` (chains, n, dim), for at most `ENTRIES` numbers."""
    every = -(-x.size // ENTRIES)
    return x[:, ::every], None if weights is None else weights[:, ::every]


def prefixes(costs: np.ndarray, budget: float, least: int = 1) -> np.ndarray:
    """How many of the first draws to look at, in equal ratios from `least` to all of them.

    `costs` (n,) are the gradients spent when each was there; the last within the budget is seen.
    """
    n = len(costs)
    even = np.geomspace(min(least, n), n, RECORDS).round().astype(int)
    within = int(np.searchsorted(costs, budget, side="right"))
    return np.union1d(even, within if within >= least else n)
