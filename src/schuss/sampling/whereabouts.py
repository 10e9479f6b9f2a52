"""Where the chains are and where they are heading."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from schuss.core.kernel import Point
from schuss.tuning.metric import Metric, score


class Whereabouts(NamedTuple):
    """Positions, directions, energies and gradients of all chains, on the host."""

    x: np.ndarray  # (chains, dim)
    u: np.ndarray
    energy: np.ndarray  # (chains,)
    g: np.ndarray


def begin(rng: np.random.Generator, x: np.ndarray) -> Whereabouts:
    """At `x` in random directions, before anything is evaluated."""
    return Whereabouts(x, directions(rng, x.shape), np.zeros(len(x)), np.zeros_like(x))


def after(state: Any, metric: Metric, host: Callable) -> Whereabouts:
    """Where a state of a sampler in the coordinates of a metric is."""
    z, u, energy, pull = (
        np.asarray(host(part), float) for part in (state.x, state.u, state.energy, state.g)
    )
    return Whereabouts(metric.forward(np, z), u, energy, score(metric, pull))


def within(now: Whereabouts, metric: Metric) -> Point:
    """The same in the coordinates of a metric, at |v| = 1."""
    z = metric.inverse(np, now.x)
    return Point(z, now.u, np.zeros(len(z)), now.energy, metric.pull(np, z, now.g))


def restarted(now: Whereabouts, lost: np.ndarray, rng: np.random.Generator) -> Whereabouts:
    """Chains that are lost begin again where a good one is, each in a direction of its own."""
    if not lost.any():
        return now
    chosen = rng.choice(np.flatnonzero(~lost), lost.sum())
    x, u, energy, g = (part.copy() for part in now)
    x[lost], energy[lost], g[lost] = x[chosen], energy[chosen], g[chosen]
    u[lost] = directions(rng, (int(lost.sum()), x.shape[1]))
    return Whereabouts(x, u, energy, g)


def directions(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Unit vectors, uniform on the sphere."""
    u = rng.standard_normal(shape)
    return u / np.linalg.norm(u, axis=-1, keepdims=True)
