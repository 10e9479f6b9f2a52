"""Metropolis at the end of N steps: HMC for Newton's dynamics, MALA for N = 1, and exact ESH.

    log α = −(ΔE + (d−1) ΣΔr)        for the scaled flow, any κ
    log α = −(ΔE + ΔK)               for Newton's

One call is one step of the proposal, so that a call costs what it costs in every other kernel
and N is data. In between, the chain is where it was last accepted.
"""

import functools
from typing import Any, NamedTuple

from schuss.core.dynamics import ESH, Dynamics, leap, observe, start, work
from schuss.core.integrators import Integrator
from schuss.core.kernel import Info, Kernel, Noise, Point, current, everyone, select
from schuss.core.reflect import reflect


class State(NamedTuple):
    """Where the chain is (with its velocity at the start of the proposal) and the moving point."""

    x: Any
    u: Any
    r: Any
    energy: Any
    g: Any
    to_x: Any
    to_u: Any
    to_r: Any
    to_energy: Any
    to_g: Any
    count: Any  # steps of this proposal so far


class Params(NamedTuple):
    """ε, κ, the factor of the momentum's gain in the Metropolis ratio, and N."""

    step_size: Any
    kappa: Any
    volume: Any
    steps: Any


class Boxed(NamedTuple):
    """The same, and the corners of a box."""

    step_size: Any
    kappa: Any
    volume: Any
    steps: Any
    lower: Any
    upper: Any


@functools.cache
def kernel(dynamics: Dynamics, integrator: Integrator, *, boxed: bool = False) -> Kernel:
    """Build the kernel from what is fixed when it is compiled. A box reflects."""

    def init(xp, x, energy, g, noise: Noise, params: Params) -> State:
        here = start(xp, dynamics, x, energy, g, noise.normal)
        return State(*here, *here, count=xp.zeros_like(energy))

    def wall(xp, params: Any):
        return lambda x, u: reflect(xp, x, u, params.lower, params.upper)

    def step(xp, grad_fn, state: State, noise: Noise, params: Params) -> tuple[State, Info]:
        here, there = Point(*state[:5]), Point(*state[5:10])
        how = dynamics, integrator, there, params.step_size, params.kappa
        there = leap(xp, grad_fn, *how, wall=wall(xp, params) if boxed else None)
        count = state.count + 1
        complete = count >= params.steps

        log_ratio = -work(here, there, params.volume)
        # A proposal that isn't a number, or not finite, is refused.
        log_ratio = xp.where(
            xp.isfinite(log_ratio), log_ratio, xp.full_like(log_ratio, -float("inf"))
        )
        accepted = complete & (xp.log(noise.uniform[:, 0]) < log_ratio)
        here = select(xp, accepted, there, here)
        fresh = start(xp, dynamics, here.x, here.energy, here.g, noise.normal)
        here, there = select(xp, complete, fresh, here), select(xp, complete, fresh, there)
        count = xp.where(complete, xp.zeros_like(count), count)

        nothing = xp.zeros_like(log_ratio)
        info = Info(
            xp.where(complete, nothing, nothing - float("inf")),
            -log_ratio,
            xp.where(complete, xp.exp(xp.minimum(log_ratio, nothing)), nothing + float("nan")),
            complete,
        )
        return State(*here, *there, count=count), info

    return Kernel(
        init,
        step,
        observe,
        current,
        alive=lambda xp, state: everyone(xp, state.energy),
        normal=True,
        coarse=dynamics is ESH,
        uniforms=1,
        gradients=integrator.gradients,
    )
