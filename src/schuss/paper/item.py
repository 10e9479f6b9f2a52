"""What one table or figure of the paper is, once it can be rebuilt."""

import dataclasses
import math
import pathlib
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np


def short(values: Any, digits: int = 4) -> Any:
    """Numbers, or lists of them, to so many significant digits; None for what isn't finite."""
    if np.ndim(values):
        return [short(value, digits) for value in values]
    number = float(values)
    return float(f"{number:.{digits}g}") if math.isfinite(number) else None


class Advance(Protocol):
    """Tells that a part of the work is done."""

    def __call__(self, done: str) -> None:
        """Say which."""
        ...


@dataclasses.dataclass(frozen=True)
class Settings:
    """How a result is made. The same settings give the same numbers.

    `data` is where images are, `work` a folder in which long runs leave what they have so far and
    look for what is there already: both are places on this machine and no part of a result.
    """

    quick: bool = False
    seed: int = 0
    seeds: int = 3  # networks trained with each sampler, from `seed` on
    data: pathlib.Path | None = None
    work: pathlib.Path | None = None

    def without_places(self) -> "Settings":
        """What a result depends on, and is kept with it."""
        return dataclasses.replace(self, data=None, work=None)


@dataclasses.dataclass(frozen=True)
class Item:
    """A table or figure: how to compute it, draw it, and say in words what it shows.

    `compute(settings, advance)` returns plain JSON: numbers, strings, lists and dicts. `parts`
    is how often it calls `advance`. `draw(result, folder)` writes its pictures and returns their
    file names. `tell(result)` returns the numbers and what they mean in Markdown; what they make of
    the paper's sentences is in `schuss.paper.claims`. A result made elsewhere or in parts holds the
    `seconds` that it took.
    """

    name: str
    title: str
    place: str  # where it stands in the paper
    compute: Callable[[Settings, Advance], dict[str, Any]]
    draw: Callable[[dict[str, Any], Any], list[str]]
    tell: Callable[[dict[str, Any]], str]
    parts: Callable[[Settings], int]
    alone: bool = False  # rebuilt by its own name only
