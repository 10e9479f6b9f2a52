"""The flow with partial noise and a step size of its own for each chain, set by its energy error.

The error of a step grows like ε³, so its square, over ε⁶ and averaged with a memory ρ, says which
step would make the error that is wanted:

    S ← ρS + ξ/ε⁶    T ← ρT + 1    ε ← (S/(T ξ*))^(−1/6),    ξ = (ΔE + κΔr)²/d

within [shrink, grow] times the last one; with both at 1 the step stays. The state holds Sε⁶, which
can't overflow. A step whose error isn't finite or beyond all bounds isn't made: the chain stays and
gets a fresh velocity. Steps have two stages; how much of the kick comes first is a parameter.
"""

import functools
from typing import Any, NamedTuple

from schuss.core.dynamics import Dynamics, leap, observe, start, work
from schuss.core.integrators import MINIMAL_NORM, two_stage
from schuss.core.kernel import Info, Kernel, Noise, Point, current, everyone, finite, select
from schuss.core.refresh import forgetting

HOPELESS = 1000.0
"""A step with a larger error is refused."""


class State(NamedTuple):
    """A point in phase space, and what the chain knows of its step size."""

    x: Any
    u: Any
    r: Any
    energy: Any
    g: Any
    step_size: Any
    errors: Any  # Sε⁶
    count: Any  # T


class Params(NamedTuple):
    """First step, κ, ν²'s exponent 2/L, the error that is wanted, ρ, and the bounds of a change.

    Last the share λ of the first kick.
    """

    step_size: Any
    kappa: Any
    rate: Any
    wanted: Any
    memory: Any
    shrink: Any
    grow: Any
    longest: Any
    kick: Any = MINIMAL_NORM.kicks[0]


@functools.cache
def kernel(dynamics: Dynamics) -> Kernel:
    """Build the kernel from what is fixed when it is compiled."""

    def init(xp, x, energy, g, noise: Noise, params: Params) -> State:
        point = start(xp, dynamics, x, energy, g, noise.normal)
        nothing = xp.zeros_like(energy)
        first = nothing + params.step_size
        return State(*point, step_size=first, errors=nothing, count=nothing)

    def step(xp, grad_fn, state: State, noise: Noise, params: Params) -> tuple[State, Info]:
        here, h, dim = Point(*state[:5]), state.step_size, state.x.shape[-1]
        scheme = two_stage(params.kick)
        there = leap(xp, grad_fn, dynamics, scheme, here, h, params.kappa, roughly=True)
        error = work(here, there, params.kappa)
        sound = finite(xp, there.energy, there.g) & (xp.abs(error) < HOPELESS)
        fresh = here._replace(u=dynamics.velocity(xp, noise.normal))
        point = select(xp, sound, there, fresh)
        nu = forgetting(xp, h * params.rate, dim)
        point = point._replace(u=dynamics.nudge(xp, point.u, noise.normal, nu))

        worst = xp.full_like(error, HOPELESS)
        squared = xp.where(sound, error, worst) ** 2 / dim
        errors = params.memory * state.errors + squared
        count = params.memory * state.count + 1
        # A step without any error at all must not divide by zero.
        best = h * (errors / count / params.wanted + 1e-30) ** (-1 / 6)
        best = xp.clip(best, h * params.shrink, h * params.grow)
        best = xp.where(best > params.longest, params.longest, best)
        errors = errors * (best / h) ** 6
        new = State(*point, step_size=best, errors=errors, count=count)
        info = Info(xp.zeros_like(error), error, xp.full_like(error, float("nan")), sound)
        return new, info

    return Kernel(
        init,
        step,
        observe,
        current,
        alive=lambda xp, state: everyone(xp, state.energy),
        normal=True,
        coarse=True,
        uniforms=0,
        gradients=MINIMAL_NORM.gradients,
    )
