"""log Σ exp, which the array API standard lacks."""

from schuss.targets.target import Array, Namespace


def logsumexp(xp: Namespace, a: Array) -> Array:
    """log Σ_k e^{a_k} over the last axis, shifted by the largest term."""
    top = xp.max(a, axis=-1, keepdims=True)
    return top[..., 0] + xp.log(xp.sum(xp.exp(a - top), axis=-1))
