"""What a test problem is: an energy E = −log p + const, where to start, and the truth about it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

Array = Any
Namespace = Any
Function = Callable[[Namespace, Array], Array]
Draw = Callable[[np.random.Generator, int], np.ndarray]


class Truth(NamedTuple):
    """Exact moments per coordinate, shape (dim,), with E[E(x)] and log ∫ e^{−E} where known."""

    mean: np.ndarray
    variance: np.ndarray
    second_moment: np.ndarray
    second_variance: np.ndarray
    energy: float | None = None
    log_z: float | None = None


@dataclass(frozen=True)
class Target:
    """An energy on `(n, dim)` positions, written once for every array library.

    `energy(xp, x)` is (n,) and `gradient(xp, x)` is (n, dim), both of x's dtype and device.
    `start` and `sample` draw float64 NumPy positions, the latter exactly from p ∝ e^{−E}.
    `whiten` maps exact samples to standard normals. `box` is (lower, upper) of a bounded support.
    """

    name: str
    dim: int
    energy: Function
    gradient: Function
    start: Draw
    sample: Draw | None = None
    truth: Truth | None = None
    whiten: Callable[[np.ndarray], np.ndarray] | None = None
    box: tuple[np.ndarray, np.ndarray] | None = None
