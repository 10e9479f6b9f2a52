"""The velocity update of the scaled ESH flow with the gradient frozen (Eqs. 14 and 15).

With e = −g/|g|, θ the angle between u and e, and δ = h|g|/κ, the exact solution of

    u' = −(I − uuᵀ) g/κ        r' = −u·g/κ

after a time h is a boost, tan(θ'/2) = e^(−δ) tan(θ/2). Everything is written with p = u + e,
|p|/2 = cos(θ/2), and ζ = e^(−δ), which keep their relative precision where u comes close to −e.
The textbook form cosh δ + (u·e) sinh δ loses every digit there, and overflows for large
gradients. A boost along −e undoes a boost along e: a kick back in time is a kick with −g.
"""

from typing import Any, NamedTuple

SMALL = 0.5
"""Below this δ the gain is computed by log1p, above it in logarithms."""


class Boost(NamedTuple):
    """A frozen gradient as the velocity meets it: everything a kick of any length needs."""

    e: Any  # the direction of descent, (chains, dim)
    p: Any  # u + e, (chains, dim)
    cos: Any  # cos(θ/2), (chains, 1)
    rate: Any  # |g|/κ, (chains, 1)


REACH = 2.0**-300
"""Gradients in 64 bits are scaled by this: those from 1e-60 to 1e244 can be squared then."""

FAINT = 2.0**-500
"""The length of a scaled gradient up to which its squares lose digits or vanish."""


def tiny(xp, dtype) -> float:
    """The smallest normal number, to be added where a divisor may vanish."""
    return float(xp.finfo(dtype).smallest_normal)


def column(h):
    """One number for all chains as it is, one for each as a column."""
    return h[:, None] if h.ndim else h


def norm(xp, v):
    """|v| along the last axis, which stays as an axis of length one."""
    return xp.linalg.vector_norm(v, axis=-1, keepdims=True)


def unit(xp, v):
    """v/|v|, and zero for v = 0."""
    return v / (norm(xp, v) + tiny(xp, v.dtype))


def force(xp, g):
    """Split a gradient into its length |g| and the direction of descent e = −g/|g|.

    Squares must neither overflow nor vanish. In 64 bits a fixed factor sees to that; a gradient too
    short even so has no direction, e = 0. In fewer bits the mean size of a component is divided out
    first, so |g| up to the largest float is safe; the largest component would do as well, but
    compiled code takes twice as long to find it.
    """
    if g.dtype == xp.float64:
        scaled = -REACH * g
        length = norm(xp, scaled)
        return length / REACH, scaled / xp.where(length > FAINT, length, xp.inf)
    least = tiny(xp, g.dtype)
    size = xp.sum(xp.abs(g) * (1 / g.shape[-1]), axis=-1, keepdims=True)
    scaled = g / -(size + least)
    length = norm(xp, scaled)
    return size * length, scaled / (length + least)


def approach(xp, u, g, kappa) -> Boost:
    """Measure g against u."""
    length, e = force(xp, g)
    p = u + e
    return Boost(e, p, norm(xp, p) / 2, length / kappa)


def turn(xp, boost: Boost, h):
    """The direction after a time h (Eq. 14): u' ∝ ζp + (cos²(θ/2)(1 − ζ)² − ζ²)e."""
    # By its length first: close to −e it is so short that its squares vanish in single precision.
    turned = turn_roughly(xp, boost, h)
    return turned / norm(xp, turned)


def turn_roughly(xp, boost: Boost, h):
    """The same, divided by the length that it has but for rounding errors.

    Without a sum over coordinates, for those who will normalise u before errors add up.
    """
    turned, length = _turned(xp, boost, h)
    return turned / length


def _turned(xp, boost, h):
    """u' up to its length, and that length, a + bζ² with a = cos²(θ/2) and b = sin²(θ/2)."""
    fall = -(column(h) * boost.rate)
    zeta = xp.exp(fall)
    # At u = −e the square of ζ is all there is: it must not vanish.
    square = zeta * zeta + tiny(xp, fall.dtype) ** 0.5
    reach, a = boost.cos - zeta * boost.cos, boost.cos * boost.cos
    return zeta * boost.p + (reach * reach - square) * boost.e, a + (1 - a) * square


def _weights(boost: Boost, h):
    """δ, cos²(θ/2) and sin²(θ/2), each (chains,)."""
    a = (boost.cos * boost.cos)[..., 0]
    return (column(h) * boost.rate)[..., 0], a, 1 - a


def gain(xp, boost: Boost, h):
    """The gain in r = log|v| after a time h (Eq. 15), (chains,).

    Δr = δ + log(a + bζ²) with a = cos²(θ/2) and b = sin²(θ/2), which add up to one.
    """
    delta, a, b = _weights(boost, h)
    fall, small = -2 * delta, delta < SMALL
    near = xp.log1p(b * xp.expm1(xp.where(small, fall, xp.zeros_like(fall))))
    # Where a = 0 and ζ² underflows, u is −e to the last bit and Δr = −δ.
    decayed = a + b * xp.exp(fall)
    lost = decayed < tiny(xp, delta.dtype)
    far = xp.where(lost, fall, xp.log(xp.where(lost, xp.ones_like(delta), decayed)))
    return delta + xp.where(small, near, far)


def log_elapsed(xp, boost: Boost, h):
    """log ∫₀ʰ e^(r(s) − r(0)) ds, (chains,): d times the un-scaled time that a kick takes.

    The integral is h e^δ (a + bζ)(1 − ζ)/δ, which tends to h as δ → 0.
    """
    delta, a, b = _weights(boost, h)
    moving = delta > 0
    positive = xp.where(moving, delta, xp.ones_like(delta))
    shrink = xp.where(moving, -xp.expm1(-positive) / positive, xp.ones_like(delta))
    pace = a + b * xp.exp(-delta)
    lost = pace < tiny(xp, delta.dtype)
    log_pace = xp.where(lost, -delta, xp.log(xp.where(lost, xp.ones_like(delta), pace)))
    return delta + log_pace + xp.log(shrink) + xp.log(h)


def kick(xp, u, g, h, kappa):
    """Move the velocity for a scaled time h with the gradient frozen: u' and Δr."""
    boost = approach(xp, u, g, kappa)
    return turn(xp, boost, h), gain(xp, boost, h)
