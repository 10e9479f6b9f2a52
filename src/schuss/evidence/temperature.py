"""The next temperature: as far as the weights stay worth a given share of the particles.

E_β = (1 − β) E₀ + β E,   log w = −Δβ (E − E₀),   conditional ESS = (Σ w)²/(n Σ w²)
"""

import numpy as np

from schuss.diagnostics import weight_ess

LAST = 0.95
"""Conditional ESS with which the target may be reached; until then half the way is left each time.

Where the target has heavier tails than the reference, the weights of a step Δβ are as heavy-tailed
as e^(Δβ/(1−β) T), T exponential: half the way has a variance, the whole way never has one, which
few particles don't show.
"""


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
    """The largest Δβ whose conditional ESS is at least `wanted`, by bisection.

    It is at most half of what is left, or all of it.
    Where the target is infinite for some particles even the smallest step loses them: `wanted`
    is then a share of the others.
    """
    some = float(np.mean(np.isfinite(gap)))
    if conditional_ess(log_weights(gap, left)) >= LAST * some:
        return left
    if conditional_ess(log_weights(gap, left / 2)) >= wanted * some:
        return left / 2
    # In logarithms: the first step may be many orders of magnitude smaller than what is left.
    low, high = np.log(left) - 80.0, np.log(left / 2)
    for _ in range(60):
        middle = (low + high) / 2
        if conditional_ess(log_weights(gap, float(np.exp(middle)))) >= wanted * some:
            low = middle
        else:
            high = middle
    return float(np.exp(low))
