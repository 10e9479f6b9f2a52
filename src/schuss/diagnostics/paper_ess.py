"""The effective sample size of the paper's Table 1.

Per chain, the columns are (x − μ)/σ and (x² − μ₂)/σ₂ with the true moments. With
ρ_s = mean_t y_t y_{t+s} over the T − s products, not divided by ρ_0, and S the first s ≥ 1 where
ρ_s ≤ 0.05,

    ESS = T / (1 + 2 Σ_{s<S} (1 − s/(T − 1)) ρ_s),      the smallest over the 2·dim columns.
"""

import numpy as np
from numpy.typing import ArrayLike

from schuss.diagnostics.inputs import Array, finite_array, path_array

CUT = 0.05
ENTRIES = 1 << 22
"""Entries of the padded columns transformed at once, which bounds the memory."""


def paper_ess(
    x: ArrayLike,
    mean: ArrayLike,
    variance: ArrayLike,
    second_moment: ArrayLike,
    second_variance: ArrayLike,
    *,
    gradients: float | None = None,
) -> Array:
    """ESS of each chain of `x` (draws, chains, dim) per gradient, shape (chains,).

    `second_moment` and `second_variance` are the mean and the variance of x². `gradients` is what
    one chain spent; when None, one a draw. The states are taken as they are, without weights.
    """
    x = path_array(x, "x", at_least=4)
    draws, chains, dim = x.shape
    centre = np.concatenate(
        [_moment(mean, "mean", dim), _moment(second_moment, "second_moment", dim)]
    )
    square = np.concatenate(
        [_moment(variance, "variance", dim), _moment(second_variance, "second_variance", dim)]
    )
    if np.any(square <= 0):
        raise ValueError(
            "variance and second_variance must be positive; pass the true variances of x and x²"
        )
    cost = float(draws) if gradients is None else float(gradients)
    if not (np.isfinite(cost) and cost > 0):
        raise ValueError(
            f"gradients must be positive and finite, got {gradients}; "
            f"pass the number of gradients one chain spent"
        )
    scale = np.sqrt(square)
    step = max(1, ENTRIES // (4 * draws * dim))
    per_chain = [
        _smallest_ess((np.concatenate([part, part**2], axis=2) - centre) / scale)
        for part in (x[:, start : start + step] for start in range(0, chains, step))
    ]
    return np.concatenate(per_chain) / cost


def _moment(value: ArrayLike, name: str, dim: int) -> Array:
    array = finite_array(np.atleast_1d(np.asarray(value, dtype=np.float64)), name, ("dim",))
    if array.shape[0] not in (1, dim):
        raise ValueError(
            f"{name} must have {dim} entries like x, got {array.shape[0]}; "
            f"pass the true moment of each dimension"
        )
    return np.broadcast_to(array, (dim,))


def _smallest_ess(y: Array) -> Array:
    """Smallest ESS over the columns of standardised `y` (draws, chains, columns)."""
    draws = y.shape[0]
    # Twice the length, so that the circular correlation of the transform does not wrap around.
    spectrum = np.fft.rfft(y, n=2 * draws, axis=0)
    products = np.fft.irfft(np.abs(spectrum) ** 2, n=2 * draws, axis=0)[1 : draws - 1]
    lag = np.arange(1, draws - 1)[:, None, None]
    rho = products / (draws - lag)
    before_cut = np.logical_and.accumulate(rho > CUT, axis=0)
    time = 1 + 2 * np.sum(np.where(before_cut, (1 - lag / (draws - 1)) * rho, 0.0), axis=0)
    return np.min(draws / time, axis=1)
