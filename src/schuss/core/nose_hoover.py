"""Nosé–Hoover dynamics with one thermostat, by the explicit scheme of Martyna et al. (1996).

Kleinerman's form: half a step of the thermostat, a leapfrog, half a step of the thermostat. The
thermostat scales the velocity by e^(−ξ̇ ε/2), where ξ̇ follows (v² − d)/Q. Conserved is
E + ½v² + ½Qξ̇² + dξ.
"""

import functools
from typing import Any, NamedTuple

from schuss.core.kernel import Info, Kernel, Noise, Seen, current, finite, select
from schuss.core.reflect import BOUNDARIES


class State(NamedTuple):
    """Position, velocity, and the thermostat's position ξ and rate ξ̇."""

    x: Any
    v: Any
    energy: Any
    g: Any
    xi: Any
    rate: Any
    alive: Any


class Params(NamedTuple):
    """ε and the mass Q of the thermostat."""

    step_size: Any
    mass: Any


class Boxed(NamedTuple):
    """The same, and the corners of a box."""

    step_size: Any
    mass: Any
    lower: Any
    upper: Any


def conserved(xp, state: State, params: Params):
    """E + ½v² + ½Qξ̇² + dξ."""
    dim = state.x.shape[-1]
    square = xp.sum(state.v * state.v, axis=-1)
    return state.energy + square / 2 + params.mass * state.rate**2 / 2 + dim * state.xi


def thermostat(xp, v, xi, rate, h, mass):
    """Exchange heat for a time h with the positions at rest."""
    dim = v.shape[-1]
    square = xp.sum(v * v, axis=-1)
    rate = rate + h / 2 * (square - dim) / mass
    scale = xp.exp(-h * rate)
    rate_after = rate + h / 2 * (square * scale * scale - dim) / mass
    return v * scale[:, None], xi + h * rate, rate_after


@functools.cache
def kernel(*, boundary: str | None = None) -> Kernel:
    """Build the kernel."""

    def init(xp, x, energy, g, noise: Noise, params: Params) -> State:
        zero = xp.zeros_like(energy)
        return State(x, noise.normal, energy, g, zero, zero, finite(xp, energy, g))

    def step(xp, grad_fn, state: State, noise: Noise, params: Params) -> tuple[State, Info]:
        epsilon = params.step_size
        h = (epsilon / 2)[..., None]
        v, xi, rate = thermostat(xp, state.v, state.xi, state.rate, epsilon / 2, params.mass)
        v = v - h * state.g
        x = state.x + epsilon[..., None] * v
        if boundary is not None:
            x, v = BOUNDARIES[boundary](xp, x, v, params.lower, params.upper)
        energy, g = grad_fn(x)
        v, xi, rate = thermostat(xp, v - h * g, xi, rate, epsilon / 2, params.mass)
        alive = state.alive & finite(xp, energy, g)
        moved = State(x, v, energy, g, xi, rate, alive)
        new = select(xp, alive, moved, state._replace(alive=alive))
        error = conserved(xp, new, params) - conserved(xp, state, params)
        count = xp.where(alive, xp.zeros_like(energy), xp.full_like(energy, -float("inf")))
        return new, Info(count, error, xp.full_like(energy, float("nan")), alive)

    def observe(xp, state: State, params: Params) -> Seen:
        return Seen(state.x, state.v, state.xi, state.energy, conserved(xp, state, params))

    return Kernel(
        init,
        step,
        observe,
        current,
        alive=lambda xp, state: state.alive,
        normal=False,
        coarse=False,
        uniforms=0,
        gradients=1,
    )
