"""Whether energies have digits left to tell their differences."""

import numpy as np

from schuss.results.checks.evidence import WRONG, Found, Reason

SPACING = 0.1
"""Energies matter by their differences, of order one. A sum of many terms has several such errors;
with one alone, variances of a Gaussian are 5 % off at a spacing of 2, and 60 % at 8."""


def digits(energy: np.ndarray) -> Found:
    """The distance between neighbouring floats at the size of the energies, in their own precision.

    A Metropolis test between energies that are equal or far apart by rounding decides nothing.
    """
    size = np.abs(energy[np.isfinite(energy)])
    if energy.dtype.kind != "f" or not size.size:
        return Found([], {}, [])
    typical = np.median(size)
    spacing = float(np.spacing(typical))
    numbers = {"energy_spacing": spacing}
    if spacing <= SPACING:
        return Found([], numbers, [])
    text = (
        f"energies of about {typical:.2g} are known to ±{spacing / 2:.2g} in {energy.dtype}, too "
        "coarsely to be compared"
    )
    remedy = "Subtract a constant from the energy"
    if energy.dtype != np.float64:
        remedy += ", or use float64: pass init in it, e.g. np.asarray(init, np.float64)"
    return Found([Reason(WRONG, text, spacing, SPACING, remedy)], numbers, [])
