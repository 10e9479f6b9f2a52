"""Quartic energies, on which the bias of un-weighted states is large and the truth is known."""

import functools
import math

import numpy as np

from schuss.targets.draws import normal_start, rejection
from schuss.targets.quadrature import quadrature_truth
from schuss.targets.target import Array, Namespace, Target, Truth


@functools.cache
def quartic(dim: int = 2) -> Target:
    """E = Σ x_i⁴/4, so E[E] = dim/4, and dim²/(4 (dim − 1)) under e^{−(dim−1)E/dim}.

    x⁴/4 is Gamma(1/4), which gives exact samples.
    """
    if dim < 1:
        raise ValueError(f"dim must be at least 1, got {dim}; pass e.g. dim=2")
    second = np.full(dim, 2 * math.gamma(0.75) / math.gamma(0.25))

    def sample(rng: np.random.Generator, n: int) -> np.ndarray:
        size = (4 * rng.gamma(0.25, size=(n, dim))) ** 0.25
        return size * rng.choice([-1.0, 1.0], size=(n, dim))

    return Target(
        name="quartic",
        dim=dim,
        energy=lambda xp, x: xp.sum(x**4, axis=-1) / 4,
        gradient=lambda xp, x: x**3,
        start=normal_start(dim),
        sample=sample,
        truth=Truth(
            mean=np.zeros(dim),
            variance=second,
            second_moment=second,
            second_variance=1 - second**2,
            energy=dim / 4,
            log_z=dim * math.log(2 * math.sqrt(2) * math.gamma(1.25)),
        ),
    )


@functools.cache
def coupled_quartic() -> Target:
    """E = (x₁⁴ + x₂⁴)/8 + x₁²/2 + (x₂ − x₁)²/2: E[E] = .781, and 1.479 under e^{−E/2}.

    Exact samples by rejection from the Gaussian part, 63 % of which are accepted.
    """

    def energy(xp: Namespace, x: Array) -> Array:
        first, second = x[:, 0], x[:, 1]
        return (first**4 + second**4) / 8 + (first**2 + (second - first) ** 2) / 2

    def gradient(xp: Namespace, x: Array) -> Array:
        first, second = x[:, 0], x[:, 1]
        pull = second - first
        return xp.stack([first**3 / 2 + first - pull, second**3 / 2 + pull], axis=-1)

    return Target(
        name="coupled-quartic",
        dim=2,
        energy=energy,
        gradient=gradient,
        start=normal_start(2),
        sample=rejection(
            propose=lambda rng, n: np.cumsum(rng.standard_normal((n, 2)), axis=-1),
            accept=lambda x: np.exp(-np.sum(x**4, axis=-1) / 8),
        ),
        truth=quadrature_truth(energy, (-5.0, -5.0), (5.0, 5.0), 201),
    )
