"""Committed rows, read from their chunks when asked for."""

from pathlib import Path
from typing import Any

import numpy as np

from schuss.checkpoint.chunks import check_size, read_chunk
from schuss.checkpoint.spec import Spec


class Rows:
    """The committed rows of one array. Indexing along its rows reads only those asked for."""

    def __init__(self, root: Path, name: str, spec: Spec, tail: np.ndarray, checksums: np.ndarray):
        self._root, self._name, self._spec = root, name, spec
        self._tail, self._checksums = tail, checksums
        self.shape, self.dtype, self.ndim = spec.shape, np.dtype(spec.dtype), len(spec.shape)

    def read(self, begin: int, end: int) -> np.ndarray:
        """Rows begin to end, counted from the first that is there."""
        spec = self._spec
        first, last = spec.start + begin, spec.start + end
        indices = range(first // spec.chunk, -(-last // spec.chunk))
        for index in indices:
            if index < spec.full:  # before memory is asked for
                check_size(self._root, self._name, index, spec)
        out = np.empty(spec.shaped(end - begin), self.dtype)
        rows = np.moveaxis(out, spec.axis, 0)
        for index in indices:
            at = index * spec.chunk
            low, high = max(first, at), min(last, at + spec.chunk)
            if index < spec.full:
                checksum = int(self._checksums[index])
                chunk = read_chunk(self._root, self._name, index, spec, checksum)
            else:
                chunk = self._tail
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
        return f"<Rows {self.shape} {self.dtype} in {self._root / self._name}>"
