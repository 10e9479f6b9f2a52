"""Velocity refreshment: isotropic noise on the sphere, which keeps the uniform measure."""

import math

from schuss.core.kick import unit


def direction(xp, normal):
    """A uniformly distributed unit vector from a standard normal one (Alg. 1, lines 3 and 4)."""
    return unit(xp, normal)


def partial(xp, u, normal, nu):
    """u ← (u + νz)/|u + νz|: forget the direction little by little."""
    return unit(xp, u + nu[..., None] * normal)


FORGOTTEN = 80.0
"""Exponents 2ε/L at which no direction is left; ν² must be finite in 32 bits."""


def forgetting(xp, exponent, dim):
    """ν of `amount` for arrays of exponents 2ε/L."""
    return xp.sqrt(xp.expm1(xp.clip(exponent, max=FORGOTTEN)) / dim)


def amount(step_size, length, dim):
    """ν = √(expm1(2ε/L)/d): a free particle forgets its direction over L, for large d."""
    return math.sqrt(math.expm1(min(2 * step_size / length, FORGOTTEN)) / dim)
