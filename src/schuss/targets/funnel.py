"""Neal's funnel as the paper has it: y ~ N(0, 9), x_i | y ~ N(0, e^{−y}), coordinates (y, x)."""

import functools
import math

import numpy as np

from schuss.targets.draws import normal_start
from schuss.targets.target import Array, Namespace, Target, Truth

_EXPONENT_LIMIT = 25.0


def _clamped(xp: Namespace, y: Array) -> Array:
    # `clip` writes in place, which PyTorch 2.9 can't map.
    limit = xp.full_like(y, _EXPONENT_LIMIT)
    return xp.where(y < -limit, -limit, xp.where(y > limit, limit, y))


@functools.cache
def funnel(dim: int = 20, y_limit: float = math.inf) -> Target:
    """E = y²/18 + ½ e^c Σ x_i² − (dim − 1) c/2 with c = clamp(y, ±25).

    The clamp lies beyond eight standard deviations of y and leaves the moments as they are. In the
    last term it keeps y normal: with y itself there, nearly all mass would lie at y = 9(dim − 1)/2.
    `y_limit=11` clamps y in the exact sample too, as the paper's public code does; that changes
    E[x_i²], a quarter of which comes from y < −11.
    """
    if dim < 2:
        raise ValueError(f"dim must be at least 2, got {dim}; pass e.g. dim=20")
    rest = dim - 1

    def energy(xp: Namespace, z: Array) -> Array:
        y, x = z[:, 0], z[:, 1:]
        c = _clamped(xp, y)
        return y**2 / 18 + xp.exp(c) * xp.sum(x**2, axis=-1) / 2 - rest / 2 * c

    def gradient(xp: Namespace, z: Array) -> Array:
        y, x = z[:, 0], z[:, 1:]
        precision = xp.exp(_clamped(xp, y))
        pull = precision * xp.sum(x**2, axis=-1) / 2 - rest / 2
        dy = y / 9 + xp.where(xp.abs(y) < _EXPONENT_LIMIT, pull, xp.zeros_like(y))
        return xp.concat([dy[:, None], precision[:, None] * x], axis=-1)

    def sample(rng: np.random.Generator, n: int) -> np.ndarray:
        y = np.clip(3 * rng.standard_normal((n, 1)), -y_limit, y_limit)
        return np.concatenate([y, rng.standard_normal((n, rest)) * np.exp(-y / 2)], axis=-1)

    second = np.array([9.0] + [math.exp(4.5)] * rest)
    fourth = np.array([3 * 81.0] + [3 * math.exp(18.0)] * rest)
    return Target(
        name="funnel",
        dim=dim,
        energy=energy,
        gradient=gradient,
        start=normal_start(dim),
        sample=sample,
        truth=Truth(
            mean=np.zeros(dim),
            variance=second,
            second_moment=second,
            second_variance=fourth - second**2,
            energy=dim / 2,
            log_z=(math.log(9.0) + dim * math.log(2 * math.pi)) / 2,
        ),
        whiten=lambda z: np.concatenate([z[:, :1] / 3, z[:, 1:] * np.exp(z[:, :1] / 2)], axis=-1),
    )
