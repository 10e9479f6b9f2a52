"""Angles as directions in the plane: the line wound around a circle carries no finite mass.

An angle θ becomes (a, b) = r (cos θ, sin θ) with log r ~ N(0, σ²) of its own, so that

    log p(a, b) = log p(θ) − ½ (log r/σ)² − 2 log r,

whose angle has the density p(θ) exactly, on a ring without ends.
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

WIDTH = 0.3
"""σ: narrow enough to be a ring, wide enough for steps across it."""


class Circles:
    """Which of the coordinates of a flat position are angles; each has its b behind all others."""

    def __init__(self, is_angle: np.ndarray):
        self.is_angle, self.dim = is_angle, len(is_angle)
        count = int(is_angle.sum())
        self.partner = np.where(is_angle, self.dim - 1 + np.cumsum(is_angle), np.arange(self.dim))
        self.planar_dim = self.dim + count

    def angles(self, xp: Any, x: Any) -> Any:
        """Positions (…, planar_dim) → (…, dim) with θ where there was a."""
        if self.planar_dim == self.dim:
            return x
        a, b = x[..., : self.dim], x[..., self.partner]
        return xp.where(self.is_angle, xp.arctan2(b, a), a)

    def planar(self, x: np.ndarray) -> np.ndarray:
        """A position (dim,) with points of the circle in place of its angles."""
        turned = np.where(self.is_angle, np.cos(x), x)
        return np.concatenate([turned, np.sin(x[self.is_angle])])

    def logdensity(self, logdensity: Callable) -> Callable:
        """log p of one planar position from that of one with angles."""
        if self.planar_dim == self.dim:
            return logdensity

        def planar(x):
            a, b = x[: self.dim], x[self.partner]
            # Where there is no angle r is one and counts for nothing.
            log_r = 0.5 * jnp.log(jnp.where(self.is_angle, a * a + b * b, 1.0))
            ring = jnp.sum(-0.5 * (log_r / WIDTH) ** 2 - 2 * log_r)
            return logdensity(self.angles(jnp, x)) + ring

        return planar
