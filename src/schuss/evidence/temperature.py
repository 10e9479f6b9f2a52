"""The next temperature: as far as the weights stay worth a given share of the particles.

E_β = (1 − β) E₀ + β E,   log w = −Δβ (E − E₀),   conditional ESS = (Σ w)²/(n Σ w²)
"""

import math

import numpy as np

from schuss.diagnostics import weight_ess

LAST = 0.95
"""Conditional ESS with which the target may be reached; until then half the way is left each time.

Where the target has heavier tails than the reference, the weights of a step Δβ are as heavy-tailed
as e^(Δβ/(1−β) T), T exponential: half the way has a variance, the whole way never has one, which
few particles don't show.
"""


DEEPEST = -80.0
"""log of the smallest step, as a share of what is left."""

ROUNDS, CLOSE, TINY = 100, 1e-13, 1e-300
"""At most so many evaluations, the change of log Δβ that ends the search, and what isn't 0."""


def log_weights(gap: np.ndarray, increment: float) -> np.ndarray:
    """−Δβ (E − E₀); a particle where the target isn't a number or infinite counts for nothing."""
    gap = np.where(np.isfinite(gap) | (gap == -np.inf), gap, np.inf)
    with np.errstate(invalid="ignore"):
        return np.where(increment * gap == np.inf, -np.inf, -increment * gap)


def conditional_ess(logs: np.ndarray) -> float:
    """(Σ w)²/(n Σ w²) for equally weighted particles, 0 where none has weight."""
    # A weight beyond all others is none that one could go on with.
    return float(weight_ess(logs)) / len(logs) if np.max(logs) < np.inf else 0.0


def increment(gap: np.ndarray, left: float, wanted: float) -> float:
    """The largest Δβ whose conditional ESS is at least `wanted`, to rounding.

    It is at most half of what is left, or all of it.
    Where the target is infinite for some particles even the smallest step loses them: `wanted`
    is then a share of the others.
    """
    if np.any(gap == -np.inf):
        return left * math.exp(DEEPEST)
    gap = gap[np.isfinite(gap)]
    if not len(gap):
        return left
    with np.errstate(over="ignore"):
        gap = gap - gap.min()
    if _loss(gap, left) <= -math.log(LAST):
        return left
    most = -math.log(wanted)
    if _loss(gap, left / 2) <= most:
        return left / 2
    return math.exp(_reach(gap, math.log(left) + DEEPEST, math.log(left / 2), most))


def _loss(gap: np.ndarray, delta: float) -> float:
    """−log of the conditional ESS, for gaps from 0 on."""
    w = np.exp(-delta * gap)
    return math.log(len(gap) * float(w @ w)) - 2 * math.log(float(w.sum()))


def _reach(gap: np.ndarray, low: float, high: float, most: float) -> float:
    """log Δβ at which the loss is `most`.

    In logarithms: the step may be many orders of magnitude smaller than what is left, and where it
    is small the loss is Δβ² var(E − E₀). The logarithm of the loss is then a line of slope 2, and
    secants of it find the place in a few rounds; the bounds are halved where they would leave them.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        spread = float(gap.var())
    at = math.log(most / spread) / 2 if 0 < spread < math.inf else low
    at, slope, last = min(max(at, low), high), 2.0, None
    for _ in range(ROUNDS):
        loss = _loss(gap, math.exp(at))
        low, high = (at, high) if loss <= most else (low, at)
        height = math.log(max(loss, TINY) / most)
        if last is not None and height != last[1]:
            slope = (height - last[1]) / (at - last[0])
        last = at, height
        step = -height / slope if slope > 0 else math.inf
        if abs(step) <= CLOSE or high - low <= CLOSE:
            break
        at = at + step if low < at + step < high else (low + high) / 2
    return at
