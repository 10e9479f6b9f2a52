"""The kick in many digits: floats are taken as exact, and u is normalised here."""

from typing import Any, NamedTuple

import mpmath

DIGITS = mpmath.MPContext()
# Near u = −e at δ = 100 the textbook form loses 87 digits, which leaves over fifty.
DIGITS.dps = 150


class Exact(NamedTuple):
    """What a kick does, and how an error in the angle between u and e comes out of it."""

    u: list[Any]
    gain: Any
    log_elapsed: Any
    delta: Any
    amplification: Any  # |dθ'/dθ| = sin θ'/sin θ = e^(−Δr)
    turned: Any  # |dθ'/dδ| = sin θ'
    slope: Any  # |dΔr/dθ| = sin θ' sinh δ


def exact_kick(u, g, h, kappa) -> Exact:
    """The solution of u' = −(I − uuᵀ)g/κ, r' = −u·g/κ after a time h, for one chain."""
    m = DIGITS
    u, g = ([m.mpf(float(c)) for c in v] for v in (u, g))
    h, kappa = m.mpf(float(h)), m.mpf(float(kappa))
    size, length = m.sqrt(m.fdot(u, u)), m.sqrt(m.fdot(g, g))
    u = [c / size for c in u]
    if length == 0:
        return Exact(u, m.mpf(0), m.log(h), m.mpf(0), m.mpf(1), m.mpf(0), m.mpf(0))
    e = [-c / length for c in g]
    delta = h * length / kappa
    cosine = m.fdot(u, e)
    across = m.norm([p - cosine * q for p, q in zip(u, e, strict=True)])
    speed = m.cosh(delta) + cosine * m.sinh(delta)
    along = m.sinh(delta) + cosine * (m.cosh(delta) - 1)
    # along is also ∫₀^δ (cosh s + c sinh s) ds, and time runs at κ/|g| for each unit of δ.
    return Exact(
        [(p + along * q) / speed for p, q in zip(u, e, strict=True)],
        m.log(speed),
        m.log(along * kappa / length),
        delta,
        1 / speed,
        across / speed,
        across / speed * m.sinh(delta),
    )
