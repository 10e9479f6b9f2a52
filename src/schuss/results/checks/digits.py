"""Whether energies and draws have digits left to tell their differences."""

import numpy as np

from schuss.results.checks.evidence import WRONG, Found, Reason, more

SPACING = 0.1
"""Energies matter by their differences, of order one. A sum of many terms has several such errors;
with one alone, variances of a Gaussian are 5 % off at a spacing of 2, and 60 % at 8."""

NEIGHBOURS = 100
"""Floats within a deviation of a coordinate: with fewer, rounding it changes an energy by more than
a hundredth."""


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


def places(x: np.ndarray, dtype: np.dtype, names: tuple[str, ...]) -> list[Reason]:
    """Coordinates that vary by less than floats can follow, in draws (chains, draws, dim).

    Either they have a large offset or the density is a spike. One without bound ends like this: the
    chains fall in until they meet the grid of the floats.
    """
    if np.dtype(dtype).kind != "f":
        return []
    flat = x.reshape(-1, x.shape[-1])
    middle, sd = flat.mean(axis=0), flat.std(axis=0)
    spacing = np.spacing(np.abs(middle).astype(dtype)).astype(np.float64)
    count = np.where(sd > 0, sd / spacing, np.inf)
    i, few = int(count.argmin()), int(np.sum(count < NEIGHBOURS))
    if not few:
        return []
    text = (
        f"{names[i]}{more(few)} varies by {sd[i]:.2g} about {middle[i]:.6g}, where neighbours in "
        f"{dtype} are {spacing[i]:.2g} apart"
    )
    remedy = (
        "If the energy falls without end there, as with a noise that may shrink to nothing, keep "
        "it away by a prior; or else take a constant from the parameter"
    )
    if dtype != np.float64:
        remedy += ", or use float64"
    return [Reason(WRONG, text, float(count[i]), NEIGHBOURS, remedy)]
