"""How much mass there is around some draws, as if the density were a Gaussian there."""

from typing import NamedTuple

import numpy as np

from schuss.tuning.metric import scales


class LogMass(NamedTuple):
    """The logarithm of a mass, and how much its bottom varies from draw to draw: 0 on Gaussians.

    Infinite where no draw differs from the others.
    """

    value: np.ndarray
    error: np.ndarray


def log_mass(x: np.ndarray, g: np.ndarray, energy: np.ndarray) -> LogMass:
    """−E₀ + Σ log s_i of draws and gradients (n, …, dim) and energies (n, …), up to a constant.

    The scales are s = (var x/var g)^¼ and the bottom is E₀ = E − ½ Σ s²g²: on a Gaussian both are
    right wherever the draws lie, be they few, on one side, or too close together.
    """
    s = scales(x, g)
    with np.errstate(over="ignore", invalid="ignore"):
        bottom = energy - 0.5 * np.sum((s * g) ** 2, axis=-1)
        value = np.sum(np.log(s), axis=-1) - bottom.mean(axis=0)
        # Draws that are all one say nothing of a scale.
        still = np.all(x == x[:1], axis=(0, -1))
        return LogMass(value, np.where(still, np.inf, bottom.std(axis=0)))
