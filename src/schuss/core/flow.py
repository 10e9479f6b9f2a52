"""Follow a flow as it is: the paper's deterministic ESH, its un-scaled relatives, and ULA.

Between steps the velocity has had the opening kick of the next step already, so that the
closing kick of one step and the opening kick of the next are a single one: a step is drift,
gradient, kick (Alg. 1). Partial noise comes in the middle of a step, where it keeps the step
symmetric and the kicks together. Full refreshment, which is Langevin's way, comes between the
steps, and then the closing kick is never needed. A chain whose energy or gradient turns
non-finite stays at its last finite state.
"""

import functools
from typing import Any, NamedTuple

from schuss.core import weights
from schuss.core.dynamics import ESH, Dynamics, prepare, start
from schuss.core.integrators import Integrator, moves
from schuss.core.kernel import Info, Kernel, Noise, Point, Seen, current, finite, select
from schuss.core.reflect import reflect


class State(NamedTuple):
    """A point in phase space: u is ahead by the opening kick, all else is synchronised."""

    x: Any
    u: Any
    r: Any
    energy: Any
    g: Any
    lead: Any  # what that kick adds to r
    alive: Any


class Params(NamedTuple):
    """The step ε, the divisor κ, the noise ν and the corners of the box."""

    step_size: Any
    kappa: Any
    nu: Any
    lower: Any
    upper: Any


@functools.cache
def kernel(
    dynamics: Dynamics,
    integrator: Integrator,
    *,
    refreshment: str = "none",
    weight: str | None = "uniform",
    boxed: bool = False,
    speed: bool = True,
) -> Kernel:
    """Build the kernel from what is fixed when it is compiled.

    `refreshment` is "none", "partial" or "full". `weight` is what a state counts: "uniform",
    "energy" (closed form), "speed" (|v|) or "time" (un-scaled time of the merged kick, which is
    the time spent around the state). `weight=None` and `speed=False` leave the weight and r out
    where nobody asks for them.
    """
    opening, closing = integrator.kicks[0], integrator.kicks[-1]
    program = moves(integrator, noise=refreshment == "partial")
    speed = speed or weight in ("speed", "time")

    def init(xp, x, energy, g, noise: Noise, params: Params) -> State:
        point = start(xp, dynamics, x, energy, g, noise.normal)
        u, lead = open_(xp, point, params)
        return State(x, u, point.r, energy, g, lead, finite(xp, energy, g))

    def step(xp, grad_fn, state: State, noise: Noise, params: Params) -> tuple[State, Info]:
        r = state.r + state.lead if speed else state.r
        point = Point(state.x, state.u, r, state.energy, state.g)
        sound = state.alive
        for move, share in program:
            if move == "gradient":
                energy, g = grad_fn(point.x)
                sound = sound & finite(xp, energy, g)
                point = point._replace(energy=energy, g=g)
            elif move == "drift":
                point = drifted(xp, point, share, params)
            elif move == "kick":
                point = kicked(xp, point, share, params)
            else:
                u = dynamics.nudge(xp, point.u, noise.normal, params.nu)
                point = point._replace(u=u)

        u, r, lead, log_time = join(xp, point, noise, params)
        moved = State(point.x, u, r, point.energy, point.g, lead, sound)
        new = select(xp, sound, moved, state._replace(alive=sound))
        error, count = log_time, log_time
        if speed:
            error = new.energy - state.energy + params.kappa * (new.r - state.r)
        if weight is not None:
            # A frozen chain is where it is by accident: from then on it counts for nothing.
            count = log_weight(xp, new, log_time, params)
            count = xp.where(sound, count, xp.full_like(count, -float("inf")))
        return new, Info(count, error, xp.full_like(error, float("nan")), sound)

    def drifted(xp, point, share, params):
        h = params.step_size if share == 1 else share * params.step_size
        x, u = dynamics.drift(xp, point.x, point.u, h), point.u
        if boxed:
            x, u = reflect(xp, x, u, params.lower, params.upper)
        return point._replace(x=x, u=u)

    def kicked(xp, point, share, params):
        boost, h = prepare(xp, dynamics, point, share, params.step_size, params.kappa)
        r = point.r + dynamics.gain(xp, boost, h) if speed else point.r
        return point._replace(u=dynamics.turn(xp, boost, h), r=r)

    def open_(xp, point, params):
        """The opening kick of a step, kept apart from r until the step is made."""
        ahead = kicked(xp, point, opening, params)
        return ahead.u, ahead.r - point.r if speed else point.r

    def join(xp, point, noise, params):
        """The closing kick and the opening kick of the next step: u, r, the lead, log of time."""
        nothing = xp.zeros_like(point.energy)
        if refreshment == "full":
            u, lead = open_(xp, point._replace(u=dynamics.velocity(xp, noise.normal)), params)
            return u, point.r, lead, nothing
        both = closing + opening
        boost, h = prepare(xp, dynamics, point, both, params.step_size, params.kappa)
        u = dynamics.turn(xp, boost, h)
        if not speed:
            return u, point.r, point.r, nothing
        gained, total = (dynamics.gain(xp, boost, part) for part in (closing / both * h, h))
        log_time = nothing
        if weight == "time":
            log_time = point.r + dynamics.log_elapsed(xp, boost, h)
        return u, point.r + gained, total - gained, log_time

    def log_weight(xp, state, log_time, params):
        dim = state.x.shape[-1]
        if weight == "energy":
            return weights.log_weight(state.energy, params.kappa, dim)
        if weight == "speed":
            return weights.log_weight_by_speed(state.r, params.kappa, dim)
        return log_time

    def observe(xp, state: State, params: Params) -> Seen:
        """Undo the opening kick."""
        point = Point(state.x, state.u, state.r, state.energy, state.g)
        boost, h = prepare(xp, dynamics, point, -opening, params.step_size, params.kappa)
        u = dynamics.turn(xp, boost, h)
        conserved = weights.hamiltonian(state.energy, state.r, params.kappa)
        return Seen(state.x, u, state.r, state.energy, conserved)

    return Kernel(
        init,
        step,
        observe,
        current,
        alive=lambda xp, state: state.alive,
        normal=refreshment != "none",
        coarse=dynamics is ESH,
        uniforms=0,
        gradients=integrator.gradients,
    )
