"""What the checks look at, and the form of what they find.

Arrays have their draws first, (draws, chains, …), as in `schuss.diagnostics`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

FEW, WRONG = "too few draws", "wrong"

ESS, ESS_GOOD = 200, 400
"""At 200 a mean is a third of an sd off in one coordinate of 100,000, at 100 in one of 600; 400
makes R-hat and ESS themselves dependable."""

CHANCE = 1e-3
"""False alarms of a test, over all columns together."""

PROPER = (
    "Check the sign (energy= is −log p, logdensity= is log p), that every prior is proper, and "
    "that no direction is left free"
)
"""What to do about a density that may be improper."""

WORST = 64
"""Columns looked at closely, the worst ones, when many fail."""


class Reason(NamedTuple):
    """One thing against the draws, and what to do about it."""

    kind: str  # "too few draws" or "wrong"
    what: str
    value: float
    threshold: float
    remedy: str


class Evidence(NamedTuple):
    """The draws of the healthy chains and what is known at each of them."""

    x: np.ndarray  # (draws, chains, dim)
    energy: np.ndarray  # (draws, chains)
    gradient: np.ndarray | None
    weights: np.ndarray | None
    names: tuple[str, ...]
    chain_names: tuple[int, ...]
    temperature: float
    groups: np.ndarray | None
    charted: bool = False  # whether the chains moved in other coordinates than these


class Found(NamedTuple):
    """What a check found."""

    reasons: list[Reason]
    numbers: dict[str, Any]
    notes: list[str]


def shares(evidence: Evidence) -> np.ndarray:
    """Weights that add up to one, (draws, chains)."""
    w = np.ones(evidence.x.shape[:2]) if evidence.weights is None else evidence.weights
    return w / w.sum()


def labeller(names: tuple[str, ...]) -> Callable[[int], str]:
    """Names of the columns x, (x − m)² and E."""
    dim = len(names)

    def label(i: int) -> str:
        if i < dim:
            return names[i]
        return f"the spread of {names[i - dim]}" if i < 2 * dim else "the energy"

    return label


def more(count: int, unseen: int = 0) -> str:
    """How many others there are, in brackets."""
    least = "at least " if unseen else ""
    return f" (and {least}{count - 1} more)" if count > 1 else ""


def listed(items: list) -> str:
    """The first six items."""
    head = ", ".join(map(str, items[:6]))
    return head + (", …" if len(items) > 6 else "")


def chain_words(evidence: Evidence, chosen: np.ndarray) -> str:
    """The chosen chains, by the numbers that they have in the run."""
    which = [evidence.chain_names[c] for c in np.flatnonzero(chosen)]
    return f"chain{'s' if len(which) > 1 else ''} {listed(which)}"
