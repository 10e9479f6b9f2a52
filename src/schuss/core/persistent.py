"""Per-step Metropolis with a persistent velocity: exact, and without the cost of going back.

The uniform variable of the Metropolis test is part of the state (Neal 2020): s in [−1, 1],
accepted while |s| < e^(−W), after which |s| ← |s|e^W. A refused step isn't given up at once: the
proposal looks up to K steps further along the flow, and only then turns the velocity round.
Partial noise on whichever velocity is live adds nothing to W. A call is one leapfrog of the
lookahead; `complete` says that the chain has moved or turned. The first kick of a leapfrog is made
at the end of the call before, where its gradient is at hand, so that the lookahead carries none.
With `local`, steps are shorter where the gradient is steep (`local_step`).
"""

import functools
import math
from typing import Any, NamedTuple

from schuss.core import local_step
from schuss.core.dynamics import ESH, Dynamics, arrive, depart, flip, start, work
from schuss.core.integrators import Integrator
from schuss.core.kernel import Info, Kernel, Noise, Point, Seen, current, everyone, select
from schuss.core.refresh import forgetting

HOPELESS = math.exp(10.0)
"""A lookahead with |s|e^W above this is given up: it would hardly ever come back."""


class State(NamedTuple):
    """Where the chain is, the lookahead, and the slice variable."""

    x: Any
    u: Any
    energy: Any
    g: Any
    to_x: Any
    to_u: Any  # after the first kick of the step to come
    r: Any  # gained in this lookahead so far, that kick included
    count: Any  # and its steps
    s: Any
    scale: Any  # log h/ε of these
    middle: Any  # of the density that it was drawn from


class Params(NamedTuple):
    """ε, κ, the factor of the gain in W, the noise ν, further looks K and the move of s.

    For local steps also log|g| from which on they are shorter, and how much they vary.
    """

    step_size: Any
    kappa: Any
    volume: Any
    nu: Any
    looks: Any
    slide: Any
    knee: Any = 0.0
    spread: Any = 1.0


@functools.cache
def kernel(dynamics: Dynamics, integrator: Integrator, *, local: bool = False) -> Kernel:
    """Build the kernel from what is fixed when it is compiled."""

    def init(xp, x, energy, g, noise: Noise, params: Params) -> State:
        here = start(xp, dynamics, x, energy, g, noise.normal)
        s, nothing = 2 * noise.uniform[:, 0] - 1, xp.zeros_like(energy)
        scale = middle = nothing
        h = params.step_size
        if local:
            middle = local_step.shortening(xp, g, params.knee)
            scale = local_step.draw(xp, middle, noise.uniform[:, 1], params.spread)
            h = xp.exp(scale) * h
        there = depart(xp, dynamics, integrator, here, h, params.kappa, roughly=True)
        return State(x, here.u, energy, g, x, there.u, there.r, nothing, s, scale, middle)

    def step(xp, grad_fn, state: State, noise: Noise, params: Params) -> tuple[State, Info]:
        nothing = xp.zeros_like(state.energy)
        here = Point(state.x, state.u, nothing, state.energy, state.g)
        # Energy and gradient aren't read from this one: `arrive` evaluates them where it ends.
        there = here._replace(x=state.to_x, u=state.to_u, r=state.r)
        h, slide, nu = params.step_size, params.slide, params.nu
        scale = state.scale
        middle = ahead = state.middle
        if local:
            h, slide = (xp.exp(scale) * part for part in (h, slide))
            nu = forgetting(xp, slide, state.x.shape[-1])
        there = arrive(xp, grad_fn, dynamics, integrator, there, h, params.kappa, roughly=True)
        count = state.count + 1
        error = work(here, there, params.volume)
        if local:
            ahead = local_step.shortening(xp, there.g, params.knee)
            after, before = (
                local_step.surprise(xp, scale, place, params.spread) for place in (ahead, middle)
            )
            error = error + (after - before)
        error = xp.where(xp.isfinite(error), error, nothing + float("inf"))

        # All decisions come from |s|e^W: compiled code makes an exponential once and not anew for
        # each coordinate of each array that is chosen by it.
        size = xp.exp(xp.log(xp.abs(state.s)) + error)
        accepted = size < 1
        failed = ~accepted & ((count > params.looks) | (size > HOPELESS))
        complete = accepted | failed
        moved, onward = select(xp, accepted, there, here), select(xp, failed, flip(here), there)
        u = dynamics.nudge(xp, onward.u, noise.normal, nu)

        s = xp.where(accepted, xp.sign(state.s) * size, state.s)
        s = xp.where(complete, _slide(xp, s, noise.uniform[:, 0], slide), s)
        if local:
            middle = xp.where(accepted, ahead, middle)
            drawn = local_step.draw(xp, middle, noise.uniform[:, 1], params.spread)
            scale = xp.where(complete, drawn, scale)
            h = xp.exp(scale) * params.step_size
        onward = onward._replace(u=u, r=xp.where(complete, nothing, there.r))
        onward = depart(xp, dynamics, integrator, onward, h, params.kappa, roughly=True)
        first = state.count == 0
        info = Info(
            xp.where(complete, nothing, nothing - float("inf")),
            error,
            xp.where(first, xp.exp(-xp.maximum(error, nothing)), nothing + float("nan")),
            complete,
        )
        new = State(
            moved.x,
            xp.where(complete[:, None], u, state.u),
            moved.energy,
            moved.g,
            onward.x,
            onward.u,
            onward.r,
            xp.where(complete, nothing, count),
            s,
            scale,
            middle,
        )
        return new, info

    def before(xp, state: State, params: Params):
        """x + h u after the first kick: where a leapfrog step evaluates its gradient."""
        h = xp.exp(state.scale) * params.step_size if local else params.step_size
        return dynamics.drift(xp, state.to_x, state.to_u, h)

    def observe(xp, state: State, params: Params) -> Seen:
        """Every lookahead begins with |v| = 1."""
        return Seen(state.x, state.u, xp.zeros_like(state.r), state.energy, state.energy)

    return Kernel(
        init,
        step,
        observe,
        current,
        alive=lambda xp, state: everyone(xp, state.energy),
        normal=True,
        coarse=dynamics is ESH,
        uniforms=2 if local else 1,
        gradients=integrator.gradients,
        before=before if integrator.drifts == (1.0,) else None,
    )


def _slide(xp, s, uniform, slide):
    """s moves by δ round the interval [−1, 1], or is drawn afresh where δ ≥ ½."""
    moved = s + slide + 1
    moved = moved - 2 * xp.floor(moved / 2) - 1
    return xp.where(slide >= 0.5, 2 * uniform - 1, moved)
