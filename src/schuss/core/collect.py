"""What a run without a path collects on its way: nothing, one sample, or moments."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from schuss.core import moments, reservoir
from schuss.core.kernel import select

KEEP = ("last", "reservoir", "moments")


class Collection(NamedTuple):
    """What a run keeps: nothing but the state, a reservoir, or moments (with an open window)."""

    init: Callable  # (xp, x) → kept
    update: Callable  # (xp, kept, x, draw, info, uniform) → kept, x where the chain is
    uniforms: int


class Windowed(NamedTuple):
    """Moments of the windows that are complete, and of the one that is open."""

    done: Any
    open: Any


@functools.cache
def collecting(keep: str, *, windowed: bool = False) -> Collection:
    """How to collect `keep`, for kernels whose weights are relative to a window or absolute."""
    if keep == "last":
        return Collection(lambda xp, x: (), lambda xp, kept, x, draw, info, uniform: (), 0)
    if keep == "reservoir":
        return Collection(reservoir.init, _window_reservoir if windowed else _reservoir, 1)
    if windowed:
        return Collection(_windows, _window_moments, 0)
    return Collection(moments.init, _moments, 0)


def _reservoir(xp, kept, x, draw, info, uniform):
    return reservoir.update(xp, kept, x, info.log_weight, uniform)


def _window_reservoir(xp, kept, x, draw, info, uniform):
    """Every window ends in one state, and all of these count the same."""
    nothing = xp.zeros_like(info.log_weight)
    log_weight = xp.where(info.complete, nothing, nothing - float("inf"))
    return reservoir.update(xp, kept, x, log_weight, uniform)


def _moments(xp, kept, x, draw, info, uniform):
    return moments.update(xp, kept, draw.x, draw.energy, info.log_weight)


def _windows(xp, x):
    return Windowed(moments.init(xp, x), moments.init(xp, x))


def _window_moments(xp, kept, x, draw, info, uniform):
    inner = moments.update(xp, kept.open, draw.x, draw.energy, info.log_weight)
    merged = moments.merge(xp, kept.done, moments.normalise(xp, inner))
    return Windowed(
        select(xp, info.complete, merged, kept.done),
        select(xp, info.complete, moments.init(xp, draw.x), inner),
    )
