"""Necks: v ~ N(0, s²) gives the scale of its children, z_c | v ~ N(m_c(v), e^{2ℓ_c(v)})."""

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from schuss.targets.constants import constant
from schuss.targets.draws import normal_start
from schuss.targets.target import Array, Function, Namespace, Target, Truth

_LIMIT = 300.0
"""The bound on |ℓ|, beyond 12 standard deviations of v: e^{−2ℓ} stays finite in float64."""


class Profile(NamedTuple):
    """h(v), of which log standard deviations are made, and its slope."""

    value: Function
    slope: Function


_LINEAR = Profile(lambda xp, v: v, lambda xp, v: xp.ones_like(v))
_SQUARE = Profile(lambda xp, v: v**2, lambda xp, v: 2 * v)
_ABSOLUTE = Profile(lambda xp, v: xp.abs(v), lambda xp, v: xp.sign(v))


class Shape(NamedTuple):
    """ℓ = offset + h(v) Wᵀ and m = v Sᵀ, with W and S (children, parents); sds of the parents."""

    sds: np.ndarray
    profile: Profile
    offset: float
    weights: np.ndarray
    shift: np.ndarray
    rotated: bool = False

    @property
    def parents(self) -> int:
        """The number of parents, the first coordinates before the rotation."""
        return len(self.sds)

    @property
    def dim(self) -> int:
        """The number of parents and children."""
        return self.parents + len(self.weights)


def _one_parent(
    dim: int, sd: float, profile: Profile, slope: float, offset: float = 0.0, rotated: bool = False
) -> Shape:
    weights = np.full((dim - 1, 1), slope)
    return Shape(np.array([sd]), profile, offset, weights, np.zeros_like(weights), rotated)


_ROOT = math.sqrt(4.5)
_SUM = np.full((6, 2), 0.5)
_APART = np.repeat(np.eye(2) / 2, 3, axis=0)

SHAPES = {
    "neck-quadratic": _one_parent(3, 2.0, _SQUARE, -0.5, offset=2.0),
    "neck-rotated-5": _one_parent(5, 3.0, _LINEAR, 0.5, rotated=True),
    "neck-rotated-10": _one_parent(10, 3.0, _LINEAR, 0.5, rotated=True),
    "neck-absolute": _one_parent(6, 3.0, _ABSOLUTE, -0.5, offset=1.0),
    "neck-two-parents": Shape(np.array([_ROOT, _ROOT]), _LINEAR, 0.0, _SUM, 0 * _SUM),
    "neck-two-funnels": Shape(np.array([3.0, 3.0]), _LINEAR, 0.0, _APART, 0 * _APART, rotated=True),
    "neck-sheared": _one_parent(6, 3.0, _LINEAR, 0.5)._replace(shift=np.eye(5, 1)),
}


def _basis(shape: Shape) -> np.ndarray:
    """A fixed orthogonal matrix Q (dim, dim), x = Q y; the identity where nothing is rotated."""
    if not shape.rotated:
        return np.eye(shape.dim)
    normal = np.random.default_rng(1).standard_normal((shape.dim, shape.dim))
    basis, triangle = np.linalg.qr(normal)
    return basis * np.sign(np.diagonal(triangle))


def _scales(shape: Shape, v: np.ndarray) -> np.ndarray:
    """ℓ (n, children) of parents (n, parents)."""
    return shape.offset + shape.profile.value(np, v) @ shape.weights.T


def _truth(shape: Shape) -> Truth:
    """Gauss–Legendre quadrature over the parents; given these, every coordinate is normal.

    Each parent's range, ±16 standard deviations, is cut at 0, where |v| has its kink: e^{2v} still
    has its mass at 6 standard deviations.
    """
    node, weight = np.polynomial.legendre.leggauss(200)
    t = 8 * np.concatenate([node - 1, node + 1])
    p = np.tile(weight, 2) * np.exp(-(t**2) / 2)
    axes = np.meshgrid(*[t] * shape.parents, indexing="ij")
    shares = np.meshgrid(*[p] * shape.parents, indexing="ij")
    v = np.stack([axis.ravel() for axis in axes], axis=-1) * shape.sds
    p = np.prod([share.ravel() for share in shares], axis=0)
    p /= p.sum()
    scales, basis = _scales(shape, v), _basis(shape)
    mean = np.concatenate([v, v @ shape.shift.T], axis=-1) @ basis.T
    variance = np.exp(2 * scales) @ (basis[:, shape.parents :] ** 2).T
    first = p @ mean
    second = p @ (mean**2 + variance)
    fourth = p @ (mean**4 + 6 * mean**2 * variance + 3 * variance**2)
    return Truth(
        mean=first,
        variance=second - first**2,
        second_moment=second,
        second_variance=fourth - second**2,
        energy=shape.dim / 2 + float(p @ scales.sum(axis=-1)),
        log_z=shape.dim / 2 * math.log(2 * math.pi) + float(np.log(shape.sds).sum()),
    )


