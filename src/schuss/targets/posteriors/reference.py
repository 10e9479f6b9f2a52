"""Stored moments of the posteriors without a closed form, from long runs of another sampler.

`benchmarks/references.py` makes `references.json`: for each name the mean, the variance, the second
moment and its variance per coordinate, the standard errors of the first and the third, E[E(x)], and
the energy at `probe(dim)`, by which data that have changed since are noticed.
"""

import functools
import json
from importlib import resources
from typing import NamedTuple

import numpy as np

from schuss.targets.target import Truth

FILE = "references.json"


class StandardError(NamedTuple):
    """Standard errors of a stored mean and second moment, per coordinate."""

    mean: np.ndarray
    second_moment: np.ndarray


@functools.cache
def stored() -> dict[str, dict]:
    """Everything in the file, by the target's name."""
    return json.loads(resources.files("schuss.targets.posteriors").joinpath(FILE).read_text())


def reference(name: str) -> Truth | None:
    """The stored truth of a target, or None where none has been made."""
    if name not in stored():
        return None
    entry = stored()[name]
    return Truth(
        mean=np.asarray(entry["mean"], dtype=np.float64),
        variance=np.asarray(entry["variance"], dtype=np.float64),
        second_moment=np.asarray(entry["second_moment"], dtype=np.float64),
        second_variance=np.asarray(entry["second_variance"], dtype=np.float64),
        energy=entry["energy"],
    )


def reference_error(name: str) -> StandardError:
    """How well the stored moments of a target are known."""
    if name not in stored():
        raise ValueError(
            f"name must have a stored reference, got {name!r}; pass one of {[*stored()]}"
        )
    entry = stored()[name]
    return StandardError(
        np.asarray(entry["mean_error"], dtype=np.float64),
        np.asarray(entry["second_error"], dtype=np.float64),
    )


def probe(dim: int) -> np.ndarray:
    """A fixed point (1, dim), evenly spread over [−1, 1]."""
    return np.linspace(-1.0, 1.0, dim)[None, :]
