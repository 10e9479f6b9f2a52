"""Sample unnormalised densities with Energy Sampling Hamiltonian (ESH) dynamics."""

from schuss import targets
from schuss.adapters import from_numpyro, from_pymc, from_pytree, from_value_and_grad
from schuss.algorithms import ESH, HMC, MALA, ULA, NoseHoover, Unscaled
from schuss.core.kernel import Noise
from schuss.evidence import Comparison, Evidence, Normal, Prior, Uniform, compare, evidence
from schuss.results import NotConverged, Posterior
from schuss.sampler import Run, Sampler
from schuss.sampling.sample import sample
from schuss.trajectory import Path, trajectory

__all__ = [
    "ESH",
    "HMC",
    "MALA",
    "ULA",
    "Comparison",
    "Evidence",
    "Noise",
    "Normal",
    "NoseHoover",
    "NotConverged",
    "Path",
    "Posterior",
    "Prior",
    "Run",
    "Sampler",
    "Uniform",
    "Unscaled",
    "compare",
    "evidence",
    "from_numpyro",
    "from_pymc",
    "from_pytree",
    "from_value_and_grad",
    "sample",
    "targets",
    "trajectory",
]