@functools.cache
def _neck(name: str) -> Target:
    """E = Σ v²/2s² + Σ_c (r_c²/2 + ℓ_c) with r_c = (z_c − m_c) e^{−ℓ_c} and ℓ clamped to ±300."""
    shape = SHAPES[name]
    k, dim = shape.parents, shape.dim
    rotation = _basis(shape)
    basis, sds = constant(rotation), constant(shape.sds)
    weights, shift = constant(shape.weights), constant(shape.shift)

    def parts(xp: Namespace, x: Array) -> tuple[Array, Array, Array]:
        y = x @ basis(xp, x) if shape.rotated else x
        v, z = y[:, :k], y[:, k:]
        scale = shape.offset + shape.profile.value(xp, v) @ weights(xp, x).T
        return v, z - v @ shift(xp, x).T, scale

    def energy(xp: Namespace, x: Array) -> Array:
        v, z, scale = parts(xp, x)
        scale = xp.clip(scale, -_LIMIT, _LIMIT)
        children = (z * xp.exp(-scale)) ** 2 / 2 + scale
        return xp.sum((v / sds(xp, x)) ** 2, axis=-1) / 2 + xp.sum(children, axis=-1)

    def gradient(xp: Namespace, x: Array) -> Array:
        v, z, scale = parts(xp, x)
        narrow = xp.exp(-xp.clip(scale, -_LIMIT, _LIMIT))
        r = z * narrow
        pull = xp.where(xp.abs(scale) < _LIMIT, 1 - r**2, xp.zeros_like(r))
        slope = pull @ weights(xp, x) * shape.profile.slope(xp, v)
        dv = v / sds(xp, x) ** 2 + slope - (r * narrow) @ shift(xp, x)
        dy = xp.concat([dv, r * narrow], axis=-1)
        return dy @ basis(xp, x).T if shape.rotated else dy

    def sample(rng: np.random.Generator, n: int) -> np.ndarray:
        v = shape.sds * rng.standard_normal((n, k))
        z = rng.standard_normal((n, dim - k)) * np.exp(_scales(shape, v)) + v @ shape.shift.T
        return np.concatenate([v, z], axis=-1) @ rotation.T

    def whiten(x: np.ndarray) -> np.ndarray:
        v, z, scale = parts(np, x)
        return np.concatenate([v / shape.sds, z * np.exp(-scale)], axis=-1)

    return Target(
        name=name,
        dim=dim,
        energy=energy,
        gradient=gradient,
        start=normal_start(dim),
        sample=sample,
        truth=_truth(shape),
        whiten=whiten,
    )


def parents(name: str, x: np.ndarray) -> np.ndarray:
    """The parents (…, parents) of positions (…, dim) on the neck `name`.

    They are independent N(0, s²), with s in `SHAPES[name].sds`.
    """
    shape = SHAPES[name]
    return x @ _basis(shape)[:, : shape.parents]


def neck_quadratic() -> Target:
    """Narrow on both sides: v ~ N(0, 4), log sd of two children 2 − v²/2."""
    return _neck("neck-quadratic")


def neck_rotated_5() -> Target:
    """A funnel in a fixed random basis: v ~ N(0, 9), log sd of four children v/2."""
    return _neck("neck-rotated-5")


def neck_rotated_10() -> Target:
    """A funnel in a fixed random basis: v ~ N(0, 9), log sd of nine children v/2."""
    return _neck("neck-rotated-10")


def neck_absolute() -> Target:
    """Narrow on both sides: v ~ N(0, 9), log sd of five children 1 − |v|/2."""
    return _neck("neck-absolute")


def neck_two_parents() -> Target:
    """A sum as the scale: v, w ~ N(0, 4.5), log sd of six children (v + w)/2."""
    return _neck("neck-two-parents")


def neck_two_funnels() -> Target:
    """Two funnels of three children each, in a common random basis: v, w ~ N(0, 9)."""
    return _neck("neck-two-funnels")


def neck_sheared() -> Target:
    """A funnel, v ~ N(0, 9), log sd of five children v/2, one of which has the mean v."""
    return _neck("neck-sheared")


NECKS: dict[str, Callable[[], Target]] = {
    "neck-quadratic": neck_quadratic,
    "neck-rotated-5": neck_rotated_5,
    "neck-rotated-10": neck_rotated_10,
    "neck-absolute": neck_absolute,
    "neck-two-parents": neck_two_parents,
    "neck-two-funnels": neck_two_funnels,
    "neck-sheared": neck_sheared,
}
