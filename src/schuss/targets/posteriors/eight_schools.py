"""Eight schools (Rubin 1981): coaching effects θ_j with measured y_j and known errors s_j.

μ ~ N(0, 5²), τ ~ HalfCauchy(5), θ_j ~ N(μ, τ²), y_j ~ N(θ_j, s_j²).
"""

import functools
import math

from schuss.targets.constants import constant
from schuss.targets.draws import normal_start
from schuss.targets.posteriors.logistic import sigmoid, softplus
from schuss.targets.posteriors.reference import reference
from schuss.targets.target import Array, Namespace, Target

EFFECT = (28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0)
ERROR = (15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0)

_effect, _weight = constant(EFFECT), constant([1 / s**2 for s in ERROR])


def _prior(xp: Namespace, mu: Array, log_tau: Array) -> Array:
    """−log p(μ, log τ) = μ²/50 + log(1 + τ²/25) − log τ."""
    return mu**2 / 50 + softplus(xp, 2 * (log_tau - math.log(5))) - log_tau


def _prior_slope(xp: Namespace, log_tau: Array) -> Array:
    return 2 * sigmoid(xp, 2 * (log_tau - math.log(5))) - 1


@functools.cache
def eight_schools() -> Target:
    """Non-centred, x = (μ, log τ, t_1 … t_8) with θ_j = μ + τ t_j.

    E = μ²/50 + log(1 + τ²/25) − log τ + ½ Σ t_j² + ½ Σ (y_j − θ_j)²/s_j².
    """

    def misfit(xp: Namespace, x: Array) -> Array:
        return x[:, :1] + xp.exp(x[:, 1:2]) * x[:, 2:] - _effect(xp, x)

    def energy(xp: Namespace, x: Array) -> Array:
        squares = x[:, 2:] ** 2 + misfit(xp, x) ** 2 * _weight(xp, x)
        return _prior(xp, x[:, 0], x[:, 1]) + xp.sum(squares, axis=-1) / 2

    def gradient(xp: Namespace, x: Array) -> Array:
        mu, log_tau, t = x[:, :1], x[:, 1:2], x[:, 2:]
        pull = misfit(xp, x) * _weight(xp, x)
        along = xp.exp(log_tau) * pull
        return xp.concat(
            [
                mu / 25 + xp.sum(pull, axis=-1, keepdims=True),
                _prior_slope(xp, log_tau) + xp.sum(along * t, axis=-1, keepdims=True),
                t + along,
            ],
            axis=-1,
        )

    return Target(
        name="eight-schools",
        dim=10,
        energy=energy,
        gradient=gradient,
        start=normal_start(10),
        truth=reference("eight-schools"),
    )


@functools.cache
def eight_schools_centred() -> Target:
    """Centred, x = (μ, log τ, θ_1 … θ_8): a funnel in log τ.

    E = μ²/50 + log(1 + τ²/25) + 7 log τ + ½ Σ (θ_j − μ)²/τ² + ½ Σ (y_j − θ_j)²/s_j².
    """

    def energy(xp: Namespace, x: Array) -> Array:
        mu, log_tau, theta = x[:, :1], x[:, 1:2], x[:, 2:]
        spread = ((theta - mu) * xp.exp(-log_tau)) ** 2
        squares = spread + (theta - _effect(xp, x)) ** 2 * _weight(xp, x)
        return _prior(xp, x[:, 0], x[:, 1]) + 8 * x[:, 1] + xp.sum(squares, axis=-1) / 2

    def gradient(xp: Namespace, x: Array) -> Array:
        mu, log_tau, theta = x[:, :1], x[:, 1:2], x[:, 2:]
        scaled = (theta - mu) * xp.exp(-log_tau)
        back = scaled * xp.exp(-log_tau)
        return xp.concat(
            [
                mu / 25 - xp.sum(back, axis=-1, keepdims=True),
                _prior_slope(xp, log_tau) + 8 - xp.sum(scaled**2, axis=-1, keepdims=True),
                back + (theta - _effect(xp, x)) * _weight(xp, x),
            ],
            axis=-1,
        )

    return Target(
        name="eight-schools-centred",
        dim=10,
        energy=energy,
        gradient=gradient,
        start=normal_start(10),
        truth=reference("eight-schools-centred"),
    )
