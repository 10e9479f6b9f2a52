"""The first step size, and how it changes by how often steps are accepted."""

import math

import numpy as np
from scipy.special import ndtri


def first_step(g: np.ndarray) -> np.ndarray:
    """A tenth of what turns the velocity round, min(0.1 d/|g|, 2.5√d), for each chain."""
    dim = g.shape[-1]
    norm = np.maximum(np.linalg.norm(g, axis=-1), 1e-300)
    return np.minimum(0.1 * dim / norm, 2.5 * math.sqrt(dim))


def from_acceptance(rate: float, target: float, bounds: tuple[float, float] = (0.6, 1.6)) -> float:
    """The factor by which ε changes. Errors ∝ ε³, and Φ⁻¹(a/2) is in proportion to them."""
    rate = min(max(rate, 1e-6), 1 - 1e-6)
    factor = (ndtri(target / 2) / ndtri(rate / 2)) ** (1 / 3)
    return float(np.clip(factor, *bounds))
