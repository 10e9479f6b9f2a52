"""Adjusted ESH moves of all particles at one temperature, through the engine's compiled loop."""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from schuss.coordinates import Auxiliary, Diagonal, Level, to_z
from schuss.core import endpoint
from schuss.core.collect import Collection
from schuss.core.dynamics import ESH
from schuss.core.integrators import LEAPFROG
from schuss.engines.engine import Engine, Job
from schuss.evidence.blocks import blocks
from schuss.evidence.references import Closed
from schuss.evidence.tempered import Tempered

KERNEL = endpoint.kernel(ESH, LEAPFROG)


class Latest(NamedTuple):
    """Where the particles are, the energy there, and the probability of the last decision."""

    x: Any
    energy: Any
    acceptance: Any


def _nothing(xp, x):
    none = xp.zeros_like(x[:, 0])
    return Latest(x, none, none)


def _latest(xp, kept, x, draw, info, uniform):
    return Latest(draw.x, draw.energy, xp.where(info.complete, info.acceptance, kept.acceptance))


LATEST = Collection(_nothing, _latest, 0)


@dataclasses.dataclass(frozen=True)
class Space:
    """Target and reference on an engine, and the coordinates in which the support is open."""

    engine: Engine
    target: Any  # grad_fn of flat positions
    reference: Any
    open: tuple  # frames from the reference's support to the whole space, in NumPy
    like: Any  # positions, for their dtype and device

    @property
    def dim(self) -> int:
        """Coordinates of a position."""
        return self.like.shape[1]

    def energies(self, grad_fn, x: np.ndarray) -> np.ndarray:
        """Energies of batches of positions, (batches, particles, dim)."""
        if isinstance(grad_fn, Closed):
            flat = x.reshape(-1, self.dim)
            parts = [grad_fn.reference.energy(np, flat[some]) for some in blocks(*flat.shape)]
            return np.concatenate(parts).reshape(x.shape[:-1])
        return self.fetched([self._start(grad_fn, part).energy for part in x])

    def slope(self, x: np.ndarray) -> np.ndarray:
        """Gradients of the reference's energy."""
        return np.asarray(self.engine.to_numpy(self._start(self.reference, x).g), float)

    def _start(self, grad_fn, x):
        engine = self.engine
        job = Job(KERNEL, grad_fn, self.params(1.0, 1), engine.source(0, self.like))
        return engine.start(job, engine.asarray(x, self.like))[0]

    def fetched(self, launched: Sequence, columns: int | None = None) -> np.ndarray:
        """Arrays of the engine as one of NumPy: all are under way before the first is awaited."""
        to_numpy = self.engine.to_numpy
        return np.stack([to_numpy(part)[..., :columns] for part in launched], dtype=float)

    def opened(self, x: np.ndarray) -> np.ndarray:
        """Positions in the coordinates where the support is the whole space."""
        return to_z(np, self.open, x)

    def placed(self, frame):
        """A frame of NumPy arrays on the engine."""
        return type(frame)(*(self.engine.asarray(part, self.like) for part in frame))

    def params(self, step, steps) -> endpoint.Params:
        """ε for each particle or for all, κ and the volume's factor d − 1, and N."""
        dim = max(self.dim, 2)
        values = (step, dim - 1.0, dim - 1.0, float(steps))
        return endpoint.Params(*(self.engine.asarray(value, self.like) for value in values))


class Places(NamedTuple):
    """What moves leave behind, in NumPy."""

    x: np.ndarray  # (moves, particles, dim)
    gap: np.ndarray  # (moves, particles), E − E₀
    acceptance: np.ndarray  # (moves, particles)


class Pull(NamedTuple):
    """Where particles are and what pulls at them, y = sz and ∂E/∂y, each (particles, dim)."""

    y: np.ndarray
    slope: np.ndarray


class Mover:
    """Moves the particles at one temperature; `pull` tells how well they sit there."""

    def __init__(self, space: Space, x, left: float, scale, step, seed: int, auxiliary):
        engine = space.engine
        self.space, self.left, self.done, self.scale = space, left, 0, scale
        self.kept = None
        level = Level(np.broadcast_to([left, 1 - left], (len(x), 2)))
        frames = (*space.open, Diagonal(scale))
        if space.dim == 1:
            frames = (*frames, Auxiliary(auxiliary))
        self.job = Job(
            KERNEL,
            Tempered(space.target, space.reference, engine.xp),
            space.params(step, 1),
            engine.source(seed, space.like),
            tuple(map(space.placed, (level, *frames))),
        )
        self.state, _ = engine.start(self.job, engine.asarray(to_z(np, frames, x), space.like))

    def moves(self, lengths: Sequence[int]) -> Places:
        """For each length a proposal of so many leapfrogs of every particle, and its decision."""
        space = self.space
        x, energy, acceptance = zip(*map(self._launch, lengths), strict=True)
        x = space.fetched(x, space.dim)  # without the two coordinates of `Level`
        gap = space.fetched(energy) - space.energies(space.reference, x)
        return Places(x, gap / (1 - self.left), space.fetched(acceptance))

    def _launch(self, steps: int) -> Latest:
        """One move: an engine that works on its own is not waited for."""
        space, engine = self.space, self.space.engine
        params = self.job.params._replace(steps=engine.asarray(float(steps), space.like))
        job = self.job._replace(params=params)
        self.state, source, self.kept = engine.collect(
            job, self.state, self.kept, self.done, steps, LATEST
        )
        self.job, self.done = job._replace(source=source), self.done + steps
        return self.kept.collected

    def pull(self) -> Pull:
        """The particles as they are now, in coordinates where the support is the whole space."""
        to_numpy = self.space.engine.to_numpy
        z, g = (np.asarray(to_numpy(part), float) for part in (self.state.x, self.state.g))
        return Pull(z[:, : self.space.dim] * self.scale, g[:, : self.space.dim] / self.scale)
