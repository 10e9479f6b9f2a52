"""Which map makes a density closest to a Gaussian, from draws and gradients in x."""

import numpy as np

from schuss.coordinates import Conditional, Curved, Hierarchical
from schuss.tuning import conditional, curvature, reparametrise

Map = Conditional | Hierarchical | Curved

MAPS = {Conditional: conditional, Hierarchical: reparametrise, Curved: curvature}
"""The kinds of maps, the first that is found taken, and where they are fitted."""

EXACT = (Conditional, Curved)
"""Those that leave next to nothing where they are right: what they leave contradicts them."""

LEAST_DRAWS, LEAST_GRADIENTS = 400, 2000
"""Before maps that need many draws are tried."""

LEAST_GAIN = 0.2
"""The share of the loss that a new map must take away from the present one's."""


def kinds(present: Map | None, gradients: int, draws: int, dim: int) -> list[type]:
    """The maps to try after so many gradients, with so many draws."""
    early = draws >= conditional.least(dim)
    late = gradients >= LEAST_GRADIENTS and draws >= LEAST_DRAWS
    others = [Hierarchical, Curved] if present is None else [type(present)]
    return list(dict.fromkeys([Conditional] * early + others * late))


def best_map(
    x: np.ndarray, g: np.ndarray, present: Map | None, tried: list[type], rng: np.random.Generator
) -> Map | None:
    """The present map, or a better one of the kinds tried, or none where it is contradicted."""
    contradicted = isinstance(present, EXACT) and MAPS[type(present)].wrong(x, g, present)
    if isinstance(present, Conditional) and not contradicted:
        return present
    for kind in tried:
        found = MAPS[kind].fit(x, g, rng)
        if found is not None and (contradicted or _gains(x, g, present, found)):
            return found
    return None if contradicted else present


def _gains(x, g, present, found) -> bool:
    if present is None:
        return True
    with np.errstate(all="ignore"):
        before, after = (MAPS[type(found)].loss(x, g, one) for one in (present, found))
    return after < (1 - LEAST_GAIN) * before - reparametrise.LEAST_TOTAL
