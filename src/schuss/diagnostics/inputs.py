"""Arrays at the door: float64 NumPy of the right shape, or one plain sentence saying why not."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def finite_array(x: ArrayLike, name: str, shape: tuple[str, ...]) -> Array:
    """`x` as a finite float64 array with the axes named in `shape`, none of them empty."""
    array = np.asarray(x, dtype=np.float64)
    if array.ndim != len(shape) or array.size == 0:
        wanted = ", ".join(shape) + ("," if len(shape) == 1 else "")
        raise ValueError(
            f"{name} must have shape ({wanted}) and entries, got {array.shape}; "
            f"reshape it to these axes"
        )
    bad = array.size - int(np.count_nonzero(np.isfinite(array)))
    if bad:
        raise ValueError(
            f"{name} must be finite, got {bad} non-finite entries; drop the chains that diverged"
        )
    return array


def sample_array(x: ArrayLike, name: str, at_least: int = 2) -> Array:
    """`x` as an (n, dim) sample with `at_least` points."""
    array = finite_array(x, name, ("n", "dim"))
    if array.shape[0] < at_least:
        raise ValueError(
            f"{name} needs at least {at_least} points, got {array.shape[0]}; pass more samples"
        )
    return array


def path_array(x: ArrayLike, name: str, at_least: int = 1) -> Array:
    """`x` as a (draws, chains, dim) path with `at_least` draws."""
    array = finite_array(x, name, ("draws", "chains", "dim"))
    if array.shape[0] < at_least:
        raise ValueError(
            f"{name} needs at least {at_least} draws, got {array.shape[0]}; run the chains longer"
        )
    return array


def weight_array(weights: ArrayLike, shape: tuple[int, ...], name: str = "weights") -> Array:
    """Non-negative `weights` of the given shape, divided by their largest entry."""
    array = np.asarray(weights, dtype=np.float64)
    if array.shape != shape:
        raise ValueError(
            f"{name} must have shape {shape}, got {array.shape}; pass one weight per draw and chain"
        )
    if not np.all(np.isfinite(array)) or np.any(array < 0) or not np.any(array > 0):
        raise ValueError(
            f"{name} must be finite, non-negative and not all zero; "
            f"pass normalise(log_weights, axis=None) if you have logarithms"
        )
    return array / array.max()
