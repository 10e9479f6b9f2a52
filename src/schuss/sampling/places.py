"""Where chains were before they were tuned, which the draws must know in the end."""

from typing import NamedTuple

import numpy as np

from schuss.tuning.local_mass import log_mass


class Places(NamedTuple):
    """Positions (n, dim), the energy at each, and the log mass that is at least around it."""

    x: np.ndarray
    energy: np.ndarray
    mass: np.ndarray

    def joined(self, others: "Places") -> "Places":
        """These places and then others."""
        return Places(*map(np.concatenate, zip(self, others, strict=True)))


def nowhere(dim: int) -> Places:
    """No place."""
    return Places(np.empty((0, dim)), np.empty(0), np.empty(0))


def last(x: np.ndarray, g: np.ndarray, energy: np.ndarray) -> Places:
    """Where paths (n, chains, dim) end, each with the mass around its way."""
    mass, error = log_mass(x, g, energy)
    return Places(x[-1], energy[-1], mass - error)
