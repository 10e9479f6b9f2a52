"""How good a run is: NumPy in, NumPy out."""

from schuss.diagnostics.convergence import Convergence, convergence
from schuss.diagnostics.energy_error import (
    EnergyErrorVariance,
    HamiltonianError,
    energy_error_variance,
    hamiltonian_error,
)
from schuss.diagnostics.ess import ess, rhat
from schuss.diagnostics.jackknife import Estimate
from schuss.diagnostics.lyapunov import lyapunov
from schuss.diagnostics.mmd import (
    Interval,
    Reference,
    median_squared_distance,
    mmd2,
    mmd2_interval,
    null_level,
    reference,
)
from schuss.diagnostics.paper_ess import paper_ess
from schuss.diagnostics.vectorised import (
    ess_and_rhat,
    fast_ess,
    fast_rhat,
    nested_rhat,
    rank_ess,
    rank_ess_and_rhat,
    rank_rhat,
)
from schuss.diagnostics.virial import virial, virial_bias
from schuss.diagnostics.weights import (
    max_weight,
    normalise,
    ratio_jackknife,
    weight_ess,
    weighted_mean,
)

__all__ = [
    "Convergence",
    "EnergyErrorVariance",
    "Estimate",
    "HamiltonianError",
    "Interval",
    "Reference",
    "convergence",
    "energy_error_variance",
    "ess",
    "ess_and_rhat",
    "fast_ess",
    "fast_rhat",
    "hamiltonian_error",
    "lyapunov",
    "max_weight",
    "median_squared_distance",
    "mmd2",
    "mmd2_interval",
    "nested_rhat",
    "normalise",
    "null_level",
    "paper_ess",
    "rank_ess",
    "rank_ess_and_rhat",
    "rank_rhat",
    "ratio_jackknife",
    "reference",
    "rhat",
    "virial",
    "virial_bias",
    "weight_ess",
    "weighted_mean",
]
