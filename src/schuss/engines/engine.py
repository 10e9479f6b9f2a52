"""What an array library supplies: arrays in and out, gradients, random numbers and the loop."""

import dataclasses
import numbers
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from schuss.coordinates import potential, through, to_x
from schuss.core.collect import Collection
from schuss.core.kernel import Info, Kernel, Noise, Seen, select


class Record(NamedTuple):
    """States along a path, with time along the first axis."""

    seen: Any
    info: Any


class Kept(NamedTuple):
    """What a run without a path keeps: the last positions, and a collection."""

    last: Any
    collected: Any


class Job(NamedTuple):
    """A kernel on an energy with its parameters and its source of noise: what a loop runs."""

    kernel: Kernel
    grad_fn: Any  # positions (chains, dim) → energies (chains,) and gradients (chains, dim)
    params: Any
    source: Any
    frames: tuple = ()  # coordinates between the kernel and the energy
    temperature: Any = None  # T of e^(−E/T), a number; None for 1


class Engine(Protocol):
    """NumPy, JAX or PyTorch behind some methods; `xp` is the namespace of the core."""

    name: str
    xp: Any

    @property
    def accelerator(self) -> bool:
        """Whether a call costs more than what is done in it."""
        ...

    def asarray(self, value, like=None) -> Any:
        """An array of this library, with the dtype and device of `like`."""
        ...

    def to_numpy(self, array) -> Any:
        """The same numbers on the host."""
        ...

    def flatten(self, x) -> tuple[Any, Callable]:
        """Positions as (chains, dim), and the way back; no copies where the layout allows."""
        ...

    def value_and_grad(self, energy: Callable, x) -> Callable:
        """From an energy of positions like x to energies and gradients of flat positions."""
        ...

    def source(self, seed, like) -> Any:
        """Where noise comes from: the same seed gives the same numbers."""
        ...

    def start(self, job: Job, z, velocity=None) -> tuple[Any, Seen]:
        """The state at step 0, from z in the coordinates of the kernel, and what it shows."""
        ...

    def record(
        self, job: Job, state, first: int, count: int, every: int
    ) -> tuple[Any, Any, Record]:
        """Make `count · every` steps after step `first`: the state, the source and a Record."""
        ...

    def collect(
        self, job: Job, state, kept, first: int, count: int, collection: Collection
    ) -> tuple[Any, Any, Kept]:
        """Make `count` steps after step `first`: the state, the source and what was kept."""
        ...

    def evaluate(self, grad_fn, x) -> tuple[Any, Any]:
        """Energies and gradients at x (chains, dim)."""
        ...

    def ahead(self, job: Job, state) -> Any:
        """Where the next step evaluates the energy, of a kernel with `before`."""
        ...

    def finish_step(self, job: Job, state, t: int, energy, g, moving) -> tuple[Any, Any, Any, Any]:
        """The rest of step t: the state, the place of the next, its outcome and the source."""
        ...

    def fused(self, job: Job, state, first: int, count: int, moving) -> tuple[Any, Any, "Step"]:
        """`walk` as one loop that is compiled with the energy in it, where anything is compiled."""
        ...


def look(xp, job: Job, state) -> Seen:
    """What a state shows, in the coordinates and with the energy of the target."""
    seen = job.kernel.observe(xp, state, job.params)
    if not job.frames:
        return seen
    energy = seen.energy - potential(xp, job.frames, seen.x)
    return seen._replace(x=to_x(xp, job.frames, seen.x), energy=energy)


def told(xp, job: Job, state, info: Info) -> Record:
    """All that there is to tell of a step."""
    return Record(look(xp, job, state), info)


def stacked(stack: Callable, rows: list) -> Record:
    """Records of single steps as one, with time along the first axis."""
    parts = zip(*rows, strict=True)
    return Record(*(type(part[0])(*map(stack, zip(*part, strict=True))) for part in parts))


def tempered(grad_fn: Callable, temperature) -> Callable:
    """E/T and ∇E/T."""
    if temperature is None:
        return grad_fn

    def divided(x):
        energy, g = grad_fn(x)
        return energy / temperature, g / temperature

    return divided


def step(xp, job: Job, state, noise, around: Callable = lambda grad_fn: grad_fn):
    """One step of the kernel on the energy in its own coordinates, with something `around` it."""
    grad_fn = around(through(xp, tempered(job.grad_fn, job.temperature), job.frames))
    return job.kernel.step(xp, grad_fn, state, noise, job.params)


class Step(NamedTuple):
    """A step as the user's coordinates show it: where it evaluated the energy, and what came of it.

    A chain whose step `moved` it is at x from there on.
    """

    x: Any  # (chains, dim)
    energy: Any  # (chains,), of the target, whatever the temperature
    g: Any
    error: Any  # change of the conserved quantity over the proposal so far
    acceptance: Any  # probability of the first try of a transition, nan for others
    moved: Any  # (chains,) bool
    complete: Any  # whether a transition ended here

    @classmethod
    def stacked(cls, x, energy, g, outcome) -> "Step":
        """From rows with time first, `outcome` (n, 4, chains) as `finish_step` gives it."""
        error, acceptance, moved, complete = np.moveaxis(outcome, 1, 0)
        return cls(x, energy, g, error, acceptance, moved > 0, complete > 0)


