"""Importance weights kept as logarithms: effective number, normalisation, weighted estimates."""

import numpy as np
from numpy.typing import ArrayLike

from schuss.diagnostics.inputs import Array
from schuss.diagnostics.jackknife import Estimate, jackknife_error, leave_one_out


def normalise(log_weights: ArrayLike, axis: int | None = 0) -> Array:
    """w / Σw along `axis` (None: over all); zeros where every log weight is −∞."""
    w = _relative(log_weights, axis)
    total = np.sum(w, axis=axis, keepdims=True)
    return w / np.where(total > 0, total, 1.0)


def weight_ess(log_weights: ArrayLike, axis: int | None = 0) -> Array:
    """(Σw)²/Σw² along `axis`; 0 where every log weight is −∞."""
    square = np.sum(normalise(log_weights, axis) ** 2, axis=axis)
    return np.where(square > 0, 1 / np.where(square > 0, square, 1.0), 0.0)


def max_weight(log_weights: ArrayLike, axis: int | None = 0) -> Array:
    """Largest normalised weight along `axis`; 1 says that a single state decides."""
    return np.max(normalise(log_weights, axis), axis=axis)


def weighted_mean(values: ArrayLike, log_weights: ArrayLike, axis: int | None = 0) -> Array:
    """Σ w f / Σ w along `axis` of the weights; nan where every log weight is −∞.

    `values` may have further axes behind those of the weights. A state of weight zero counts for
    nothing even when its value is not finite.
    """
    w = normalise(log_weights, axis)
    values = _values(values, w.shape)
    axes = tuple(range(w.ndim)) if axis is None else (axis % w.ndim,)
    some = np.sum(w, axis=axes) > 0
    total = np.sum(_weigh(w, values), axis=axes)
    return np.where(some.reshape(some.shape + (1,) * (total.ndim - some.ndim)), total, np.nan)


def ratio_jackknife(
    values: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    log_weights: ArrayLike | None = None,
    axis: int = -1,
) -> Estimate:
    """Σ w f / Σ w over all draws and chains, with its standard error by a jackknife over chains.

    `weights`, or `log_weights`, has shape (draws, chains) or (chains,); `axis` says which of its
    axes counts the chains. `values` may have further axes behind, which are kept.
    """
    if weights is not None and log_weights is None:
        w = _linear(weights)
    elif log_weights is not None and weights is None:
        w = _relative(log_weights, None)
    else:
        raise ValueError("weights and log_weights are two forms of one thing; pass exactly one")
    values = _values(values, w.shape)
    if w.ndim == 0:
        raise ValueError("weights must have an axis for the chains, got a scalar; pass an array")
    chain = axis % w.ndim
    others = tuple(k for k in range(w.ndim) if k != chain)
    weight = np.sum(w, axis=others)
    total = np.sum(_weigh(w, values), axis=others)
    weight = weight.reshape(weight.shape + (1,) * (total.ndim - 1))
    with np.errstate(invalid="ignore", divide="ignore"):
        value = np.sum(total, axis=0) / np.sum(weight, axis=0)
        without = leave_one_out(total) / leave_one_out(weight)
    return Estimate(value, jackknife_error(without))


def _relative(log_weights: ArrayLike, axis: int | None) -> Array:
    """Weights relative to the largest along `axis`."""
    logs = np.asarray(log_weights, dtype=np.float64)
    if logs.size == 0 or np.any(np.isnan(logs)) or np.any(logs == np.inf):
        raise ValueError(
            "log_weights must be numbers below +inf, at least one of them; "
            "give a diverged chain the log weight -inf"
        )
    top = np.max(logs, axis=axis, keepdims=True)
    return np.exp(logs - np.where(np.isfinite(top), top, 0.0))


def _linear(weights: ArrayLike) -> Array:
    w = np.asarray(weights, dtype=np.float64)
    if w.size == 0 or not np.all(np.isfinite(w)) or np.any(w < 0):
        raise ValueError(
            "weights must be finite and non-negative; pass log_weights= if they are logarithms"
        )
    return w


def _values(values: ArrayLike, shape: tuple[int, ...]) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if array.shape[: len(shape)] != shape:
        raise ValueError(
            f"values must begin with the shape of the weights, {shape}, got {array.shape}; "
            f"pass one value per weight"
        )
    return array


def _weigh(w: Array, values: Array) -> Array:
    """w · f with 0 · ∞ = 0."""
    w = w.reshape(w.shape + (1,) * (values.ndim - w.ndim))
    return w * np.where(w > 0, values, 0.0)
