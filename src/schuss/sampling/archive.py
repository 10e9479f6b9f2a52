"""What has been passed on the way, chain by chain: some chains complete more transitions."""

import math
from typing import Any, NamedTuple

import numpy as np

from schuss.sampling.field import Rows

FIELDS = ("x", "g", "energy", "error", "acceptance")
SUMS = ("counts", "origin", "total", "squares")

PLENTY = 2**23
"""Numbers that there may be room for long before they are there."""


def chains_first(values: np.ndarray) -> np.ndarray:
    """From (n, chains, …), as states are made, to (chains, n, …), as users have them."""
    return np.ascontiguousarray(np.swapaxes(values, 0, 1))


class Moments(NamedTuple):
    """Mean and variance of each chain, (chains, dim), and how many states they come from."""

    mean: np.ndarray
    variance: np.ndarray
    states: np.ndarray  # (chains,)


class Archive:
    """States that count, with every `thin`-th kept.

    With a `limit` no more than so many states of a chain are kept: when they are full, every
    second one goes and `thin` doubles; moments are of all states then.
    """

    def __init__(self, chains: int, dim: int, thin: int = 1, limit: int | None = None):
        self.thin, self.limit = thin, limit
        # Time first with room to grow, so that chains side by side are there without a copy.
        self._held = {name: np.empty((0, chains, *_shape(name, dim))) for name in FIELDS}
        self.counts = np.zeros(chains, int)  # of states that count, kept or not
        # Sums of x − origin, the first state: far from zero, squares of x would lose all digits.
        self.origin = np.zeros((chains, dim))
        self.total = np.zeros((chains, dim))
        self.squares = np.zeros((chains, dim))

    @property
    def chains(self) -> int:
        """How many there are."""
        return len(self.counts)

    @property
    def size(self) -> int:
        """States kept of every chain."""
        return int(self.counts.min()) // self.thin

    def add(self, rows: Rows) -> None:
        """Append the rows that are complete, or those that have numbers."""
        if not len(rows.energy):
            return
        # The numbers of a chain's states, from 1: those that thin divides are kept.
        if rows.numbers is None:
            number = self.counts + np.cumsum(rows.complete, axis=0)
            kept, reached = rows.complete & (number % self.thin == 0), number[-1]
        else:
            kept = np.diff(rows.numbers.of, axis=0, prepend=0) > 0
            reached = self.counts - self.counts % self.thin + rows.numbers.reached
        sums = None if self.limit is None else self._summed(rows)
        self._make_room(reached)
        begun = self.counts // self.thin
        chain, row = np.nonzero(kept.T)
        self._write("x", rows.x(row, chain), begun, kept)
        self._write("g", rows.g(row, chain), begun, kept)
        for name in ("energy", "error", "acceptance"):
            self._write(name, getattr(rows, name)[row, chain], begun, kept)
        # Counted last: a run that is interrupted anywhere before has lost these rows, and no more.
        if sums is not None:
            self.origin, self.total, self.squares = sums
        self.counts = reached.copy()
        while self.limit is not None and self.size > self.limit:
            self._halve()

    def cut(self, skip: int) -> "Archive":
        """The same without the first `skip` of the kept states."""
        new = Archive(self.chains, self.total.shape[1], self.thin)
        new.counts = self.counts - skip * self.thin
        new._held = {
            name: _lent(values[skip : self._longest]) for name, values in self._held.items()
        }
        return new

    def stack(self, name: str, skip: int = 0) -> np.ndarray:
        """One field as (n, chains, …), the same number of states of every chain, not copied."""
        return self._held[name][skip : max(skip, self.size)]

    def chain(self, name: str, chain: int) -> np.ndarray:
        """One field of one chain, all that is kept of it."""
        return self._held[name][: self.counts[chain] // self.thin, chain]

    def moments(self) -> Moments:
        """Of all states, kept or not; for archives with a limit."""
        count = np.maximum(self.counts, 1)[:, None]
        away = self.total / count
        return Moments(self.origin + away, self.squares / count - away**2, self.counts)

    def thinned(self, thin: int) -> "Archive":
        """The same with every `thin`-th of the kept states."""
        new = Archive(self.chains, self.total.shape[1], self.thin * thin)
        for name in SUMS:
            setattr(new, name, getattr(self, name).copy())
        for name, values in self._held.items():
            few = values[thin - 1 : self._longest : thin]
            new._held[name] = _lent(few) if thin == 1 else few.copy()
        return new

    def joined(self, other: "Archive") -> "Archive":
        """These states and then those of another, both as they are kept."""
        new = Archive(self.chains, self.total.shape[1])
        new.counts = np.full(self.chains, self.size + other.size)
        new._held = {name: np.concatenate([self.stack(name), other.stack(name)]) for name in FIELDS}
        return new

    def pack(self, prefix: str, skip: int = 0) -> dict[str, Any]:
        """All of it but the first `skip` states of each chain, as arrays by name."""
        packed: dict[str, Any] = {f"{prefix}.{name}": getattr(self, name) for name in SUMS}
        packed[f"{prefix}.thin"], packed[f"{prefix}.limit"] = self.thin, self.limit
        for name in FIELDS:
            for k in range(self.chains):
                packed[f"{prefix}.{name}.{k}"] = np.ascontiguousarray(self.chain(name, k)[skip:])
        return packed

    @classmethod
    def unpack(cls, packed: dict[str, Any], prefix: str, rows=None) -> "Archive":
        """What was packed, behind `rows` by name, (chains, n, …), if it was packed without them."""
        chains, dim = packed[f"{prefix}.total"].shape
        new = cls(chains, dim, packed[f"{prefix}.thin"], packed[f"{prefix}.limit"])
        new._make_room(packed[f"{prefix}.counts"])
        for name in SUMS:
            setattr(new, name, packed[f"{prefix}.{name}"].copy())
        for name, held in new._held.items():
            skip = 0
            if rows is not None and name in rows:
                skip = rows[name].shape[1]
                held[:skip] = np.swapaxes(rows[name], 0, 1)
            for k in range(chains):
                tail = packed[f"{prefix}.{name}.{k}"]
                held[skip : skip + len(tail), k] = tail
        return new

    @property
    def _longest(self) -> int:
        """States kept of the chain with most of them."""
        return int(self.counts.max()) // self.thin

    def _summed(self, rows: Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The origin and the sums with what is complete added."""
        x, done = rows.x(), rows.complete[..., None]
        begin = (self.counts == 0) & rows.complete.any(axis=0)
        first = np.argmax(rows.complete, axis=0)
        begun = x[first, np.arange(self.chains)]
        origin = np.where(begin[:, None], begun, self.origin)
        away = np.where(done, x - origin, 0)
        return origin, self.total + away.sum(axis=0), self.squares + (away**2).sum(axis=0)

    def _write(self, name: str, values: np.ndarray, begun: np.ndarray, kept: np.ndarray) -> None:
        """Values of the states that are kept, chain after chain, behind those there are."""
        held, size = self._held[name], kept.sum(axis=0)
        if np.all(size == size[0]) and np.all(begun == begun[0]):
            block = values.reshape(self.chains, size[0], *values.shape[1:])
            held[begun[0] : begun[0] + size[0]] = np.swapaxes(block, 0, 1)
            return
        # Slices, since NumPy takes ten times as long to write to places one by one.
        ends = np.cumsum(size)
        for k, (first, count, end) in enumerate(zip(begun, size, ends, strict=True)):
            held[first : first + count, k] = values[end - count : end]

    def _make_room(self, counts: np.ndarray) -> None:
        """Have room for so many states of each chain."""
        wanted = int(counts.max()) // self.thin
        for name, held in self._held.items():
            if len(held) >= wanted and held.flags.writeable:
                continue
            # What isn't written to takes no memory, so there may be room for many more.
            times = 8 if 8 * wanted * math.prod(held.shape[1:]) <= PLENTY else 2
            room = np.empty((times * wanted, *held.shape[1:]))
            room[: self._longest] = held[: self._longest]
            self._held[name] = room

    def _halve(self) -> None:
        last = self._longest
        halves = {name: held[1:last:2].copy() for name, held in self._held.items()}
        self._held, self.thin = halves, 2 * self.thin


def _shape(name: str, dim: int) -> tuple[int, ...]:
    """Of one state's value of a field."""
    return (dim,) if name in ("x", "g") else ()


def _lent(values: np.ndarray) -> np.ndarray:
    """The same memory, which is another's to write to."""
    values = values.view()
    values.flags.writeable = False
    return values
