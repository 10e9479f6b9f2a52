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
from schuss.core.kernel import Info, Kernel, Noise, Seen, current, finite, select
from schuss.core.reflect import BOUNDARIES


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
    boundary: str | None = None,
    speed: bool = True,
    guarded: bool = True,
) -> Kernel:
    """Build the kernel from what is fixed when it is compiled.

    `refreshment` is "none", "partial" or "full", `boundary` None, "reflect" or "clamp". `weight`
    is what a state counts: "uniform", "energy" (closed form), "speed" (|v|) or "time" (un-scaled
    time of the merged kick, which is the time spent around the state). `weight=None` and
    `speed=False` leave the weight and r out where nobody asks for them, and `guarded=False` the
    freezing of chains.
    """
    opening, closing = integrator.kicks[0], integrator.kicks[-1]
    program = moves(integrator, noise=refreshment == "partial")
    speed = speed or weight in ("speed", "time")
    # Noise normalises the velocity in every step.
    turn = dynamics.turn_roughly if refreshment == "partial" else dynamics.turn

    def init(xp, x, energy, g, noise: Noise, params: Params) -> State:
        point = start(xp, dynamics, x, energy, g, noise.normal)
        u, lead = open_(xp, point.u, point.r, g, params)
        return State(x, u, point.r, energy, g, lead, finite(xp, energy, g))

    def step(xp, grad_fn, state: State, noise: Noise, params: Params) -> tuple[State, Info]:
        x, u, r, energy, g, lead, sound = state
        r = r + lead if speed else r
        for move, share in program:
            if move == "gradient":
                energy, g = grad_fn(x)
                if guarded:
                    sound = sound & finite(xp, energy, g)
            elif move == "drift":
                x, u = drifted(xp, x, u, share, params)
            elif move == "kick":
                u, r = kicked(xp, u, r, g, share, params)
            else:
                u = dynamics.nudge(xp, u, noise.normal, params.nu)

        u, r, lead, log_time = join(xp, u, r, g, noise, params)
        moved = State(x, u, r, energy, g, lead, sound)
        new = select(xp, sound, moved, state._replace(alive=sound)) if guarded else moved
        count = error = decision = log_time
        if speed:
            error = new.energy - state.energy + params.kappa * (new.r - state.r)
        if weight is not None:
            count = log_weight(xp, new, log_time, params)
        if weight is not None and guarded:
            # A frozen chain is where it is by accident: from then on it counts for nothing.
            count = xp.where(sound, count, xp.full_like(count, -float("inf")))
        if speed or weight is not None:
            decision = xp.full_like(error, float("nan"))
        return new, Info(count, error, decision, sound)

    def drifted(xp, x, u, share, params):
        h = params.step_size if share == 1 else share * params.step_size
        x = dynamics.drift(xp, x, u, h)
        if boundary is None:
            return x, u
        return BOUNDARIES[boundary](xp, x, u, params.lower, params.upper)

    def kicked(xp, u, r, g, share, params):
        boost, h = prepare(xp, dynamics, u, g, share, params.step_size, params.kappa)
        r = r + dynamics.gain(xp, boost, h) if speed else r
        return turn(xp, boost, h), r

    def open_(xp, u, r, g, params):
        """The opening kick of a step, kept apart from r until the step is made."""
        u, ahead = kicked(xp, u, r, g, opening, params)
        return u, ahead - r if speed else r

    def join(xp, u, r, g, noise, params):
        """The closing kick and the opening kick of the next step: u, r, the lead, log of time."""
        if refreshment == "full":
            u, lead = open_(xp, dynamics.velocity(xp, noise.normal), r, g, params)
            return u, r, lead, xp.zeros_like(r) if speed else r
        both = closing + opening
        boost, h = prepare(xp, dynamics, u, g, both, params.step_size, params.kappa)
        u = turn(xp, boost, h)
        if not speed:
            # Nobody asks for the rest: r is zero and stays so, and stands in without a new array.
            return u, r, r, r
        gained, total = (dynamics.gain(xp, boost, part) for part in (closing / both * h, h))
        log_time = xp.zeros_like(gained)
        if weight == "time":
            log_time = r + dynamics.log_elapsed(xp, boost, h)
        return u, r + gained, total - gained, log_time

    def log_weight(xp, state, log_time, params):
        dim = state.x.shape[-1]
        if weight == "energy":
            return weights.log_weight(state.energy, params.kappa, dim)
        if weight == "speed":
            return weights.log_weight_by_speed(state.r, params.kappa, dim)
        return log_time

    def observe(xp, state: State, params: Params) -> Seen:
        """Undo the opening kick."""
        boost, h = prepare(xp, dynamics, state.u, state.g, -opening, params.step_size, params.kappa)
        u = dynamics.turn(xp, boost, h)
        conserved = weights.hamiltonian(state.energy, state.r, params.kappa)
        return Seen(state.x, u, state.r, state.energy, conserved)

    # The energy at the end of a step tells of all its gradients if it has only one.
    trusting = None
    if guarded and integrator.gradients == 1:
        trusting = kernel(
            dynamics,
            integrator,
            refreshment=refreshment,
            weight=weight,
            boundary=boundary,
            speed=speed,
            guarded=False,
        )
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
        trusting=trusting,
    )
