"""How well an integrator keeps the energy: |H_t − H_0| and Var(ΔW) per dimension."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from schuss.diagnostics.inputs import Array


class HamiltonianError(NamedTuple):
    """Mean |H_t − H_0| of each chain over t ≥ 1, at each time over the chains, and over both."""

    per_chain: Array
    over_time: Array
    mean: float
    non_finite: int


class EnergyErrorVariance(NamedTuple):
    """Var(ΔW)/dim over the finite errors, with the number of finite and non-finite ones."""

    eevpd: float
    finite: int
    non_finite: int


def hamiltonian_error(h: ArrayLike) -> HamiltonianError:
    """Mean |H_t − H_0| for `h` (draws, chains), H_0 in its first row.

    Means are over the finite errors, nan where there are none; the others are counted.
    """
    h = np.asarray(h, dtype=np.float64)
    if h.ndim != 2 or h.shape[0] < 2 or h.shape[1] < 1:
        raise ValueError(
            f"h must have shape (draws, chains) with at least 2 draws, got {h.shape}; "
            f"pass the initial Hamiltonian as the first row"
        )
    with np.errstate(invalid="ignore"):
        error = np.abs(h - h[0])
    finite = np.isfinite(error)
    error = np.where(finite, error, 0.0)
    return HamiltonianError(
        per_chain=_ratio(error[1:].sum(axis=0), finite[1:].sum(axis=0)),
        over_time=_ratio(error.sum(axis=1), finite.sum(axis=1)),
        mean=float(_ratio(error[1:].sum(), finite[1:].sum())),
        non_finite=int(np.count_nonzero(~finite[1:])),
    )


def energy_error_variance(delta_w: ArrayLike, dim: int) -> EnergyErrorVariance:
    """EEVPD = Var(ΔW)/dim of the step errors `delta_w`, of any shape; nan from fewer than two."""
    if dim < 1:
        raise ValueError(f"dim must be at least 1, got {dim}; pass the dimension of one chain")
    errors = np.asarray(delta_w, dtype=np.float64).reshape(-1)
    kept = errors[np.isfinite(errors)]
    value = float(np.var(kept, ddof=1)) / dim if kept.size > 1 else float("nan")
    return EnergyErrorVariance(value, kept.size, errors.size - kept.size)


def _ratio(total: ArrayLike, count: ArrayLike) -> Array:
    count = np.asarray(count, dtype=np.float64)
    return np.where(count > 0, np.asarray(total) / np.maximum(count, 1.0), np.nan)
