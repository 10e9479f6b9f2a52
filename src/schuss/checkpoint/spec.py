"""An array of rows: what one row is, how many are there, and how many make a chunk."""

import math
from collections.abc import Collection, Iterable
from typing import NamedTuple

import numpy as np

from schuss.checkpoint.disk import INNER
from schuss.checkpoint.files import collision, plain

CHUNK_BYTES = 2**20
CHUNK_ROWS = 1024
"""A chunk holds at most so many bytes, or one row, and so many rows."""

DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)
"""Those that rows may have, as NumPy and zarr call them."""


class Spec(NamedTuple):
    """An array of rows: rows `start` to `end` along `axis` are there."""

    axis: int
    start: int
    end: int
    chunk: int  # rows in a chunk
    row: list[int]  # shape of one row, the growing axis left out
    dtype: str

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the rows that are there."""
        return self.shaped(self.end - self.start)

    @property
    def full(self) -> int:
        """Full chunks up to `end`."""
        return self.end // self.chunk

    def shaped(self, rows: int) -> tuple[int, ...]:
        """Shape of so many rows."""
        return (*self.row[: self.axis], rows, *self.row[self.axis :])


def new_spec(
    name: str, block: np.ndarray, others: Iterable[str], along_first: Collection[str]
) -> Spec:
    """That of an array whose first rows are in `block`, none of them there yet."""
    check_name(name, others)
    if block.dtype.name not in DTYPES:
        raise TypeError(
            f"rows[{name!r}] must be of one of {', '.join(DTYPES)}, got dtype {block.dtype}"
        )
    if not block.ndim:
        raise ValueError(f"rows[{name!r}] must have an axis of rows, got a single value")
    axis = 0 if block.ndim == 1 or name in along_first else 1
    row = [*block.shape[:axis], *block.shape[axis + 1 :]]
    if 0 in row:
        raise ValueError(f"rows[{name!r}] must not have empty rows, got shape {block.shape}")
    chunk = min(CHUNK_ROWS, _most_rows(row, block.dtype))
    return Spec(axis, 0, 0, chunk, row, block.dtype.newbyteorder("<").str)


def _most_rows(row: list[int], dtype: np.dtype) -> int:
    """Rows in a chunk of at most CHUNK_BYTES."""
    return max(1, CHUNK_BYTES // (math.prod(row) * dtype.itemsize))


def check_rows(name: str, block: np.ndarray, spec: Spec) -> None:
    """Refuse rows that aren't like those before."""
    wanted = spec.shaped(block.shape[spec.axis] if block.ndim > spec.axis else 0)
    if block.shape != wanted or block.dtype.newbyteorder("<") != np.dtype(spec.dtype):
        shape = ", ".join(str(n) if i != spec.axis else "rows" for i, n in enumerate(wanted))
        raise ValueError(
            f"rows[{name!r}] must be of shape ({shape}) and dtype {np.dtype(spec.dtype).name} as "
            f"before, got {block.shape} and {block.dtype.name}"
        )


def check_spec(spec: Spec) -> None:
    """Refuse a description, read from a file, of an array that can't be."""
    counts = (spec.axis, spec.start, spec.end, spec.chunk, *spec.row)
    if (
        any(type(count) is not int for count in counts)
        or not 0 <= spec.axis <= min(1, len(spec.row))
        or not 0 <= spec.start <= spec.end
        or min((spec.chunk, *spec.row)) < 1
        or max(counts) >= 2**63
        or spec.dtype not in [np.dtype(name).newbyteorder("<").str for name in DTYPES]
        or spec.chunk > _most_rows(spec.row, np.dtype(spec.dtype))
    ):
        raise ValueError(f"rows can't be described by {spec}")


def check_name(name: str, others: Iterable[str]) -> None:
    """Refuse names that lead out of the folder, or that files of the folder have."""
    parts = str(name).split("/")
    reserved = any(part.startswith("__") or part.casefold() == "zarr.json" for part in parts)
    if not plain(name) or reserved or parts[0].casefold() == INNER:
        raise ValueError(f"rows can't be called {name!r}; pass a plain name, e.g. 'x'")
    other = collision(name, [other for other in others if other != name])
    if other is not None:
        raise ValueError(
            f"rows can't be called {name!r} beside {other!r}: one contains the other, or some file "
            "systems take them for the same; pass another name"
        )
