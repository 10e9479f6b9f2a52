"""A Brownian motion seen through noise, both scales unknown, the middle third unseen.

The data are those of Inference Gym's `BrownianMotionUnknownScalesMissingMiddleObservations`.
"""

import functools

import numpy as np

from schuss.targets.constants import constant
from schuss.targets.draws import normal_start
from schuss.targets.posteriors.reference import reference
from schuss.targets.target import Array, Namespace, Target

FIRST = (
    *(0.21592641, 0.118771404, -0.07945447, 0.037677474, -0.27885845),
    *(-0.1484156, -0.3250906, -0.22957903, -0.44110894, -0.09830782),
)
LAST = (
    *(-0.8786016, -0.83736074, -0.7384849, -0.8939254, -0.7774566),
    *(-0.70238715, -0.87771565, -0.51853573, -0.6948214, -0.6202789),
)

_seen = constant(FIRST + (0.0,) * 10 + LAST)
_mask = constant(np.repeat([1.0, 0.0, 1.0], 10))


@functools.cache
def brownian() -> Target:
    """x = (log σ, log s, l_1 … l_30), σ and s ~ LogNormal(0, 2), l_t ~ N(l_{t−1}, σ²), l_0 = 0.

    E = (log²σ + log²s)/8 + 30 log σ + Σ (l_t − l_{t−1})²/2σ² + 20 log s + Σ_seen (l_t − y_t)²/2s².
    """

    def parts(xp: Namespace, x: Array) -> tuple[Array, Array]:
        place = x[:, 2:]
        before = xp.concat([xp.zeros_like(place[:, :1]), place[:, :-1]], axis=-1)
        step = (place - before) * xp.exp(-x[:, :1])
        miss = (place - _seen(xp, x)) * _mask(xp, x) * xp.exp(-x[:, 1:2])
        return step, miss

    def energy(xp: Namespace, x: Array) -> Array:
        step, miss = parts(xp, x)
        scales = x[:, 0] ** 2 / 8 + 30 * x[:, 0] + x[:, 1] ** 2 / 8 + 20 * x[:, 1]
        return scales + xp.sum(step**2 + miss**2, axis=-1) / 2

    def gradient(xp: Namespace, x: Array) -> Array:
        step, miss = parts(xp, x)
        a, b = x[:, :1], x[:, 1:2]
        pull = step * xp.exp(-a)
        after = xp.concat([pull[:, 1:], xp.zeros_like(pull[:, :1])], axis=-1)
        return xp.concat(
            [
                a / 4 + 30 - xp.sum(step**2, axis=-1, keepdims=True),
                b / 4 + 20 - xp.sum(miss**2, axis=-1, keepdims=True),
                pull - after + miss * xp.exp(-b),
            ],
            axis=-1,
        )

    return Target(
        name="brownian",
        dim=32,
        energy=energy,
        gradient=gradient,
        start=normal_start(32),
        truth=reference("brownian"),
    )
