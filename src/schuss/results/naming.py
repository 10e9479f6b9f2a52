"""Which named quantity a flat coordinate is."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from schuss.results.summary import element_names

DRAWS = 64
"""Draws whose order is compared: enough that no two unrelated quantities share it."""


def flat_names(
    x: np.ndarray,
    draws: Mapping[str, np.ndarray],
    dims: Mapping[str, Sequence[str]],
    coords: Mapping[str, Sequence[Any]],
) -> tuple[str, ...]:
    """Names for the coordinates of `x` (chains, draws, dim) from the named `draws`.

    A bound is taken off by a map that rises or falls in one coordinate, and such a map keeps or
    reverses the order of the draws: a coordinate gets the name of the first quantity that orders
    them as it does, and "unconstrained[i]" where there is none.
    """
    places = np.unique(np.linspace(0, x.shape[0] * x.shape[1] - 1, DRAWS).astype(int))
    known: dict[bytes, str] = {}
    for name, values in draws.items():
        flat = values.reshape(x.shape[0] * x.shape[1], -1)[places].astype(float)
        labels = element_names(name, values.shape[2:], dims.get(name), coords)
        for key, label in zip(_orders(flat), labels, strict=True):
            if key:
                known.setdefault(key, label)
    flat = x.reshape(-1, x.shape[2])[places]
    return tuple(
        (known.get(up) or known.get(down) or f"unconstrained[{i}]")
        for i, (up, down) in enumerate(zip(_orders(flat), _orders(-flat), strict=True))
    )


def _orders(columns: np.ndarray) -> list[bytes]:
    """The order of each column's entries as a key; empty where there are too few different ones."""
    known = np.where(np.isfinite(columns).all(axis=0), columns, 0.0)
    ranks = [np.unique(column, return_inverse=True)[1].astype(np.int32) for column in known.T]
    return [rank.tobytes() if rank.max(initial=0) >= 8 else b"" for rank in ranks]
