"""Effective sample size and R-hat on x, (x − m)² and the energy together.

Means of x don't differ where chains each explore a part of the space symmetric about the mean, as
deterministic dynamics do on a Gaussian; spreads do (R-hat of x looks at these, too), and energies.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from schuss.diagnostics.ess import ess, rhat
from schuss.diagnostics.inputs import Array, finite_array, path_array, weight_array


@dataclass(frozen=True)
class Convergence:
    """ESS and R-hat of x and of its centred square, shape (dim,), and of the energy."""

    ess_x: Array
    ess_square: Array
    ess_energy: float
    rhat_x: Array
    rhat_square: Array
    rhat_energy: float

    @property
    def worst_ess(self) -> float:
        """Smallest effective sample size."""
        return float(min(self.ess_x.min(), self.ess_square.min(), self.ess_energy))

    @property
    def worst_rhat(self) -> float:
        """Largest R-hat."""
        return float(max(self.rhat_x.max(), self.rhat_square.max(), self.rhat_energy))


def convergence(x: ArrayLike, energy: ArrayLike, weights: ArrayLike | None = None) -> Convergence:
    """Diagnose `x` (draws, chains, dim) with its `energy` and `weights` (draws, chains)."""
    x = path_array(x, "x", at_least=4)
    energy = finite_array(energy, "energy", ("draws", "chains"))
    if energy.shape != x.shape[:2]:
        raise ValueError(
            f"energy must have shape {x.shape[:2]} like x, got {energy.shape}; "
            f"pass one energy per draw and chain"
        )
    w = np.ones(x.shape[:2]) if weights is None else weight_array(weights, x.shape[:2])
    mean = np.einsum("tc,tci->i", w, x) / np.sum(w)
    columns = np.concatenate([x, (x - mean) ** 2, energy[:, :, None]], axis=2)
    n, r = ess(columns, weights), rhat(columns, weights)
    dim = x.shape[2]
    return Convergence(
        ess_x=n[:dim],
        ess_square=n[dim:-1],
        ess_energy=float(n[-1]),
        rhat_x=r[:dim],
        rhat_square=r[dim:-1],
        rhat_energy=float(r[-1]),
    )
