"""What one iteration trains on: a batch of data, and negatives by the sampler."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from schuss.algorithms import ESH
from schuss.arguments import whole
from schuss.ebm import ranks
from schuss.ebm.buffer import ReplayBuffer
from schuss.ebm.examples import Examples
from schuss.ebm.negatives import Drawer
from schuss.ebm.randomness import generator, key
from schuss.ebm.starts import Colours, colours, starting
from schuss.ebm.starts import reference as reference_energy

MOST_IMAGES = 50_000
"""Images of the data whose colours are looked at."""


class Batch(NamedTuple):
    """Data and negatives (n, *shape); the rest is (n,)."""

    x: Any
    labels: Any  # or None
    negatives: Any
    log_weights: Any  # of the negatives, or None where all count the same
    energy_error: Any
    delta: Any
    frozen: Any
    conditions: Any = None  # of the negatives, given which they are drawn


class Batches:
    """Draws batches, each depending on nothing but the seed, the iteration and the attempt.

    A batch is made of `streams` parts, numbered through all processes, each with random numbers
    and a buffer of its own. Without a buffer chains begin at `start` each time.
    """

    def __init__(
        self,
        examples: Examples,
        drawer: Drawer,
        *,
        batch: int,
        streams: int,
        buffer: ReplayBuffer | None,
        start: Callable | str,
        weighting: str | None,
        reference: Callable | None,
        fixed: torch.Tensor | None,
        conditional: bool,
        seed: int,
        device: torch.device,
        dtype: torch.dtype,
    ):
        self.batch, self.streams = whole("batch", batch, 1), whole("streams", streams, 1)
        if self.batch % self.streams:
            raise ValueError(f"batch must be a multiple of streams {streams}, got {batch}")
        self.examples, self.drawer, self.seed = examples, drawer, seed
        self.device, self.dtype = device, dtype
        self.channels_last = len(examples.shape) == 3 and device.type == "cuda"
        if weighting is not None:
            _check_weighting(drawer)
            if reference is None:
                # What chains of a buffer are drawn from is unknown: E₀ is a constant (App. D.4).
                reference = reference_energy("uniform" if buffer is not None else start)
        self.reference = None if weighting is None else reference
        box = (-1.0, 1.0)
        if buffer is not None:
            _check_buffer(buffer, examples, device, self.batch // self.streams)
            start, box = buffer.start, (buffer.lower, buffer.upper)
        self._start = start, examples.shape, device, *box
        self.fresh = starting(*self._start)
        self.buffers: list[ReplayBuffer] = []
        if buffer is not None:
            self.buffers = [buffer.sibling(self.number(k)) for k in range(self.streams)]
        self.fixed, self.conditional = fixed, conditional
        if fixed is not None:
            self.fresh = self._with_data(self.fresh, fixed)
            for each in self.buffers:
                each.begin(self.fresh)
        for each in self.buffers if conditional else ():
            each.condition(self.conditions)
        self.colours = None
        if start == "colour":
            self.paint(colours(examples.some(MOST_IMAGES)))

    def paint(self, colours: Colours) -> None:
        """Start chains, those of the buffers too, from these colours."""
        self.colours, self.fresh = colours, starting(*self._start, colours)
        if self.fixed is not None:
            self.fresh = self._with_data(self.fresh, self.fixed)
        for buffer in self.buffers:
            buffer.begin(self.fresh)

    def _with_data(self, fresh: Callable, fixed: torch.Tensor) -> Callable:
        """Starts whose fixed coordinates are those of data."""

        def start(n, generator):
            data, _ = self.examples.draw(n, generator)
            return torch.where(fixed, data, fresh(n, generator))

        return start

    def conditions(self, n: int, generator: torch.Generator) -> Any:
        """Conditions of the data."""
        return self.examples.draw(n, generator)[1]

    def number(self, stream: int) -> int:
        """Of a stream among those of all processes."""
        return ranks.rank() * self.streams + stream

    def draw(self, iteration: int, attempt: int) -> Batch:
        """The batch of an iteration; nothing here waits for the device."""
        return _joined([self._stream(k, iteration, attempt) for k in range(self.streams)])

    def noisy(self, iteration: int, attempt: int, noise: float) -> Batch:
        """The same where the negatives are the data with normal noise of this sd."""
        return _joined([self._noisy(noise, k, iteration, attempt) for k in range(self.streams)])

    def _noisy(self, noise: float, stream: int, iteration: int, attempt: int) -> Batch:
        n, place = self.batch // self.streams, (self.seed, self.number(stream), iteration, attempt)
        source = generator(self.device, *place, 1)
        x, labels = self.examples.draw(n, source)
        z = torch.randn(x.shape, generator=source, dtype=x.dtype, device=x.device)
        unknown = torch.full((n,), math.nan, dtype=self.dtype, device=self.device)
        y = labels if self.conditional else None
        x, z = self.laid_out(x), self.laid_out(z)
        return Batch(x, labels, x + noise * z, None, unknown, unknown, unknown.isinf(), y)

    def refill(self, noise: float) -> None:
        """Let buffers that no chain was drawn from begin at data with normal noise of this sd."""
        for stream, buffer in enumerate(self.buffers):
            if buffer.draws:
                continue
            source = generator(self.device, self.seed, self.number(stream), 0, 0, 6)
            x, labels = self.examples.draw(buffer.size, source)
            z = torch.randn(x.shape, generator=source, dtype=x.dtype, device=x.device)
            moved = x + noise * z
            buffer.x.copy_(moved.clamp(buffer.lower, buffer.upper) if buffer.boxed else moved)
            if buffer.y is not None:
                buffer.y.copy_(labels)

    def _stream(self, stream: int, iteration: int, attempt: int) -> Batch:
        n, place = self.batch // self.streams, (self.seed, self.number(stream), iteration, attempt)
        source = generator(self.device, *place, 1)
        x, labels = self.examples.draw(n, source)
        y = labels if self.conditional else None
        if self.buffers:
            buffer = self.buffers[stream]
            first, slots = buffer.draw(n)
            y = None if buffer.y is None else buffer.y[slots]
            drawn = self.drawer(self.laid_out(first), key(*place, 2), y)
            buffer.write(slots, drawn.x)
        else:
            first = self.fresh(n, source)
            drawn = self.drawer(self.laid_out(first), key(*place, 2), y)
        log_weights = None
        if self.reference is not None:
            log_weights = self.reference(first).reshape(n) + drawn.log_weights
            if self.buffers:
                # Eq. 9 as it is printed, E₀(x₀) − E(x₀) + r_t: more by the error of H.
                log_weights = log_weights + drawn.energy_error
            log_weights = log_weights.masked_fill(drawn.frozen, -math.inf)
        told = drawn.energy_error, drawn.delta, drawn.frozen
        return Batch(self.laid_out(x), labels, self.laid_out(drawn.x), log_weights, *told, y)

    def laid_out(self, x: torch.Tensor) -> torch.Tensor:
        """In the network's precision, and images on a GPU with their channels last."""
        x = x.to(self.dtype)
        return x.contiguous(memory_format=torch.channels_last) if self.channels_last else x


