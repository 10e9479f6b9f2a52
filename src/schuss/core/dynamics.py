"""Hamiltonian dynamics as two exactly solvable halves: a kick and a drift.

    scaled ESH        u turns as in kick.py     x += h u                  (Eq. 6)
    q-Hamiltonian     v −= h g                  x += h v/(v²/d)^q         (App. A.1)

q = 0 is Newton's dynamics, on which HMC and Langevin stand; q = 1 is the un-scaled ESH dynamics
of Eq. 2, whose leapfrog has the step s = d/v² of Eq. 4. What the momentum gains in a kick is Δr
for the scaled flow, where a Metropolis test multiplies it by d − 1 (the Jacobian) and the
Hamiltonian by κ, and ΔK for the others, which both take as it is.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from schuss.core import kick, refresh
from schuss.core.integrators import Integrator
from schuss.core.kernel import Point, Seen
from schuss.core.weights import hamiltonian


class Dynamics(NamedTuple):
    """A flow given by its halves. A kick is prepared once and may then be taken at several h."""

    approach: Callable  # (xp, u, g, kappa) → boost
    turn: Callable  # (xp, boost, h) → u
    turn_roughly: Callable  # the same, but for rounding errors of |u|
    gain: Callable  # (xp, boost, h) → (chains,)
    log_elapsed: Callable  # (xp, boost, h) → (chains,), log of the time of the Hamiltonian
    drift: Callable  # (xp, x, u, h) → x
    velocity: Callable  # (xp, normal) → u
    nudge: Callable  # (xp, u, normal, nu) → u


def _straight(xp, x, u, h):
    return x + kick.column(h) * u


ESH = Dynamics(
    kick.approach,
    kick.turn,
    kick.turn_roughly,
    kick.gain,
    kick.log_elapsed,
    _straight,
    refresh.direction,
    refresh.partial,
)
"""The scaled ESH flow. Its velocity is a unit vector."""


def log_q(xp, z, q):
    """The q-logarithm of Tsallis, (z^(1−q) − 1)/(1 − q), the logarithm at q = 1."""
    return xp.log(z) if q == 1 else (z ** (1 - q) - 1) / (1 - q)


def kinetic(xp, v, q):
    """K_q(v) = d/2 log_q(v²/d): ½v² up to a constant at q = 0, K_ESH of Eq. 1 at q = 1."""
    dim = v.shape[-1]
    return dim / 2 * log_q(xp, xp.sum(v * v, axis=-1) / dim, q)


def q_dynamics(q: float) -> Dynamics:
    """The un-scaled dynamics of App. A.1, from Newton (q = 0) to ESH (q = 1)."""
    return _q_dynamics(float(q))


@functools.cache
def _q_dynamics(q: float) -> Dynamics:

    def approach(xp, v, g, kappa):
        return v, g

    def turn(xp, boost, h):
        v, g = boost
        return v - h[..., None] * g

    def gain(xp, boost, h):
        v, g = boost
        if q == 0:
            # ½(|v − hg|² − |v|²), without the cancellation of two squares.
            step = h[..., None] * g
            return 0.5 * xp.sum(step * (step - 2 * v), axis=-1)
        return kinetic(xp, turn(xp, boost, h), q) - kinetic(xp, v, q)

    def log_elapsed(xp, boost, h):
        return xp.log(h) + xp.zeros_like(boost[0][:, 0])

    def drift(xp, x, v, h):
        if q == 0:
            return _straight(xp, x, v, h)
        return x + h[..., None] * v / (xp.sum(v * v, axis=-1, keepdims=True) / x.shape[-1]) ** q

    def velocity(xp, normal):
        return normal

    def nudge(xp, v, normal, nu):
        """The Ornstein–Uhlenbeck step, which keeps N(0, I)."""
        scale = nu[..., None]
        return (v + scale * normal) / xp.sqrt(1 + scale * scale)

    return Dynamics(approach, turn, turn, gain, log_elapsed, drift, velocity, nudge)


NEWTON = q_dynamics(0)


def start(xp, dynamics: Dynamics, x, energy, g, normal) -> Point:
    """A point with a fresh velocity and r = 0."""
    return Point(x, dynamics.velocity(xp, normal), xp.zeros_like(energy), energy, g)


def observe(xp, state, params) -> Seen:
    """What a state that begins with a synchronised point shows."""
    conserved = hamiltonian(state.energy, state.r, params.kappa)
    return Seen(state.x, state.u, state.r, state.energy, conserved)


def flip(point: Point) -> Point:
    """Reverse the velocity: the flow then runs backwards."""
    return point._replace(u=-point.u)


def prepare(xp, dynamics: Dynamics, u, g, share: Any, step_size, kappa):
    """A kick of a share of the step and its length; back in time it is a kick with −g.

    A share that isn't known when the kernel is compiled is positive.
    """
    known = isinstance(share, float)
    if known and share < 0:
        g, share = -g, -share
    h = step_size if known and share == 1 else share * step_size
    return dynamics.approach(xp, u, g, kappa), h


def _kicked(xp, dynamics, point, share, step_size, kappa, roughly) -> Point:
    boost, h = prepare(xp, dynamics, point.u, point.g, share, step_size, kappa)
    turn = dynamics.turn_roughly if roughly else dynamics.turn
    return point._replace(u=turn(xp, boost, h), r=point.r + dynamics.gain(xp, boost, h))


def depart(
    xp,
    dynamics: Dynamics,
    integrator: Integrator,
    point: Point,
    step_size,
    kappa,
    *,
    roughly: bool = False,
) -> Point:
    """The first kick of a step, for which a gradient is at hand."""
    return _kicked(xp, dynamics, point, integrator.kicks[0], step_size, kappa, roughly)


def arrive(
    xp,
    grad_fn,
    dynamics: Dynamics,
    integrator: Integrator,
    point: Point,
    step_size,
    kappa,
    *,
    roughly: bool = False,
    wall: Callable | None = None,
) -> Point:
    """The rest of the step, from a point that has departed to the next synchronised one.

    `wall` is a function of positions and velocities, for a box.
    """
    for a, b in zip(integrator.drifts, integrator.kicks[1:], strict=True):
        x, u = dynamics.drift(xp, point.x, point.u, a * step_size), point.u
        if wall is not None:
            x, u = wall(x, u)
        energy, g = grad_fn(x)
        point = point._replace(x=x, u=u, energy=energy, g=g)
        point = _kicked(xp, dynamics, point, b, step_size, kappa, roughly)
    return point


def leap(
    xp,
    grad_fn,
    dynamics: Dynamics,
    integrator: Integrator,
    point: Point,
    step_size,
    kappa,
    *,
    roughly: bool = False,
    wall: Callable | None = None,
) -> Point:
    """One whole step, from a synchronised point to the next (Eq. 16).

    `roughly` leaves it to noise that follows to normalise the velocity.
    """
    how = dynamics, integrator
    point = depart(xp, *how, point, step_size, kappa, roughly=roughly)
    return arrive(xp, grad_fn, *how, point, step_size, kappa, roughly=roughly, wall=wall)


def work(before: Point, after: Point, volume):
    """−log of the Metropolis ratio: ΔE + (d−1)Δr for the scaled flow, ΔE + ΔK for the others."""
    return after.energy - before.energy + volume * (after.r - before.r)
