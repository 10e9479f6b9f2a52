"""The logistic function and its integral, without overflow."""

from schuss.targets.target import Array, Namespace


def softplus(xp: Namespace, z: Array) -> Array:
    """log(1 + e^z) = max(z, 0) + log(1 + e^{−|z|}), twice as fast in JAX as `logaddexp`."""
    return xp.maximum(z, xp.zeros_like(z)) + xp.log1p(xp.exp(-xp.abs(z)))


def sigmoid(xp: Namespace, z: Array) -> Array:
    """1/(1 + e^{−z}), the slope of `softplus`, of the same e^{−|z|}: a compiler shares it."""
    e = xp.exp(-xp.abs(z))
    return xp.where(z >= 0, xp.ones_like(z), e) / (1 + e)
