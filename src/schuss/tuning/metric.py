"""The metric from draws and their gradients: scales, and directions where scales aren't enough.

Draws alone know the covariance Σ to a relative error √(2/n). Gradients have covariance Σ⁻¹ on a
Gaussian, so that the ratio of the two knows its scale without error: s = (var x/var g)^¼. In
coordinates scaled so, the geometric mean of A = cov x and B⁻¹ = (cov g)⁻¹,

    M = B^(−½) (B^½ A B^½)^½ B^(−½),

keeps its eigenvalues outside [½, 2]; inside, a direction isn't worth its cost.
"""

import numpy as np

from schuss.coordinates import Dense, Diagonal, LowRank

Metric = Diagonal | LowRank

RANKS = (32, 128)
"""The number of directions is rounded up to one of these: few sizes, few compilations."""

SMALL = 32
"""Up to this dimension directions cost so little that there is always room for all of them."""

NO_FORCE = 1e-20
"""Chains that have moved by 10⁻⁵ of a deviation have var x · var g of this size."""

DENSEST = 200
"""Up to this dimension directions are looked for in the full space."""

MAX_ROWS = 512
"""Draws that show the leading directions beyond it."""


def scales(x: np.ndarray, g: np.ndarray) -> np.ndarray:
    """(var x/var g)^¼ of draws (n, …, dim), one where it can't be told.

    Densities have var x · var g ≥ 1. Where it is next to nothing there is no force but rounding
    errors, and a scale from those would grow without end.
    """
    with np.errstate(all="ignore"):
        spread, force = np.var(x, axis=0), np.var(g, axis=0)
        s = (spread / force) ** 0.25
        told = np.isfinite(s) & (s > 0) & (spread * force > NO_FORCE)
    return np.where(told, s, 1.0)


def scales_by_chain(x: np.ndarray, g: np.ndarray) -> np.ndarray:
    """The geometric mean over chains of each one's own scales, from (draws, chains, dim)."""
    return np.exp(np.mean(np.log(scales(x, g)), axis=0))


def unit(dim: int) -> Metric:
    """No metric."""
    return _shaped(Diagonal(np.ones(dim)))


def scaled(scale: np.ndarray) -> Metric:
    """Scales alone."""
    return _shaped(Diagonal(scale))


def fit(x: np.ndarray, g: np.ndarray, effective: float) -> Metric:
    """The metric from draws (n, dim), worth so many independent ones."""
    scale = scales(x, g)
    dim = len(scale)
    if dim > DENSEST:
        return Diagonal(scale)
    return _outstanding(scale, x / scale, g * scale, effective)


def fit_many(x: np.ndarray, g: np.ndarray, effective: float) -> Metric:
    """The metric of more than `DENSEST` dimensions: its own directions are the leading ones.

    As in nutpie, those in which draws and gradients vary most. On a Gaussian the gradients are a
    linear function of the draws, so that directions which stand out by the scatter of few draws are
    told from wide ones by the two together.
    """
    scale = scales(x, g)
    x, g = x / scale, g * scale
    # What stands out is in the variance of every coordinate: the rest shows the others' scales.
    basis = _leading(x, g)
    rest = scales(x - x @ basis @ basis.T, g - g @ basis @ basis.T)
    scale, x, g = scale * rest, x / rest, g * rest
    return _outstanding(scale, x, g, effective, _leading(x, g))


def _outstanding(scale, x, g, effective, basis=None) -> Metric:
    """Scales, and the directions of scaled draws and gradients, in a basis, that go beyond them."""
    if basis is not None:
        x, g = x @ basis, g @ basis
    shrunk = effective / (effective + 2)
    identity = np.eye(x.shape[1])
    a = shrunk * np.cov(x, rowvar=False) + (1 - shrunk) * identity
    b = shrunk * np.cov(g, rowvar=False) + (1 - shrunk) * identity
    try:
        values, vectors = np.linalg.eigh(_between(a, b))
    except np.linalg.LinAlgError:  # what runs away has no covariance
        return scaled(scale)
    keep = (values < 0.5) | (values > 2)
    if not keep.any() or not np.isfinite(values).all():
        return scaled(scale)
    vectors = vectors[:, keep] if basis is None else basis @ vectors[:, keep]
    return _padded(scale, vectors, np.sqrt(values[keep]) - 1)


def in_loops(frame: Metric) -> Diagonal | LowRank | Dense:
    """The same change of coordinates in the form that takes least time in a loop."""
    if isinstance(frame, Diagonal) or not _square(*frame.vectors.shape):
        return frame
    transposed = frame.forward(np, np.eye(len(frame.scale)))
    return Dense(transposed, np.ascontiguousarray(transposed.T))


def log_scale(frame: Metric) -> float:
    """The mean of log √(eigenvalues): how much longer a unit step in z is in x."""
    total = np.sum(np.log(frame.scale))
    if isinstance(frame, LowRank):
        total += np.sum(np.log1p(frame.stretch))
    return float(total / len(frame.scale))


def rank(frame: Metric) -> int:
    """Directions of the metric's own."""
    return int(np.count_nonzero(frame.stretch)) if isinstance(frame, LowRank) else 0


def _leading(x: np.ndarray, g: np.ndarray) -> np.ndarray:
    """An orthonormal basis (dim, k) of the directions in which draws and gradients vary most."""
    every = -(-len(x) // MAX_ROWS)
    found = []
    for values in (x[::every], g[::every]):
        centred = values - values.mean(axis=0)
        _, left = np.linalg.eigh(centred @ centred.T)
        found.append(centred.T @ left[:, -(RANKS[0] // 2) :])
    basis, _ = np.linalg.qr(np.concatenate(found, axis=1))
    return basis


def _between(a, b):
    """The geometric mean of a and b⁻¹."""
    values, vectors = np.linalg.eigh(b)
    values = np.maximum(values, 1e-12)
    root, inverse = ((vectors * values**power) @ vectors.T for power in (0.5, -0.5))
    values, vectors = np.linalg.eigh(root @ a @ root)
    middle = (vectors * np.sqrt(np.maximum(values, 1e-24))) @ vectors.T
    mean = inverse @ middle @ inverse
    return (mean + mean.T) / 2


def _shaped(metric: Diagonal) -> Metric:
    """In the form that fitted metrics of this dimension have."""
    dim = len(metric.scale)
    if dim > SMALL:
        return metric
    return _padded(metric.scale, np.zeros((dim, 0)), np.zeros(0))


def _square(dim, k) -> bool:
    """Whether a matrix, d² numbers, takes less time than k directions, 2kd there and back."""
    return 2 * k >= dim


def _padded(scale, vectors, stretch):
    dim, k = vectors.shape
    size = next((size for size in RANKS if k <= size and not _square(dim, size)), dim)
    padding = size - k
    return LowRank(
        scale,
        np.concatenate([vectors, np.zeros((dim, padding))], axis=1),
        np.concatenate([stretch, np.zeros(padding)]),
    )
