"""The flow with partial noise and no Metropolis test, one gradient at a time.

A step of an integrator with m gradients takes m calls: the state carries the number of the next
one, its stage. A step whose energy error ΔE + κΔr isn't finite or beyond all bounds isn't made: the
chain stays where it is and gets a fresh velocity.
"""

import functools
from typing import Any, NamedTuple

from schuss.core.dynamics import Dynamics, prepare, start, work
from schuss.core.integrators import Integrator
from schuss.core.kernel import Info, Kernel, Noise, Point, Seen, current, everyone, finite, select

MAX_ERROR = 1000.0
"""A step with a larger error is refused."""


class State(NamedTuple):
    """Where the chain is, and the step under way."""

    x: Any
    u: Any
    energy: Any
    g: Any
    to_x: Any
    to_u: Any  # after the kick before the next drift
    r: Any  # log|v| gained in this step
    stage: Any  # gradients of this step so far, (chains,)


class Params(NamedTuple):
    """ε, κ and the noise ν."""

    step_size: Any
    kappa: Any
    nu: Any


@functools.cache
def kernel(dynamics: Dynamics, integrator: Integrator) -> Kernel:
    """Build the kernel from what is fixed when it is compiled."""

    def coefficient(xp, values, stage):
        """The one of a palindrome's coefficients that belongs to each chain's stage."""
        chosen = xp.full_like(stage, values[0])
        for k, value in enumerate(values[1:], 1):
            chosen = xp.where(stage == k, xp.full_like(stage, value), chosen)
        return chosen

    def kicked(xp, point: Point, share, params: Params) -> Point:
        boost, h = prepare(xp, dynamics, point.u, point.g, share, params.step_size, params.kappa)
        gained = point.r + dynamics.gain(xp, boost, h)
        return point._replace(u=dynamics.turn_roughly(xp, boost, h), r=gained)

    def init(xp, x, energy, g, noise: Noise, params: Params) -> State:
        here = start(xp, dynamics, x, energy, g, noise.normal)
        there = kicked(xp, here, integrator.kicks[0], params)
        return State(x, here.u, energy, g, x, there.u, there.r, xp.zeros_like(energy))

    def before(xp, state: State, params: Params):
        share = coefficient(xp, integrator.drifts, state.stage)
        return dynamics.drift(xp, state.to_x, state.to_u, share * params.step_size)

    def step(xp, grad_fn, state: State, noise: Noise, params: Params) -> tuple[State, Info]:
        x = before(xp, state, params)
        energy, g = grad_fn(x)
        nothing = xp.zeros_like(energy)
        here = Point(state.x, state.u, nothing, state.energy, state.g)
        there = Point(x, state.to_u, state.r, energy, g)
        there = kicked(xp, there, coefficient(xp, integrator.kicks[1:], state.stage), params)
        complete = state.stage == integrator.gradients - 1
        error = work(here, there, params.kappa)
        sound = finite(xp, energy, g) & (xp.abs(error) < MAX_ERROR)

        fresh = here._replace(u=dynamics.velocity(xp, noise.normal))
        moved = select(xp, sound, there._replace(r=nothing), fresh)
        u = dynamics.nudge(xp, moved.u, noise.normal, params.nu)
        onward = kicked(xp, moved._replace(u=u), integrator.kicks[0], params)

        unmoved = State(
            state.x, state.u, state.energy, state.g, x, there.u, there.r, state.stage + 1
        )
        ended = State(moved.x, u, moved.energy, moved.g, moved.x, onward.u, onward.r, nothing)
        none = xp.full_like(error, float("nan"))
        return select(xp, complete, ended, unmoved), Info(nothing, error, none, complete)

    return Kernel(
        init,
        step,
        lambda xp, state, params: Seen(
            state.x, state.u, xp.zeros_like(state.r), state.energy, state.energy
        ),
        current,
        alive=lambda xp, state: everyone(xp, state.energy),
        normal=True,
        coarse=True,
        uniforms=0,
        gradients=1,
        before=before,
    )
