"""The one shape that every sampler has: a state, a step, and what can be read off a state.

A kernel is pure. Its step is `(xp, grad_fn, state, noise, params) → (state, info)`: the noise is
already drawn, `grad_fn(x)` returns energies and gradients, and one call costs `gradients` of
them. States, infos and params are NamedTuples of arrays with chains along the first axis.
"""

from collections.abc import Callable
from typing import Any, NamedTuple


class Noise(NamedTuple):
    """What one step needs: standard normals (chains, dim) and uniforms (chains, k), or None."""

    normal: Any
    uniform: Any


class Point(NamedTuple):
    """A place in phase space, with the energy and gradient there."""

    x: Any
    u: Any  # velocity: a unit vector in the scaled ESH flow
    r: Any  # log|v| gained so far in the scaled ESH flow, zero elsewhere
    energy: Any
    g: Any


class Info(NamedTuple):
    """What a step tells, each (chains,)."""

    log_weight: Any  # of the state reached; −inf while a transition is under way
    energy_error: Any  # change of the conserved quantity over the step or the proposal
    acceptance: Any  # probability of the decision taken, nan where none is
    complete: Any  # whether a transition ended with this step


class Seen(NamedTuple):
    """What a state shows of itself, synchronised in time."""

    x: Any
    u: Any
    r: Any
    energy: Any
    conserved: Any  # what the exact flow would conserve, up to a constant


class Draw(NamedTuple):
    """What a step contributes to estimates."""

    x: Any
    energy: Any


class Kernel(NamedTuple):
    """A sampler as pure functions and what they cost."""

    init: Callable  # (xp, x, energy, g, noise, params) → state
    step: Callable  # (xp, grad_fn, state, noise, params) → (state, info)
    observe: Callable  # (xp, state, params) → Seen
    draw: Callable  # (state) → Draw
    alive: Callable  # (xp, state) → (chains,) bool: not frozen
    normal: bool  # a step needs standard normals
    coarse: bool  # which only give directions: 32 random bits are enough for each
    uniforms: int  # and so many uniforms for each chain
    gradients: int  # and so many gradients
    windowed: bool = False  # log-weights are relative to their window, which `complete` ends
    trusting: Any = None  # the same without its guards against numbers that aren't finite, where
    # there is one: for loops that look for them once, at the end
    before: Any = None  # (xp, state, params) → x, where a step evaluates its gradient if it has one
    # only: `step` may then be handed an energy and gradient that were evaluated outside


def select(xp, chosen, yes, no):
    """Chain by chain, one NamedTuple of arrays or another of the same kind."""
    column = chosen[:, None]

    def one(p, q):
        return p if p is q else xp.where(chosen if p.ndim == 1 else column, p, q)

    return type(yes)(*map(one, yes, no))


def everyone(xp, energy):
    """All chains, as a mask like `energy`."""
    return xp.ones_like(energy, dtype=xp.bool)


def finite(xp, energy, g):
    """Where an energy and all of its gradient are finite: one that isn't spoils the sum."""
    return xp.isfinite(energy + xp.sum(g, axis=-1))


def current(state) -> Draw:
    """The draw of a kernel whose state is where the chain is."""
    return Draw(state.x, state.energy)