def ahead(xp, job: Job, state):
    """Where the next step of a kernel with `before` evaluates the energy, in x."""
    return to_x(xp, job.frames, job.kernel.before(xp, state, job.params))


def finish_step(xp, job: Job, state, noise, energy, g, moving):
    """A step whose energy and gradient were evaluated outside, at `ahead`; the next such place.

    Chains that aren't `moving` stay as they are. Also Step's last four fields, (4, chains).
    """
    known = job._replace(grad_fn=lambda x: (energy, g))
    new, info = step(xp, known, state, noise)
    new = select(xp, moving, new, state)
    moved = moving & xp.any(new.x != state.x, axis=-1)
    outcome = (info.energy_error, info.acceptance, moved, moving & info.complete)
    outcome = xp.stack([xp.astype(part, energy.dtype) for part in outcome])
    return new, ahead(xp, job, new), outcome


def walk(engine, job: Job, state, first: int, count: int, moving) -> tuple[Any, Any, Step]:
    """`count` steps after step `first`, each a call of the gradient and a call of the kernel.

    The state, the source of noise, and all Steps on the host, time first.
    """
    x, source, rows = engine.ahead(job, state), job.source, []
    for t in range(first + 1, first + count + 1):
        energy, g = engine.evaluate(job.grad_fn, x)
        state, there, outcome, source = engine.finish_step(
            job._replace(source=source), state, t, energy, g, moving
        )
        rows.append((x, energy, g, outcome))
        x = there
    x, energy, g, outcome = (
        np.stack([engine.to_numpy(part) for part in parts]) for parts in zip(*rows, strict=True)
    )
    return state, source, Step.stacked(x, energy, g, outcome)


def begin(xp, job: Job, z, noise, velocity):
    """The first state, and what it shows."""
    energy, g = through(xp, job.grad_fn, job.frames)(z)
    if velocity is not None:
        noise = noise._replace(normal=velocity)
    state = job.kernel.init(xp, z, energy, g, noise, job.params)
    return state, look(xp, job, state)


def collected(xp, job: Job, state, kept: Kept | None, collection: Collection):
    """What was collected before, or an empty collection."""
    if kept is not None:
        return kept.collected
    return collection.init(xp, to_x(xp, job.frames, state.x))


def keep(xp, job: Job, state, gathered) -> Kept:
    """The end of a run without a path."""
    return Kept(to_x(xp, job.frames, state.x), gathered)


def tick(xp, job: Job, collection: Collection, state, gathered, noise, uniform, *around):
    """One step, and what is collected from it."""
    state, info = step(xp, job, state, noise, *around)
    x, draw = to_x(xp, job.frames, state.x), job.kernel.draw(state)
    if job.frames:
        energy = draw.energy - potential(xp, job.frames, draw.x)
        draw = draw._replace(x=to_x(xp, job.frames, draw.x), energy=energy)
    return state, collection.update(xp, gathered, x, draw, info, uniform)


def injected(source: Noise, t) -> Noise:
    """The noise of step t where all of it was given beforehand."""
    return Noise(*(None if part is None else part[t] for part in source))


def per_chain(energy, chains: int):
    """Energies as (chains,), from (chains,) or (chains, 1)."""
    check_per_chain(energy.shape, chains)
    return energy.reshape(chains)


def check_per_chain(shape, chains: int, name: str = "energy"):
    """Refuse an energy that isn't one number for each chain."""
    if tuple(shape) not in ((chains,), (chains, 1)):
        raise ValueError(
            f"{name} returned shape {tuple(shape)} for a batch of {chains} chains; return one "
            f"{name} per chain, shape ({chains},) or ({chains}, 1)"
        )


class NoNumber(ValueError):
    """What a function returned can't be an energy."""


def number(name: str, value: Any) -> Any:
    """What a function returned, which must be an array or a number."""
    if hasattr(value, "shape") or isinstance(value, numbers.Number):
        return value
    kind = "None" if value is None else f"a {type(value).__name__}"
    remedy = {
        "None": "let it end in a return",
        "a tuple": "a function of value and gradient goes into value_and_grad=",
    }
    raise NoNumber(
        f"{name} must return one number for each position, got {kind}; "
        + remedy.get(kind, "return an array or a float")
    )


def check_weights(engine: Engine, grad_fn) -> None:
    """Where an energy isn't finite: refuse networks of PyTorch whose weights aren't."""
    if engine.name == "torch":
        from schuss.engines.modules import check_finite, modules

        for module in modules(grad_fn.energy, far=False):
            check_finite(module, argument(grad_fn.energy))


def argument(energy: Callable) -> str:
    """What the user calls it: an energy may stand for the log-density that was given."""
    return getattr(energy, "argument", "energy")


def flat(x):
    """Positions as (chains, dim), and the way back."""
    shape = x.shape[1:]
    return x.reshape(len(x), -1), lambda z: z.reshape(-1, *shape)


@dataclasses.dataclass(frozen=True, eq=False)
class Identity:
    """A callable that can't be hashed, told apart by identity."""

    energy: Callable

    def __call__(self, x):
        """E(x)."""
        return self.energy(x)


def hashable(energy: Callable) -> Callable:
    """Something to look compiled code up by."""
    try:
        hash(energy)
    except TypeError:
        return Identity(energy)
    return energy
