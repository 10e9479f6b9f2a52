"""How far apart two sets of images are: the Fréchet distance of Gaussians fitted to features.

    D = |μ₁ − μ₂|² + tr(Σ₁ + Σ₂ − 2 (Σ₁^½ Σ₂ Σ₁^½)^½)

Its bias depends on the number of samples, so both sides must have equally many, and a distance
says little without its floor (training against test images) and its ceiling (noise) beside it.
"""

from typing import Any

import numpy as np


def frechet(first: Any, second: Any) -> float:
    """The distance of two equally large sets of features, (n, features) each."""
    first, second = (np.asarray(part, dtype=np.float64) for part in (first, second))
    if first.ndim != 2 or first.shape != second.shape or len(first) < 2:
        raise ValueError(
            f"features must be two arrays of one shape (n, features), n ≥ 2, got {first.shape} "
            f"and {second.shape}; take equally many samples of each"
        )
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise ValueError("features must be finite; look at the samples they come from")
    apart = first.mean(axis=0) - second.mean(axis=0)
    one, two = _covariance(first), _covariance(second)
    root = _root(one)
    cross = np.linalg.eigvalsh(root @ two @ root)
    overlap = np.sqrt(np.clip(cross, 0.0, None)).sum()
    return float(apart @ apart + np.trace(one) + np.trace(two) - 2 * overlap)


def _covariance(x: np.ndarray) -> np.ndarray:
    off = x - x.mean(axis=0)
    return off.T @ off / (len(x) - 1)


def _root(matrix: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * np.sqrt(np.clip(values, 0.0, None))) @ vectors.T