def _joined(parts: list[Batch]) -> Batch:
    """The batches of all streams as one."""
    if len(parts) == 1:
        return parts[0]
    columns = zip(*parts, strict=True)
    return Batch(*(None if column[0] is None else torch.cat(column) for column in columns))


def _check_weighting(drawer: Drawer) -> None:
    if not isinstance(drawer.algorithm, ESH) or drawer.algorithm.adjust is not None:
        raise ValueError("weighting='jarzynski' needs sampler=ESH(...) with adjust=None")
    if drawer.keep != "last":
        raise ValueError("weighting='jarzynski' weighs last states; pass keep='last'")


def _check_buffer(buffer, examples: Examples, device, n: int) -> None:
    if not isinstance(buffer, ReplayBuffer):
        raise TypeError(f"buffer must be a ReplayBuffer or None, got {type(buffer).__name__}")
    if buffer.shape != examples.shape:
        raise ValueError(
            f"buffer holds chains of shape {buffer.shape} but data has {examples.shape}; make them "
            "the same"
        )
    if buffer.device != device:
        raise ValueError(
            f"buffer is on {buffer.device} but net is on {device}; pass device={str(device)!r} to "
            "the buffer"
        )
    if n > buffer.size:
        raise ValueError(
            f"batch must be at most the buffer's size {buffer.size}, got {n}; take a larger buffer "
            "or a smaller batch"
        )
    if buffer.boxed:
        examples.check_inside(buffer.lower, buffer.upper)
