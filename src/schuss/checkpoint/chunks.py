"""Rows cut into chunks, and a chunk as the bytes of a file."""

import math
from pathlib import Path

import numpy as np

from schuss.checkpoint.files import check_length, read
from schuss.checkpoint.spec import Spec


def append(
    block: np.ndarray, spec: Spec, tail: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, Spec]:
    """The chunks that new rows fill, (chunks, rows, …), the rows that remain, and the new spec."""
    rows = np.moveaxis(block, spec.axis, 0).astype(spec.dtype)
    joined = rows if tail is None else np.concatenate([tail, rows])
    full = len(joined) // spec.chunk
    chunks = joined[: full * spec.chunk].reshape(full, spec.chunk, *spec.row)
    # A copy: a view would hold on to the chunks.
    tail = joined[full * spec.chunk :].copy()
    return chunks, tail, spec._replace(end=spec.end + len(rows))


def padded(tail: np.ndarray, spec: Spec) -> np.ndarray:
    """The rows that fill no chunk, made one by NaN, or zero where there is none."""
    fill = math.nan if np.dtype(spec.dtype).kind in "fc" else 0
    room = np.full((spec.chunk - len(tail), *spec.row), fill, spec.dtype)
    return np.concatenate([tail, room])


def stored(chunk: np.ndarray, spec: Spec) -> memoryview:
    """The bytes of a chunk in its file, the rows at their own axis."""
    return np.ascontiguousarray(np.moveaxis(chunk, 0, spec.axis)).data.cast("B")


def key(spec: Spec, index: int) -> str:
    """The name of a chunk's file, as zarr has it: c.0.7.0 is the eighth along axis 1 of three."""
    axes = range(len(spec.row) + 1)
    return ".".join(["c", *(str(index if axis == spec.axis else 0) for axis in axes)])


def check_size(root: Path, name: str, index: int, spec: Spec) -> None:
    """Refuse a chunk whose file isn't as long as its rows."""
    size = math.prod(spec.shaped(spec.chunk)) * np.dtype(spec.dtype).itemsize
    check_length(root, f"{name}/{key(spec, index)}", size)


def read_chunk(root: Path, name: str, index: int, spec: Spec, checksum: int) -> np.ndarray:
    """One chunk, its rows first, of the right size."""
    data = read(root, f"{name}/{key(spec, index)}", checksum)
    return np.moveaxis(
        np.frombuffer(data, spec.dtype).reshape(spec.shaped(spec.chunk)), spec.axis, 0
    )


def sweep(folder: Path, spec: Spec) -> None:
    """Delete the chunks whose rows were all dropped, or never committed."""
    first, end = spec.start // spec.chunk, -(-spec.end // spec.chunk)
    for path in folder.glob("c.*"):
        index = path.name.split(".")[1 + spec.axis :][:1]
        if not index or not index[0].isdecimal() or path.name != key(spec, int(index[0])):
            continue  # not ours
        if not first <= int(index[0]) < end:
            path.unlink()
