"""The energy that chains move on, and how they move: one call of a compiled loop."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from schuss.arguments import mixed
from schuss.core import thinned
from schuss.core.kernel import Kernel, Noise, Point, Seen, current, everyone
from schuss.engines.engine import Engine, Job, bare, held
from schuss.problem import Problem
from schuss.tuning.metric import Metric, in_loops, score

ROOM, FEWEST = 256, 32
"""States that one call of a compiled loop can hold, and how few where they are large."""

NUMBERS = 2**18
"""In the positions of all these states together: what is written should stay in the cache."""


STILL = Kernel(
    init=lambda xp, x, energy, g, noise, params: Point(x, x, energy, energy, g),
    step=lambda xp, grad_fn, state, noise, params: (state, None),
    observe=lambda xp, state, params: Seen(*state[:4], conserved=state.energy),
    draw=current,
    alive=lambda xp, state: everyone(xp, state.energy),
    normal=False,
    coarse=False,
    uniforms=0,
    gradients=1,
)
"""No motion: energies and gradients where the chains are."""


@dataclasses.dataclass(frozen=True)
class Heated:
    """E/T: the density e^(−E/T), whose states count e^(−(1 − 1/T)E)."""

    grad_fn: Any
    temperature: float

    @property
    def energy(self):
        """What is evaluated in the end."""
        return self.grad_fn.energy

    def __call__(self, x):
        """E/T and its gradient."""
        energy, g = self.grad_fn(x)
        return energy / self.temperature, g / self.temperature


@dataclasses.dataclass(frozen=True)
class Lifted:
    """E(x) + ½a² with one more coordinate a: on a line a velocity can never turn."""

    grad_fn: Any
    concat: Callable

    @property
    def energy(self):
        """What is evaluated in the end."""
        return self.grad_fn.energy

    def __call__(self, x):
        """The energy and its gradient."""
        energy, g = self.grad_fn(x[:, :-1])
        a = x[:, -1:]
        return energy + 0.5 * a[:, 0] ** 2, self.concat([g, a], axis=-1)


class Numbers(NamedTuple):
    """Of the transition that led to each state, zero for none, and of the last one so far."""

    of: np.ndarray  # (n, chains)
    reached: np.ndarray  # (chains,)


class Rows(NamedTuple):
    """States along the way, time first, on the host, in the coordinates of the metric.

    They are those after every step, which may or may not complete a transition, or those after
    every n-th transition, and then these have numbers.
    """

    metric: Metric
    z: np.ndarray  # (n, chains, dim)
    pull: np.ndarray  # the gradient there
    energy: np.ndarray  # (n, chains)
    error: np.ndarray
    acceptance: np.ndarray
    complete: np.ndarray
    numbers: Numbers | None = None

    def x(self, rows: Any = slice(None), chains: Any = slice(None)) -> np.ndarray:
        """Positions in the coordinates of the field."""
        return self.metric.forward(np, np.asarray(self.z[rows, chains], float))

    def g(self, rows: Any = slice(None), chains: Any = slice(None)) -> np.ndarray:
        """Gradients in the coordinates of the field."""
        return score(self.metric, np.asarray(self.pull[rows, chains], float))


@dataclasses.dataclass(frozen=True)
class Field:
    """An energy on an engine; `dim` counts the coordinate that was added to a line."""

    engine: Engine
    grad_fn: Any
    like: Any  # an array of the engine's, for dtype and device
    dim: int
    temperature: float
    seed: int
    leg: int = 0  # how often the run has begun again: no noise is used twice
    chart: tuple = ()  # frames between the target and the metric: chains live in y, x = chart(y)

    @classmethod
    def over(cls, problem: Problem, seed: int, temperature: float) -> "Field":
        """The field of a problem."""
        grad_fn, dim = problem.grad_fn, problem.dim
        if dim == 1:
            grad_fn, dim = Lifted(grad_fn, problem.engine.xp.concat), 2
        if temperature != 1:
            grad_fn = Heated(grad_fn, temperature)
        return cls(problem.engine, grad_fn, problem.x, dim, temperature, seed)

    def cold(self) -> "Field":
        """The same field at temperature 1."""
        if self.temperature == 1:
            return self
        return dataclasses.replace(self, grad_fn=self.grad_fn.grad_fn, temperature=1.0)

    def source(self, *place: int):
        """The noise of one window: a function of the seed, the leg and the window's number."""
        return self.engine.source(mixed(self.seed, *place, self.leg), self.like)

    def evaluate(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Energies and gradients at `x`, on the host."""
        x = self._array(x)
        job = Job(STILL, self.grad_fn, (), Noise(None, None), self._chart())
        state, _ = self.engine.start(job, x, x)
        host = self.engine.to_numpy
        return np.asarray(host(state.energy), float), np.asarray(host(state.g), float)

    def room(self, chains: int) -> int:
        """States that one call of the loop can hold."""
        room = ROOM
        while room > FEWEST and room * chains * self.dim > NUMBERS:
            room //= 2
        return room

    def advance(
        self,
        kernel: Kernel,
        params: Any,
        metric: Metric,
        state: Any,
        first: int,
        count: int,
        source,
        every: int = 1,
    ) -> tuple[Any, Any, Rows]:
        """Make `count · every` steps: the state, the source, and what was passed on the way.

        Of every so many steps the last is told, or the transition that a thinned kernel holds.
        """
        frames = (*self._chart(), self._arrays(in_loops(metric)))
        job = Job(kernel, self.grad_fn, self._arrays(params), source, frames)
        show, room = held if isinstance(state, thinned.State) else bare, self.room(len(state.x))
        state, source, record = self.engine.record(
            job, self._arrays(state), first, count, every, show, room
        )
        host = self.engine.to_numpy
        seen, (error, acceptance, complete) = ([host(part) for part in parts] for parts in record)
        z, energy, g = seen[:3]
        numbers = None
        if every > 1 and show is held:
            error, acceptance, number = seen[3:]
            numbers = Numbers(number.astype(int), host(state.number).astype(int))
        elif every > 1:
            number = every * np.broadcast_to(np.arange(1, count + 1)[:, None], energy.shape)
            numbers = Numbers(number, number[-1])
        return state, source, Rows(metric, z, g, energy, error, acceptance, complete, numbers)

    def _chart(self):
        return tuple(map(self._arrays, self.chart))

    def _arrays(self, parts):
        """All arrays of a tuple, and of tuples in it."""
        if isinstance(parts, tuple):
            return type(parts)(*map(self._arrays, parts))
        return self._array(parts)

    def _array(self, value):
        """An array for the loop. NumPy's pass into JAX as they are, in a tenth of the time."""
        if type(value) is type(self.like) and value.dtype == self.like.dtype:
            return value
        if self.engine.name == "torch":
            return self.engine.asarray(value, self.like)
        return np.asarray(value, self.like.dtype)
