"""A log-Gaussian Cox process on a line: counts whose log-rate is a Gaussian process.

The process is the Hilbert-space approximation (Solin & Särkkä 2020) of one with covariance
α² e^{−(s − t)²/2ℓ²}: sines on [−L, L], each with the spectral density at its frequency.
"""

import functools
import math

import numpy as np

from schuss.targets.constants import constant
from schuss.targets.draws import normal_start
from schuss.targets.posteriors.reference import reference
from schuss.targets.posteriors.table import table
from schuss.targets.target import Array, Namespace, Target

BINS, BASIS, HALF = 100, 47, 1.5

_place = np.linspace(-1, 1, BINS)
_frequency = math.pi * np.arange(1, BASIS + 1) / (2 * HALF)
SINES = np.sin(_frequency * (_place[:, None] + HALF)) / math.sqrt(HALF)


def counts() -> np.ndarray:
    """Counts in 100 bins of [−1, 1], drawn with seed 0 at a rate that rises, falls and wiggles."""
    log_rate = 1.0 + np.sin(3 * _place) + 0.6 * np.cos(9 * _place)
    return np.random.default_rng(0).poisson(np.exp(log_rate)).astype(np.float64)


@functools.cache
def gaussian_process() -> Target:
    """x = (c, log α, log ℓ, z_1 … z_47), non-centred, 50-D.

    f(t) = c + Σ_k s_k z_k sin_k(t), s_k = α (√2π ℓ)^½ e^{−ℓ² ω_k²/4}, n_t ~ Poisson(e^{f(t)});
    c ~ N(0, 2²), log α ~ N(0, 1), log ℓ ~ N(−1, .5²), z ~ N(0, 1).
    E = c²/8 + ½ log²α + 2 (log ℓ + 1)² + ½ Σ z_k² + Σ (e^{f(t)} − n_t f(t)).
    """
    sines, seen = table(SINES), constant(counts())
    square = constant(_frequency**2)

    def parts(xp: Namespace, x: Array) -> tuple[Array, Array, Array]:
        """ℓ² ω², s and f."""
        stretch = xp.exp(2 * x[:, 2:3]) * square(xp, x)
        size = xp.exp(x[:, 1:2] + x[:, 2:3] / 2 - stretch / 4) * (2 * math.pi) ** 0.25
        return stretch, size, x[:, :1] + (size * x[:, 3:]) @ sines(xp, x).T

    def energy(xp: Namespace, x: Array) -> Array:
        f = parts(xp, x)[2]
        c, log_size, log_length = x[:, 0], x[:, 1], x[:, 2]
        prior = c**2 / 8 + log_size**2 / 2 + 2 * (log_length + 1) ** 2
        misfit = xp.sum(xp.exp(f) - seen(xp, x) * f, axis=-1)
        return prior + xp.sum(x[:, 3:] ** 2, axis=-1) / 2 + misfit

    def gradient(xp: Namespace, x: Array) -> Array:
        stretch, size, f = parts(xp, x)
        slope = xp.exp(f) - seen(xp, x)
        pull = size * (slope @ sines(xp, x))
        along = pull * x[:, 3:]
        return xp.concat(
            [
                x[:, :1] / 4 + xp.sum(slope, axis=-1, keepdims=True),
                x[:, 1:2] + xp.sum(along, axis=-1, keepdims=True),
                4 * (x[:, 2:3] + 1) + xp.sum(along * (1 - stretch) / 2, axis=-1, keepdims=True),
                x[:, 3:] + pull,
            ],
            axis=-1,
        )

    return Target(
        name="gaussian-process",
        dim=3 + BASIS,
        energy=energy,
        gradient=gradient,
        start=normal_start(3 + BASIS),
        truth=reference("gaussian-process"),
    )
