"""A posterior as the sampler sees it, flat and unconstrained, and as its user knows it."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np


@dataclasses.dataclass(frozen=True)
class Parts:
    """Prior and likelihood apart, over the same flat positions: their sum is the log-density."""

    log_prior: Callable  # one position (dim,) → a number, with JAX; normalised
    log_likelihood: Callable
    sample_prior: Callable  # (rng, n) → (n, dim), NumPy


@dataclasses.dataclass(frozen=True)
class Model:
    """A log-density over flat positions, where chains start, and the way back to named values.

    Exactly one of `logdensity` (one position (dim,) → a number, with JAX) and `value_and_grad`
    (positions (chains, dim) → energies −log p (chains,) and their gradients, in NumPy) is given.
    `start(rng, chains)` draws float64 starting positions (chains, dim). `constrain` maps flat NumPy
    positions (chains, draws, dim) to a dict of named NumPy arrays (chains, draws, *shape), with
    deterministic quantities among them. `dims` and `coords` are ArviZ's. `flatten`, where there is
    one, maps a position as the user writes it to a flat one. Chains have the precision `dtype`.
    """

    name: str
    dim: int
    start: Callable
    constrain: Callable
    logdensity: Callable | None = None
    value_and_grad: Callable | None = None
    dims: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)
    coords: Mapping[str, Sequence[Any]] = dataclasses.field(default_factory=dict)
    parts: Parts | None = None
    flatten: Callable | None = None
    dtype: Any = np.float64
