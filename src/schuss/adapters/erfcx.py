"""e^(x²) erfc(x), with derivatives of all orders by JAX.

For x ≥ 0, (1 + 2x) erfcx(x) is a polynomial in t = (x − k)/(x + k) (Shepherd and Laframboise 1981),
which no cancellation disturbs, however large x is. For x < 0 it is 2 e^(x²) − erfcx(−x).
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
import scipy.special
from numpy.polynomial import chebyshev

MIDDLE = 3.75
"""k, where t = 0."""

DEGREE = 24

LOWEST = -26.628
"""Below, the function is beyond the largest number."""


def _scaled(t: np.ndarray) -> Any:
    with np.errstate(divide="ignore"):
        x = MIDDLE * (1 + t) / (1 - t)
    return (1 + 2 * x) * scipy.special.erfcx(x)


COEFFICIENTS = tuple(map(float, chebyshev.chebinterpolate(_scaled, DEGREE)))


def erfcx(x):
    """The function in JAX, in the precision of `x`.

    Where it overflows it is the largest number and its derivative is small. A condition that
    chooses another branch there multiplies both by 0, and would make NaN of what isn't finite.
    """
    x = jnp.asarray(x)
    size, below = jnp.where(x < 0, -x, x), jnp.clip(x, LOWEST, 0.0)
    t = 1 - 2 * MIDDLE / (size + MIDDLE)
    later = latest = jnp.zeros_like(t)
    for coefficient in COEFFICIENTS[:0:-1]:  # Clenshaw's recurrence
        later, latest = coefficient + 2 * t * later - latest, later
    positive = (COEFFICIENTS[0] + t * later - latest) / (1 + 2 * size)
    most = jnp.finfo(t.dtype).max
    negative = jnp.where(x < LOWEST, most, 2 * jnp.exp(below * below))
    return jnp.where(x < 0, negative - positive, positive)
