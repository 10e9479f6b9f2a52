"""Sample unnormalised densities with Energy Sampling Hamiltonian (ESH) dynamics."""

from schuss import targets
from schuss.algorithms import ESH, HMC, MALA, ULA, NoseHoover, Unscaled
from schuss.core.kernel import Noise
from schuss.sampler import Run, Sampler
from schuss.trajectory import Path, trajectory

__all__ = [
    "ESH",
    "HMC",
    "MALA",
    "ULA",
    "Noise",
    "NoseHoover",
    "Path",
    "Run",
    "Sampler",
    "Unscaled",
    "targets",
    "trajectory",
]
