"""The step size from the error that steps made, or from how often they were accepted."""

import math

import numpy as np
from scipy.special import ndtri

FAR = 1000.0
"""Errors count for no more than this."""

WALLS = 0.2
"""The share of steps that may end where there is no energy."""


def first_step(g: np.ndarray) -> np.ndarray:
    """A tenth of what turns the velocity round, min(0.1 d/|g|, 2.5√d), for each chain."""
    dim = g.shape[-1]
    norm = np.maximum(np.linalg.norm(g, axis=-1), 1e-300)
    return np.minimum(0.1 * dim / norm, 2.5 * math.sqrt(dim))


def from_errors(error: np.ndarray, step: np.ndarray, dim: int, wanted: float) -> float:
    """ε with (ΔW)²/d = wanted on average, from errors (n, chains) of steps (n, 1): ΔW ∝ ε³.

    A few steps without a finite error met a wall, which shorter ones would meet too. Many, and the
    steps are too long.
    """
    known = np.isfinite(error)
    size = np.where(known, np.clip(np.abs(error), None, FAR), FAR)
    counted = known if known.mean() > 1 - WALLS else np.ones_like(known)
    level = np.mean(size**2 / dim / step**6, where=counted)
    return float((max(level, 1e-300) / wanted) ** (-1 / 6))


def from_acceptance(rate: float, target: float = 0.9) -> float:
    """The factor by which ε changes. Errors ∝ ε³, and Φ⁻¹(a/2) is in proportion to them."""
    rate = min(max(rate, 1e-6), 1 - 1e-6)
    factor = (ndtri(target / 2) / ndtri(rate / 2)) ** (1 / 3)
    return float(np.clip(factor, 0.6, 1.3))
