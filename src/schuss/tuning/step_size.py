"""The step size from the error that steps made, or from how often they were accepted."""

import math

import numpy as np
from scipy.special import ndtri

FAR = 1000.0
"""Errors count for no more than this."""

WALLS = 0.2
"""The share of steps that may end where there is no energy."""


CAREFUL, BOLD = 0.9, 0.78
"""Acceptance to aim at. Close to a Gaussian longer steps pay by a quarter; where a few places have
by far the largest errors, chains would get stuck in them."""

EVEN, UNEVEN, FEW = 2.7, 3.3, 100
"""The last decile of errors in units of their median, 2.4 for a normal distribution: up to which
steps may be bold, and from which on they must be careful; errors below which nothing is known."""


def first_step(g: np.ndarray) -> np.ndarray:
    """A tenth of what turns the velocity round, min(0.1 d/|g|, 2.5√d), for each chain."""
    dim = g.shape[-1]
    norm = np.maximum(np.linalg.norm(g, axis=-1), 1e-300)
    return np.minimum(0.1 * dim / norm, 2.5 * math.sqrt(dim))


def from_errors(
    error: np.ndarray, step: np.ndarray, dim: int, wanted: float, weight: np.ndarray | None = None
) -> float:
    """ε with (ΔW)²/d = wanted on average, from errors (n, chains) of steps (n, 1): ΔW ∝ ε³.

    Steps count by their `weight` (n, 1). A few without a finite error met a wall, which shorter
    ones would meet too. Many, and the steps are too long.
    """
    known = np.isfinite(error)
    size = np.where(known, np.clip(np.abs(error), None, FAR), FAR)
    counted = known if known.mean() > 1 - WALLS else np.ones_like(known)
    weight = counted * (1.0 if weight is None else weight)
    level = np.average(size**2 / dim / step**6, weights=weight)
    return float((max(level, 1e-300) / wanted) ** (-1 / 6))


def wanted_acceptance(likely: np.ndarray) -> float:
    """What to aim at, by how likely first tries were to be accepted."""
    error = -np.log(np.maximum(likely[likely < 1], 1e-300))
    if len(error) < FEW:
        return CAREFUL
    middle, high = np.quantile(error, (0.5, 0.9))
    even = np.clip((UNEVEN - high / middle) / (UNEVEN - EVEN), 0, 1)
    return float(CAREFUL + even * (BOLD - CAREFUL))


def from_acceptance(rate: float, target: float = CAREFUL, bounds=(0.6, 1.6)) -> float:
    """The factor by which ε changes. Errors ∝ ε³, and Φ⁻¹(a/2) is in proportion to them."""
    rate = min(max(rate, 1e-6), 1 - 1e-6)
    factor = (ndtri(target / 2) / ndtri(rate / 2)) ** (1 / 3)
    return float(np.clip(factor, *bounds))


def acceptance(error: np.ndarray, weight: np.ndarray) -> float:
    """How often steps with these errors (n, chains) would be accepted; they count by `weight`."""
    likely = np.where(np.isfinite(error), np.exp(-np.clip(error, 0, FAR)), 0.0)
    return float(np.average(likely, weights=np.broadcast_to(weight, error.shape)))
