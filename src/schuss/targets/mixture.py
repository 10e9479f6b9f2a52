"""Mixtures of round Gaussians: E = −log Σ_k w_k N(x; m_k, sd² I), normalised so that Z = 1."""

import functools
import math
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from schuss.targets.constants import constant
from schuss.targets.draws import normal_start, point_start, uniform_start
from schuss.targets.logsumexp import logsumexp
from schuss.targets.quadrature import quadrature_truth
from schuss.targets.target import Array, Function, Namespace, Target, Truth


def _truth(means: np.ndarray, sd: float, weights: np.ndarray, energy: Function) -> Truth:
    dim = means.shape[1]
    mean = weights @ means
    second = weights @ means**2 + sd**2
    fourth = weights @ (means**4 + 6 * means**2 * sd**2) + 3 * sd**4
    expected = None
    if dim <= 2:
        lower, upper = means.min(axis=0) - 9 * sd, means.max(axis=0) + 9 * sd
        points = int(4 * np.max(upper - lower) / sd)
        expected = quadrature_truth(energy, lower, upper, points).energy
    return Truth(mean, second - mean**2, second, fourth - second**2, expected, 0.0)


def mixture(
    means: ArrayLike, sd: float, weights: ArrayLike | None = None, name: str = "mixture"
) -> Target:
    """Gaussians of standard deviation `sd` at `means` (k, dim), equally likely by default.

    E[E] is known in one and two dimensions only.
    """
    centres = np.asarray(means, dtype=np.float64)
    if centres.ndim != 2 or centres.size == 0:
        raise ValueError(
            f"means must have shape (k, dim), got {centres.shape}; pass one row per component"
        )
    if not (sd > 0 and math.isfinite(sd)):
        raise ValueError(f"sd must be positive and finite, got {sd}; pass e.g. sd=0.1")
    k, dim = centres.shape
    w = np.ones(k) if weights is None else np.asarray(weights, dtype=np.float64)
    if w.shape != (k,) or not np.all(w > 0):
        raise ValueError(
            f"weights must be {k} positive numbers, one per row of means, got {w.tolist()}; "
            "pass weights=None for equal ones"
        )
    w = w / w.sum()
    places = constant(centres)
    heights = constant(np.log(w) - dim * math.log(sd * math.sqrt(2 * math.pi)))
    scale = 1 / (2 * sd * sd)

    def log_terms(xp: Namespace, x: Array) -> tuple[Array, Array]:
        apart = x[:, None, :] - places(xp, x)[None, :, :]
        return apart, heights(xp, x)[None, :] - scale * xp.sum(apart**2, axis=-1)

    def energy(xp: Namespace, x: Array) -> Array:
        _, terms = log_terms(xp, x)
        return -logsumexp(xp, terms)

    def gradient(xp: Namespace, x: Array) -> Array:
        apart, terms = log_terms(xp, x)
        share = xp.exp(terms - logsumexp(xp, terms)[:, None])
        return 2 * scale * xp.sum(share[:, :, None] * apart, axis=1)

    def sample(rng: np.random.Generator, n: int) -> np.ndarray:
        return centres[rng.choice(k, size=n, p=w)] + sd * rng.standard_normal((n, dim))

    return Target(
        name=name,
        dim=dim,
        energy=energy,
        gradient=gradient,
        start=normal_start(dim),
        sample=sample,
        truth=_truth(centres, sd, w, energy),
    )


def _circle(k: int, radius: float) -> np.ndarray:
    angle = 2 * math.pi * np.arange(k) / k
    return radius * np.stack([np.cos(angle), np.sin(angle)], axis=-1)


@functools.cache
def mog() -> Target:
    """The paper's 2-D mixture: eight modes of sd .075 on a circle of radius ½, from N(0, I)."""
    return mixture(_circle(8, 0.5), 0.075, name="mog")


@functools.cache
def mog_prior() -> Target:
    """`mog` with every chain started at the mode (0, ½)."""
    return replace(mog(), name="mog-prior", start=point_start((0.0, 0.5)))


@functools.cache
def toy_mog() -> Target:
    """The data of the paper's toy energy model: radius 1, sd .15, chains from U[−2, 2]²."""
    return replace(
        mixture(_circle(8, 1.0), 0.15, name="toy-mog"), start=uniform_start(2, -2.0, 2.0)
    )
