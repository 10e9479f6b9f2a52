"""The virial theorem as a check of bias that needs no truth: E[(x_i − m_i) ∂_i E] = T."""

import numpy as np
from numpy.typing import ArrayLike

from schuss.diagnostics.inputs import Array, finite_array, weight_array
from schuss.diagnostics.jackknife import Estimate, jackknife_error, leave_one_out


def virial(
    x: ArrayLike,
    g: ArrayLike,
    weights: ArrayLike | None = None,
    temperature: float = 1.0,
) -> Estimate:
    """E[(x_i − m_i) g_i]/T for each dimension, 1 at stationarity, with its jackknife error.

    `x` and the gradients `g` of the energy have shape (draws, chains, dim), or (chains, dim) for
    one state per chain; `weights` the same without dim. T = κ/(dim − 1) for unweighted states of
    the flow with divisor κ, and 1 for weighted ones. Both shapes give arrays of shape (dim,).
    """
    value, without = _virials(x, g, weights, temperature)
    return Estimate(value, jackknife_error(without))


def virial_bias(
    x: ArrayLike,
    g: ArrayLike,
    weights: ArrayLike | None = None,
    temperature: float = 1.0,
) -> Estimate:
    """mean_i (1 − E[(x_i − m_i) g_i]/T)², with its jackknife error; arguments as for `virial`.

    Sampling noise adds the mean squared standard error of `virial` to it.
    """
    value, without = _virials(x, g, weights, temperature)
    bias = np.asarray(np.mean((1 - value) ** 2), dtype=np.float64)
    return Estimate(bias, jackknife_error(np.mean((1 - without) ** 2, axis=1)))


def _virials(
    x: ArrayLike, g: ArrayLike, weights: ArrayLike | None, temperature: float
) -> tuple[Array, Array]:
    """The virials of all chains (dim,) and without each chain (chains, dim)."""
    if not (np.isfinite(temperature) and temperature > 0):
        raise ValueError(
            f"temperature must be positive and finite, got {temperature}; pass e.g. 1.0"
        )
    states, forces = _path(x, "x"), _path(g, "g")
    if states.shape != forces.shape:
        raise ValueError(
            f"g must have the shape of x, {states.shape}, got {forces.shape}; pass ∇E at each x"
        )
    shape = states.shape[:2]
    if weights is None:
        w = np.ones(shape)
    else:
        w = np.asarray(weights, dtype=np.float64)
        w = weight_array(w[None] if w.ndim == 1 else w, shape)
    # The covariance is taken from sums, which cancel when the mean is large.
    states = states - np.einsum("tc,tci->i", w, states) / np.sum(w)
    weight = np.sum(w, axis=0)[:, None]
    products = (states, forces, states * forces)
    parts = (weight, *(np.einsum("tc,tci->ci", w, product) for product in products))
    value = _covariance(*(np.sum(part, axis=0) for part in parts))
    with np.errstate(invalid="ignore", divide="ignore"):
        without = _covariance(*(leave_one_out(part) for part in parts))
    return value / temperature, without / temperature


def _covariance(weight: Array, x: Array, g: Array, xg: Array) -> Array:
    """⟨x g⟩ − ⟨x⟩⟨g⟩ from weighted sums."""
    return xg / weight - (x / weight) * (g / weight)


def _path(x: ArrayLike, name: str) -> Array:
    array = np.asarray(x, dtype=np.float64)
    return finite_array(array[None] if array.ndim == 2 else array, name, ("draws", "chains", "dim"))
