"""Gaussians: E = ½ xᵀ Σ⁻¹ x, with the paper's ill-conditioned and strongly correlated ones."""

import functools
import math
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from schuss.targets.constants import constant
from schuss.targets.draws import normal_start
from schuss.targets.target import Array, Namespace, Target, Truth


def _truth(variance: np.ndarray, log_det: float) -> Truth:
    dim = len(variance)
    return Truth(
        mean=np.zeros(dim),
        variance=variance,
        second_moment=variance,
        second_variance=2 * variance**2,
        energy=dim / 2,
        log_z=(dim * math.log(2 * math.pi) + log_det) / 2,
    )


def _diagonal(variances: np.ndarray, name: str) -> Target:
    dim, sd = len(variances), np.sqrt(variances)
    precision = constant(1 / variances)

    def gradient(xp: Namespace, x: Array) -> Array:
        return x * precision(xp, x)

    def energy(xp: Namespace, x: Array) -> Array:
        return xp.sum(x * gradient(xp, x), axis=-1) / 2

    return Target(
        name=name,
        dim=dim,
        energy=energy,
        gradient=gradient,
        start=normal_start(dim),
        sample=lambda rng, n: rng.standard_normal((n, dim)) * sd,
        truth=_truth(variances, float(np.log(variances).sum())),
        whiten=lambda x: x / sd,
    )


def _full(covariance: np.ndarray, name: str) -> Target:
    dim = len(covariance)
    root = np.linalg.cholesky(covariance)
    inverse_root = np.linalg.inv(root)
    precision = constant(inverse_root.T @ inverse_root)

    def gradient(xp: Namespace, x: Array) -> Array:
        return x @ precision(xp, x)

    def energy(xp: Namespace, x: Array) -> Array:
        return xp.sum(x * gradient(xp, x), axis=-1) / 2

    return Target(
        name=name,
        dim=dim,
        energy=energy,
        gradient=gradient,
        start=normal_start(dim),
        sample=lambda rng, n: rng.standard_normal((n, dim)) @ root.T,
        truth=_truth(np.diagonal(covariance).copy(), float(2 * np.log(np.diagonal(root)).sum())),
        whiten=lambda x: x @ inverse_root.T,
    )


def gaussian(covariance: ArrayLike, name: str = "gaussian") -> Target:
    """E = ½ xᵀ Σ⁻¹ x, for a covariance matrix (d, d) or the variances (d,) of a diagonal one."""
    sigma = np.asarray(covariance, dtype=np.float64)
    if sigma.ndim == 1 and sigma.size and np.all(sigma > 0) and np.all(np.isfinite(sigma)):
        return _diagonal(sigma, name)
    square = sigma.ndim == 2 and sigma.shape[0] == sigma.shape[1] and sigma.size > 0
    if square and np.allclose(sigma, sigma.T) and np.all(np.linalg.eigvalsh(sigma) > 0):
        return _full(sigma, name)
    raise ValueError(
        "covariance must be positive variances (d,) or a positive definite matrix (d, d), "
        f"got shape {sigma.shape}; pass e.g. covariance=[1.0, 4.0]"
    )


@functools.cache
def isotropic(dim: int = 10) -> Target:
    """The standard normal, E = ½ |x|²."""
    if dim < 1:
        raise ValueError(f"dim must be at least 1, got {dim}; pass e.g. dim=10")
    return gaussian(np.ones(dim), name="isotropic")


_ICG_VARIANCES = np.linspace(0.01, 1.0, 50)


@functools.cache
def icg() -> Target:
    """The paper's 50-D ill-conditioned Gaussian: variances linspace(.01, 1, 50)."""
    return gaussian(_ICG_VARIANCES, name="icg")


@functools.cache
def icg_rotated() -> Target:
    """The ill-conditioned Gaussian in a fixed random basis: no coordinate scaling undoes it."""
    normal = np.random.default_rng(0).standard_normal((50, 50))
    basis, triangle = np.linalg.qr(normal)
    basis = basis * np.sign(np.diagonal(triangle))
    covariance = (basis * _ICG_VARIANCES) @ basis.T
    return gaussian((covariance + covariance.T) / 2, name="icg-rotated")


@functools.cache
def scg() -> Target:
    """The paper's 2-D strongly correlated Gaussian: variances 1 and .01 along the diagonals."""
    return gaussian([[0.505, -0.495], [-0.495, 0.505]], name="scg")


@functools.cache
def scg_bias() -> Target:
    """`scg` with every chain started two units off along its long axis, at N((−2, 2), I)."""
    return replace(scg(), name="scg-bias", start=normal_start(2, mean=(-2.0, 2.0)))
