"""Rosenbrock's function as a density: independent curved valleys."""

import functools
import math

import numpy as np

from schuss.targets.draws import normal_start
from schuss.targets.target import Array, Namespace, Target, Truth


@functools.cache
def rosenbrock(dim: int = 36, width: float = 0.1) -> Target:
    """E = ½ Σ (a_i − 1)² + Σ (b_i − a_i²)²/2Q, x = (a, b), Q = `width`.

    a_i ~ N(1, 1) and b_i ~ N(a_i², Q), so samples and moments are exact: those of a are
    1, 2, 4, 10, 26, 76, 232, 764.
    """
    if dim < 2 or dim % 2:
        raise ValueError(f"dim must be even and at least 2, got {dim}; pass e.g. dim=36")
    if not (width > 0 and math.isfinite(width)):
        raise ValueError(f"width must be positive and finite, got {width}; pass e.g. width=0.1")
    pairs = dim // 2

    def energy(xp: Namespace, x: Array) -> Array:
        a, b = x[:, :pairs], x[:, pairs:]
        return xp.sum((a - 1) ** 2 + (b - a**2) ** 2 / width, axis=-1) / 2

    def gradient(xp: Namespace, x: Array) -> Array:
        a, b = x[:, :pairs], x[:, pairs:]
        off = (b - a**2) / width
        return xp.concat([a - 1 - 2 * a * off, off], axis=-1)

    def sample(rng: np.random.Generator, n: int) -> np.ndarray:
        a = 1 + rng.standard_normal((n, pairs))
        b = a**2 + math.sqrt(width) * rng.standard_normal((n, pairs))
        return np.concatenate([a, b], axis=-1)

    def whiten(x: np.ndarray) -> np.ndarray:
        a, b = x[:, :pairs], x[:, pairs:]
        return np.concatenate([a - 1, (b - a**2) / math.sqrt(width)], axis=-1)

    mean = np.repeat([1.0, 2.0], pairs)
    second = np.repeat([2.0, 10 + width], pairs)
    fourth = np.repeat([10.0, 764 + 60 * width + 3 * width**2], pairs)
    return Target(
        name="rosenbrock",
        dim=dim,
        energy=energy,
        gradient=gradient,
        start=normal_start(dim),
        sample=sample,
        truth=Truth(
            mean=mean,
            variance=second - mean**2,
            second_moment=second,
            second_variance=fourth - second**2,
            energy=dim / 2,
            log_z=pairs * (math.log(2 * math.pi) + math.log(width) / 2),
        ),
        whiten=whiten,
    )
