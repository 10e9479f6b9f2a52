"""What has been passed on the way, chain by chain: some chains complete more transitions."""

from typing import Any, NamedTuple

import numpy as np

from schuss.sampling.field import Rows

FIELDS = ("x", "g", "energy", "error", "acceptance")
SUMS = ("counts", "origin", "total", "squares")


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
        self.blocks: dict[str, list[list[np.ndarray]]] = {
            name: [[] for _ in range(chains)] for name in FIELDS
        }
        self.counts = np.zeros(chains, int)  # of states that count, kept or not
        # Sums of x − origin, the first state: far from zero, squares of x would lose all digits.
        self.origin = np.zeros((chains, dim))
        self.total = np.zeros((chains, dim))
        self.squares = np.zeros((chains, dim))
        self._stacked: dict[str, np.ndarray] = {}

    @property
    def chains(self) -> int:
        """How many there are."""
        return len(self.counts)

    @property
    def size(self) -> int:
        """States kept of every chain."""
        return int(self.counts.min()) // self.thin

    def add(self, rows: Rows) -> None:
        """Append the rows that are complete."""
        self._stacked = {}
        for chain in range(self.chains):
            done = np.flatnonzero(rows.complete[:, chain])
            # The k-th state of a chain is kept when k + 1 is a multiple of thin.
            kept = done[-(self.counts[chain] + 1) % self.thin :: self.thin]
            if self.limit is not None and len(done):
                every = rows.x(done, chain)
                if not self.counts[chain]:
                    self.origin[chain] = every[0]
                every = every - self.origin[chain]
                self.total[chain] += every.sum(axis=0)
                self.squares[chain] += (every**2).sum(axis=0)
            self.counts[chain] += len(done)
            if not len(kept):
                continue
            self.blocks["x"][chain].append(rows.x(kept, chain))
            self.blocks["g"][chain].append(rows.g(kept, chain))
            for name in ("energy", "error", "acceptance"):
                values = getattr(rows, name)[kept, chain]
                self.blocks[name][chain].append(np.asarray(values, float))
        while self.limit is not None and self.size > self.limit:
            self._halve()

    def cut(self, skip: int) -> "Archive":
        """The same without the first `skip` of the kept states."""
        new = Archive(self.chains, self.total.shape[1], self.thin)
        new.counts = self.counts - skip * self.thin
        for name in FIELDS:
            new.blocks[name] = [[self.chain(name, k)[skip:]] for k in range(self.chains)]
        return new

    def stack(self, name: str, skip: int = 0) -> np.ndarray:
        """One field as (n, chains, …), the same number of states of every chain."""
        if name not in self._stacked:
            chains = [self.chain(name, k)[: self.size] for k in range(self.chains)]
            self._stacked[name] = np.stack(chains, axis=1)
        return self._stacked[name][skip:]

    def chain(self, name: str, chain: int) -> np.ndarray:
        """One field of one chain, all that is kept of it."""
        blocks = self.blocks[name][chain]
        if len(blocks) != 1:
            shape = (0, self.total.shape[1]) if name in ("x", "g") else (0,)
            blocks[:] = [np.concatenate(blocks) if blocks else np.empty(shape)]
        return blocks[0]

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
        for name in FIELDS:
            new.blocks[name] = [
                [self.chain(name, k)[thin - 1 :: thin].copy()] for k in range(self.chains)
            ]
        return new

    def joined(self, other: "Archive") -> "Archive":
        """These states and then those of another, both as they are kept."""
        new = Archive(self.chains, self.total.shape[1])
        new.counts = np.full(self.chains, self.size + other.size)
        for name in FIELDS:
            new.blocks[name] = [
                [self.chain(name, k)[: self.size], other.chain(name, k)[: other.size]]
                for k in range(self.chains)
            ]
        return new

    def pack(self, prefix: str, skip: int = 0) -> dict[str, Any]:
        """All of it but the first `skip` states of each chain, as arrays by name."""
        packed: dict[str, Any] = {f"{prefix}.{name}": getattr(self, name) for name in SUMS}
        packed[f"{prefix}.thin"], packed[f"{prefix}.limit"] = self.thin, self.limit
        for name in FIELDS:
            for k in range(self.chains):
                packed[f"{prefix}.{name}.{k}"] = self.chain(name, k)[skip:]
        return packed

    @classmethod
    def unpack(cls, packed: dict[str, Any], prefix: str, rows=None) -> "Archive":
        """What was packed, behind `rows` by name, (chains, n, …), if it was packed without them."""
        counts, total = packed[f"{prefix}.counts"], packed[f"{prefix}.total"]
        chains, dim = total.shape
        new = cls(chains, dim, packed[f"{prefix}.thin"], packed[f"{prefix}.limit"])
        for name in SUMS:
            setattr(new, name, packed[f"{prefix}.{name}"].copy())
        for name in FIELDS:
            for k in range(len(counts)):
                tail = packed[f"{prefix}.{name}.{k}"]
                head = [] if rows is None or name not in rows else [rows[name][k]]
                new.blocks[name][k] = [*head, tail]
        return new

    def _halve(self) -> None:
        for name in FIELDS:
            for k in range(self.chains):
                self.blocks[name][k][:] = [self.chain(name, k)[1::2].copy()]
        self.thin *= 2
        self._stacked = {}
