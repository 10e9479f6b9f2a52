"""Rules between temperatures. Each looks at the past, or at the half that it doesn't move."""

import math
from statistics import NormalDist

import numpy as np

from schuss.evidence.blocks import blocks

ACCEPTANCE = 0.85
"""Wanted of proposals."""

LENGTH = 1.0
"""Length of a proposal in units of √d, in coordinates of unit scale."""


STILL = 1e-3
"""A quantity that varies less has no correlation time: what is left may be rounding."""


def spread(x: np.ndarray, weights: np.ndarray, otherwise) -> np.ndarray:
    """Weighted standard deviation of each coordinate, or `otherwise` where there is none.

    x is (moves, particles, dim) and weights (moves, particles).
    """
    share = weights / weights.sum()
    parts = [(move, some) for move in range(len(x)) for some in blocks(*x.shape[1:])]
    mean = sum(share[part] @ x[part] for part in parts)
    sd = np.sqrt(sum(share[part] @ (x[part] - mean) ** 2 for part in parts))
    return np.where(np.isfinite(sd) & (sd > 1e-12 * otherwise), sd, otherwise)


def first_step(dim: int) -> float:
    """ε for a standard normal: the error of a proposal is then about the same for all d."""
    return 1.2 * dim**0.25


def next_step(step: float, acceptance: float, dim: int) -> float:
    """ε for the wanted acceptance a = 2Φ(−σ/2), where σ grows with ε²; two steps or more fit in."""
    normal = NormalDist()
    error = normal.inv_cdf(min(max(acceptance, 1e-3), 0.999) / 2)
    step = step * min(max((normal.inv_cdf(ACCEPTANCE / 2) / error) ** 0.5, 0.4), 1.6)
    return min(step, LENGTH * math.sqrt(dim) / 2)


def proposal_length(dim: int, step: float, jitter: float) -> int:
    """Leapfrog steps of a proposal; `jitter` in (0, 1) keeps it from falling into a period."""
    return max(1, round(LENGTH * math.sqrt(dim) / step * (0.5 + jitter)))


def correlation_time(series: np.ndarray) -> float:
    """τ = (1 + ρ)/(1 − ρ), ρ the correlation of neighbours in (moves, particles) of an energy."""
    apart = series - series.mean()
    variance = (apart**2).mean()
    if not variance > STILL**2:
        return 1.0
    rho = min(max(float((apart[1:] * apart[:-1]).mean() / variance), 0.0), 0.98)
    return (1 + rho) / (1 - rho)
