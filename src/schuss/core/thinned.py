"""Every n-th transition of a kernel, whatever the number of steps that each of them takes.

A transition of per-step Metropolis may look several steps ahead, and chains complete them at their
own pace. Where a chain is after a fixed number of steps is no fair draw: it has been longer where
transitions take longer. So transitions are counted, and the state after every n-th is held until
it is read, which must be at least once in n steps.
"""

import functools
from typing import Any, NamedTuple

from schuss.core.kernel import Info, Kernel, Noise, select


class Held(NamedTuple):
    """The state after the last transition that counts, how it came about, and its number."""

    x: Any
    energy: Any
    g: Any
    energy_error: Any
    acceptance: Any
    number: Any


class State(NamedTuple):
    """A state of the kernel, what is held, and counts."""

    inner: Any
    held: Held
    number: Any  # transitions so far
    diverged: Any  # and steps with an error beyond all bounds

    @property
    def x(self):
        """Where the kernel is."""
        return self.inner.x


class Params(NamedTuple):
    """The kernel's own, n, and the error from which on a step has diverged."""

    inner: Any
    every: Any
    beyond: Any


def beginning(inner: Any, number: Any, nothing: Any) -> State:
    """Around a state of the kernel, so many transitions on; `nothing` is an array of zeros."""
    held = Held(inner.x, inner.energy, inner.g, nothing, nothing, nothing)
    return State(inner, held, number, nothing)


@functools.cache
def kernel(inner: Kernel) -> Kernel:
    """The kernel that holds every n-th transition of another."""

    def init(xp, x, energy, g, noise: Noise, params: Params) -> State:
        nothing = xp.zeros_like(energy)
        return beginning(inner.init(xp, x, energy, g, noise, params.inner), nothing, nothing)

    def step(xp, grad_fn, state: State, noise: Noise, params: Params) -> tuple[State, Info]:
        new, info = inner.step(xp, grad_fn, state.inner, noise, params.inner)
        one, nothing = xp.ones_like(state.number), xp.zeros_like(state.number)
        number = state.number + xp.where(info.complete, one, nothing)
        due = info.complete & (number == params.every * xp.floor(number / params.every))
        told = Held(new.x, new.energy, new.g, info.energy_error, info.acceptance, number)
        diverged = state.diverged + xp.where(info.energy_error < params.beyond, nothing, one)
        return State(new, select(xp, due, told, state.held), number, diverged), info

    return inner._replace(
        init=init,
        step=step,
        observe=lambda xp, state, params: inner.observe(xp, state.inner, params.inner),
        draw=lambda state: inner.draw(state.inner),
        alive=lambda xp, state: inner.alive(xp, state.inner),
        trusting=None,
    )
