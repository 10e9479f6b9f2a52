"""The orbit kernel: weigh every point of a window of the flow, and go on from one of them.

The current state is placed at random among N points of its orbit, each point counts with
e^(−W), W = E + (d−1)r, and the next state is drawn by these weights. All points, with their
weights normalised within the window, belong in estimates; the paper's |v| weights are the limit
of small steps at κ = d. A call is one step along the orbit: first backwards, then from the
origin forwards. The next state is drawn on the way, by a reservoir.
"""

import functools
from typing import Any, NamedTuple

from schuss.core import reservoir
from schuss.core.dynamics import ESH, Dynamics, flip, leap, start, work
from schuss.core.integrators import Integrator
from schuss.core.kernel import Draw, Info, Kernel, Noise, Point, Seen, everyone, select


class State(NamedTuple):
    """The origin of the window, the point on its way, the next state so far, and the draw."""

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
    next_x: Any
    next_energy: Any
    next_g: Any
    draw_x: Any
    draw_energy: Any
    log_total: Any
    count: Any  # steps made in this window
    back: Any  # steps to make backwards


class Params(NamedTuple):
    """ε, κ, the factor of the gain in W, and the number N of points in a window."""

    step_size: Any
    kappa: Any
    volume: Any
    points: Any


@functools.cache
def kernel(dynamics: Dynamics, integrator: Integrator) -> Kernel:
    """Build the kernel from what is fixed when it is compiled."""

    def window(xp, x, energy, g, normal, uniform, params):
        """Begin a window: a fresh velocity and a random place for the origin among N points."""
        here = start(xp, dynamics, x, energy, g, normal)
        back = xp.floor(uniform * params.points)
        back = xp.minimum(back, xp.zeros_like(back) + params.points - 1)
        there = select(xp, back > 0, flip(here), here)
        return here, there, back

    def init(xp, x, energy, g, noise: Noise, params: Params) -> State:
        here, there, back = window(xp, x, energy, g, noise.normal, noise.uniform[:, 0], params)
        zero = xp.zeros_like(energy)
        return State(
            *here,
            *there,
            next_x=x,
            next_energy=energy,
            next_g=g,
            draw_x=x,
            draw_energy=energy,
            log_total=zero,
            count=zero,
            back=back,
        )

    def step(xp, grad_fn, state: State, noise: Noise, params: Params) -> tuple[State, Info]:
        here, there = Point(*state[:5]), Point(*state[5:10])
        there = leap(xp, grad_fn, dynamics, integrator, there, params.step_size, params.kappa)
        count = state.count + 1
        error = work(here, there, params.volume)
        lost = xp.full_like(error, -float("inf"))
        log_weight = xp.where(xp.isfinite(error), -error, lost)

        log_total = reservoir.log_sum(xp, state.log_total, log_weight)
        taken = xp.log(noise.uniform[:, 0]) < log_weight - log_total
        next_x = xp.where(taken[:, None], there.x, state.next_x)
        next_energy = xp.where(taken, there.energy, state.next_energy)
        next_g = xp.where(taken[:, None], there.g, state.next_g)

        # The origin has no call of its own: with the first point, one of the two stands for both.
        first = state.count == 0
        pair = reservoir.log_sum(xp, xp.zeros_like(error), log_weight)
        origin = ~xp.isfinite(error) | (first & ~(xp.log(noise.uniform[:, 1]) < log_weight - pair))
        draw_x = xp.where(origin[:, None], here.x, there.x)
        draw_energy = xp.where(origin, here.energy, there.energy)
        log_weight = xp.where(first, pair, log_weight)

        there = select(xp, count == state.back, here, there)
        complete = count >= params.points - 1
        fresh_here, fresh_there, fresh_back = window(
            xp, next_x, next_energy, next_g, noise.normal, noise.uniform[:, 2], params
        )
        here = select(xp, complete, fresh_here, here)
        there = select(xp, complete, fresh_there, there)
        zero = xp.zeros_like(error)
        new = State(
            *here,
            *there,
            next_x=next_x,
            next_energy=next_energy,
            next_g=next_g,
            draw_x=draw_x,
            draw_energy=draw_energy,
            log_total=xp.where(complete, zero, log_total),
            count=xp.where(complete, zero, count),
            back=xp.where(complete, fresh_back, state.back),
        )
        return new, Info(log_weight, error, xp.full_like(error, float("nan")), complete)

    def observe(xp, state: State, params: Params) -> Seen:
        """The draw of the last call; the velocity is the window's at its origin."""
        return Seen(state.draw_x, state.u, state.r, state.draw_energy, state.draw_energy)

    return Kernel(
        init,
        step,
        observe,
        lambda state: Draw(state.draw_x, state.draw_energy),
        alive=lambda xp, state: everyone(xp, state.energy),
        normal=True,
        coarse=dynamics is ESH,
        uniforms=3,
        gradients=integrator.gradients,
        windowed=True,
    )
