"""Stochastic volatility: returns whose log-variance is a stationary autoregression."""

import functools

import numpy as np

from schuss.targets.constants import constant
from schuss.targets.draws import normal_start
from schuss.targets.posteriors.logistic import sigmoid, softplus
from schuss.targets.posteriors.reference import reference
from schuss.targets.target import Array, Namespace, Target

DAYS = 100


def returns() -> np.ndarray:
    """100 daily returns in per cent, drawn with seed 0 at φ = .95, m = −.5, σ = .3."""
    rng = np.random.default_rng(0)
    shock, sign = rng.standard_normal(DAYS), rng.standard_normal(DAYS)
    level = np.empty(DAYS)
    level[0] = shock[0] / np.sqrt(1 - 0.95**2)
    for day in range(1, DAYS):
        level[day] = 0.95 * level[day - 1] + shock[day]
    return sign * np.exp((-0.5 + 0.3 * level) / 2)


def _later(xp: Namespace, v: Array, days: int) -> Array:
    return xp.concat([xp.zeros_like(v[:, :days]), v[:, :-days]], axis=-1)


def _earlier(xp: Namespace, v: Array, days: int) -> Array:
    return xp.concat([v[:, days:], xp.zeros_like(v[:, :days])], axis=-1)


def _filter(xp: Namespace, shock: Array, phi: Array, move) -> Array:
    """v_t = φ v_{t−1} + u_t without a loop over t: 1/(1 − φB) = Π_k (1 + (φB)^{2^k})."""
    days, factor = 1, phi
    while days < DAYS:
        shock = shock + factor * move(xp, shock, days)
        days, factor = 2 * days, factor**2
    return shock


@functools.cache
def stochastic_volatility() -> Target:
    """x = (logit φ, m, log σ, z_1 … z_100), non-centred: h = m + σ v, v_t = φ v_{t−1} + z_t.

    v_1 = z_1/√(1 − φ²), r_t ~ N(0, e^{h_t}), φ ~ Beta(20, 1.5), m ~ N(0, 3²), σ ~ HalfNormal(1).
    E = −20 log φ − 1.5 log(1 − φ) + m²/18 + σ²/2 − log σ + ½ Σ z_t² + ½ Σ (h_t + r_t² e^{−h_t}).
    """
    square = constant(returns() ** 2)

    def parts(xp: Namespace, x: Array) -> tuple[Array, Array, Array, Array]:
        """φ, √(1 − φ²), v and h."""
        phi = sigmoid(xp, x[:, :1])
        root = xp.sqrt(sigmoid(xp, -x[:, :1]) * (1 + phi))
        shock = xp.concat([x[:, 3:4] / root, x[:, 4:]], axis=-1)
        v = _filter(xp, shock, phi, _later)
        return phi, root, v, x[:, 1:2] + xp.exp(x[:, 2:3]) * v

    def energy(xp: Namespace, x: Array) -> Array:
        h = parts(xp, x)[3]
        p, m, log_sigma = x[:, 0], x[:, 1], x[:, 2]
        persistence = 20 * softplus(xp, -p) + 1.5 * softplus(xp, p)
        scale = m**2 / 18 + xp.exp(2 * log_sigma) / 2 - log_sigma
        days = x[:, 3:] ** 2 + h + square(xp, x) * xp.exp(-h)
        return persistence + scale + xp.sum(days, axis=-1) / 2

    def gradient(xp: Namespace, x: Array) -> Array:
        phi, root, v, h = parts(xp, x)
        sigma = xp.exp(x[:, 2:3])
        slope_h = (1 - square(xp, x) * xp.exp(-h)) / 2
        slope_v = _filter(xp, sigma * slope_h, phi, _earlier)
        first = slope_v[:, :1] / root
        by_phi = xp.sum(slope_v * _later(xp, v, 1), axis=-1, keepdims=True)
        by_phi = by_phi + first * x[:, 3:4] * phi / root**2
        return xp.concat(
            [
                21.5 * phi - 20 + by_phi * phi * (1 - phi),
                x[:, 1:2] / 9 + xp.sum(slope_h, axis=-1, keepdims=True),
                sigma**2 - 1 + sigma * xp.sum(slope_h * v, axis=-1, keepdims=True),
                x[:, 3:4] + first,
                x[:, 4:] + slope_v[:, 1:],
            ],
            axis=-1,
        )

    return Target(
        name="stochastic-volatility",
        dim=3 + DAYS,
        energy=energy,
        gradient=gradient,
        start=normal_start(3 + DAYS),
        truth=reference("stochastic-volatility"),
    )
