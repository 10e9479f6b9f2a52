"""Rows of a large array a few at a time: what is computed from them stays in the cache."""

from collections.abc import Iterator

NUMBERS = 2**16


def blocks(rows: int, dim: int) -> Iterator[slice]:
    """Slices of so many rows of `dim` numbers."""
    size = max(NUMBERS // dim, 1)
    return (slice(first, first + size) for first in range(0, rows, size))
