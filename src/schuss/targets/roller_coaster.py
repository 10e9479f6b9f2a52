"""A track with two hills on a circle, for the time spent in (x, x + dx) against e^{−E}."""

import functools
import math

import numpy as np

from schuss.targets.draws import rejection, uniform_start
from schuss.targets.quadrature import quadrature_truth
from schuss.targets.target import Array, Namespace, Target


@functools.cache
def roller_coaster() -> Target:
    """E = 2 + cos(x − ½) + .8 cos 2x on [0, 2π), one dimension, periodic.

    Moments are those of x in [0, 2π); exact samples by rejection from the uniform density.
    """

    def energy(xp: Namespace, x: Array) -> Array:
        return 2 + xp.cos(x[:, 0] - 0.5) + 0.8 * xp.cos(2 * x[:, 0])

    def gradient(xp: Namespace, x: Array) -> Array:
        return -xp.sin(x - 0.5) - 1.6 * xp.sin(2 * x)

    start = uniform_start(1, 0.0, 2 * math.pi)
    # x itself jumps at the seam, so its moments converge slowly there: midpoints and many of them.
    cell = 2 * math.pi / 200_000
    return Target(
        name="roller-coaster",
        dim=1,
        energy=energy,
        gradient=gradient,
        start=start,
        sample=rejection(start, accept=lambda x: np.exp(-energy(np, x))),
        truth=quadrature_truth(energy, (cell / 2,), (2 * math.pi + cell / 2,), 200_000),
        box=(np.zeros(1), np.full(1, 2 * math.pi)),
    )
