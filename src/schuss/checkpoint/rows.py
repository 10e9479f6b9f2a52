"""Committed rows, read from their chunks when asked for."""

from pathlib import Path
from typing import Any

import numpy as np

from schuss.checkpoint.chunks import read_chunk
from schuss.checkpoint.spec import Spec


class Rows:
    """The committed rows of one array. Indexing along its rows reads only those asked for."""

    def __init__(self, folder: Path, spec: Spec, tail: np.ndarray):
        self._folder, self._spec, self._tail = folder, spec, tail
        self.shape, self.dtype, self.ndim = spec.shape, np.dtype(spec.dtype), len(spec.shape)

    def read(self, begin: int, end: int) -> np.ndarray:
        """Rows begin to end, counted from the first that is there."""
        spec = self._spec
        out = np.empty(spec.shaped(end - begin), self.dtype)
        rows = np.moveaxis(out, spec.axis, 0)
        first, last = spec.start + begin, spec.start + end
        for index in range(first // spec.chunk, -(-last // spec.chunk)):
            at = index * spec.chunk
            low, high = max(first, at), min(last, at + spec.chunk)
            full = at + spec.chunk <= spec.end
            chunk = read_chunk(self._folder, spec, index) if full else self._tail
            rows[low - first : high - first] = chunk[low - at : high - at]
        return out

    def __getitem__(self, key: Any) -> np.ndarray:
        axis, rows = self._spec.axis, self.shape[self._spec.axis]
        keys = list(key if isinstance(key, tuple) else (key,))
        plain = all(isinstance(part, slice | int | np.integer) for part in keys)
        if not plain or not axis < len(keys) <= self.ndim:
            return np.asarray(self)[key]
        chosen = range(rows)[keys[axis]]
        if isinstance(chosen, int):
            keys[axis] = 0
            return self.read(chosen, chosen + 1)[tuple(keys)]
        if not len(chosen):
            return self.read(0, 0)[tuple(keys)]
        low, high = min(chosen[0], chosen[-1]), max(chosen[0], chosen[-1])
        keys[axis] = slice(None, None, chosen.step)
        return self.read(low, high + 1)[tuple(keys)]

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        whole = self.read(0, self.shape[self._spec.axis])
        return whole if dtype is None else whole.astype(dtype, copy=False)

    def __repr__(self) -> str:
        return f"<Rows {self.shape} {self.dtype} in {self._folder}>"
