"""Named values laid out flat, side by side."""

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np


@dataclasses.dataclass(frozen=True)
class Layout:
    """The shapes of values, in the order in which they lie in a flat position."""

    shapes: tuple[tuple[int, ...], ...]

    @property
    def dim(self) -> int:
        """Coordinates of one position."""
        return sum(map(math.prod, self.shapes))

    def split(self, x: Any) -> list:
        """Flat positions (…, dim) → values (…, *shape), for NumPy and JAX."""
        ends = list(itertools.accumulate(map(math.prod, self.shapes), initial=0))
        return [
            x[..., first:last].reshape((*x.shape[:-1], *shape))
            for first, last, shape in zip(ends[:-1], ends[1:], self.shapes, strict=True)
        ]


def layout(values: Sequence) -> Layout:
    """The layout of one position's values."""
    return Layout(tuple(tuple(np.shape(value)) for value in values))


def join(xp: Any, values: Sequence) -> Any:
    """One position's values → (dim,)."""
    return xp.concatenate([xp.asarray(value).reshape(-1) for value in values])
