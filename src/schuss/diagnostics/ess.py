"""Bulk effective sample size and rank-normalised split R-hat, from ArviZ, with weights added.

With weights w, a column x becomes its normal scores z = Φ⁻¹ of its weighted ranks, and z the
influence of each draw on the ratio estimate ẑ = Σ w z / Σ w,

    φ_t = w_t (z_t − ẑ) / mean(w),

whose mean has, to first order, the variance of ẑ. The effective sample size is the number of
independent unweighted draws that would give this variance,

    ESS = (Σ w (z − ẑ)² / Σ w) / mean(φ²) · ESS_ArviZ(φ).

The first factor is (Σw)²/(n Σw²) where w and x are independent. Equal weights give ArviZ's bulk
ESS. R-hat is the split R-hat of φ, once for x and once for |x − median|; equal weights give
ArviZ's.
"""

import warnings

import numpy as np
from numpy.typing import ArrayLike

from schuss.diagnostics.inputs import Array, path_array, weight_array


def ess(x: ArrayLike, weights: ArrayLike | None = None) -> Array:
    """Bulk ESS of `x` (draws, chains, dim) for each dimension, shape (dim,).

    `weights` (draws, chains) are up to a constant. A column that never varies has ESS 0.
    """
    x = path_array(x, "x", at_least=4)
    arviz = _arviz()
    if weights is None:
        columns = (_column(x, i) for i in range(x.shape[2]))
        return np.array([0.0 if _constant(c) else arviz.ess(c, method="bulk") for c in columns])
    w = _without_middle(weight_array(weights, x.shape[:2]))
    x = _without_middle(x)
    return np.array([_weighted_ess(arviz, _column(x, i), w.T) for i in range(x.shape[2])])


def rhat(x: ArrayLike, weights: ArrayLike | None = None) -> Array:
    """Rank-normalised split R-hat of `x` (draws, chains, dim) for each dimension, shape (dim,).

    A single chain is cut in two first. A column that never varies has R-hat ∞.
    """
    x = path_array(x, "x", at_least=4)
    w = None if weights is None else weight_array(weights, x.shape[:2])
    if x.shape[1] == 1:
        x = path_array(_halves(x), "each half of the single chain in x", at_least=4)
        w = None if w is None else _halves(w)
    arviz = _arviz()
    if w is None:
        values = [_finite_rhat(arviz, _column(x, i), "rank") for i in range(x.shape[2])]
    else:
        x, w = _without_middle(x), _without_middle(w)
        values = [_weighted_rhat(arviz, _column(x, i), w.T) for i in range(x.shape[2])]
    return np.array(values)


def _arviz():
    """ArviZ, imported when first needed: it takes a second and warns of its next version."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        import arviz
    return arviz


def _column(x: Array, i: int) -> Array:
    """One dimension in ArviZ's order, (chains, draws)."""
    return np.ascontiguousarray(x[:, :, i].T)


def _constant(column: Array) -> bool:
    return bool(np.all(column == column.flat[0]))


def _without_middle(x: Array) -> Array:
    """The two halves ArviZ splits a chain into, which leave out the middle of an odd number."""
    half = x.shape[0] // 2
    return np.concatenate([x[:half], x[-half:]])


def _halves(x: Array) -> Array:
    """One chain as two chains of half the length."""
    half = x.shape[0] // 2
    return np.concatenate([x[:half], x[-half:]], axis=1)


def _weighted_ranks(column: Array, w: Array) -> Array:
    """Normal scores of the weighted mid-ranks, with Blom's offsets as in ArviZ."""
    from scipy.special import ndtri

    _, place = np.unique(column, return_inverse=True)
    place = place.reshape(-1)
    mass = np.bincount(place, w.reshape(-1))
    middle = (np.cumsum(mass) - mass / 2) / np.sum(mass)
    size = column.size
    return ndtri((size * middle[place] + 1 / 8) / (size + 1 / 4)).reshape(column.shape)


def _weighted_median(column: Array, w: Array) -> float:
    used = w > 0
    values, mass = column[used], w[used]
    order = np.argsort(values)
    middle = np.cumsum(mass[order]) - mass[order] / 2
    return float(np.interp(np.sum(mass) / 2, middle, values[order]))


def _influence(z: Array, w: Array) -> tuple[Array, float]:
    """φ = w (z − ẑ)/mean(w), and the weighted variance of z."""
    deviation = z - np.sum(w * z) / np.sum(w)
    return w * deviation / np.mean(w), float(np.sum(w * deviation**2) / np.sum(w))


def _weighted_ess(arviz, column: Array, w: Array) -> float:
    influence, variance = _influence(_weighted_ranks(column, w), w)
    if _constant(column[w > 0]):
        return 0.0
    return variance / float(np.mean(influence**2)) * float(arviz.ess(influence, method="mean"))


def _weighted_rhat(arviz, column: Array, w: Array) -> float:
    if _constant(column[w > 0]):
        return np.inf
    folded = np.abs(column - _weighted_median(column, w))
    bulk, _ = _influence(_weighted_ranks(column, w), w)
    tail, _ = _influence(_weighted_ranks(folded, w), w)
    return max(_finite_rhat(arviz, bulk, "split"), _finite_rhat(arviz, tail, "split"))


def _finite_rhat(arviz, column: Array, method: str) -> float:
    """R-hat of one column; ∞, not 0/0, when it never varies."""
    if _constant(column):
        return np.inf
    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(arviz.rhat(column, method=method))
    # Chains that differ and never move: ∞, for which ArviZ's compiled variance gives nan.
    return np.inf if np.isnan(value) else value
