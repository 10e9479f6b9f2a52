"""JAX functions of one position over many of them, in 64 bits, NumPy in and out."""

import functools
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from schuss.engines.traced import MOST, Traced, trace
from schuss.engines.width import wide

# Positions at a time: many enough to be fast, few enough for what is computed on the way to fit.
_BATCH = 4096


def mapped(function: Callable, rows):
    """What a function gives for each of many rows, compiled for the function as it is now."""
    with wide():
        traced, _ = trace(function, rows.shape[1:], rows.dtype)
        return _compiled(traced)(rows)


@functools.lru_cache(maxsize=MOST)
def _compiled(traced: Traced) -> Callable:
    """For the functions used last."""
    return jax.jit(lambda rows: jax.lax.map(traced, rows, batch_size=min(_BATCH, len(rows))))


def over(function: Callable) -> Callable:
    """A function of one position (dim,) as one of positions (…, dim)."""

    def everywhere(x):
        x = np.asarray(x, np.float64)
        before = x.shape[:-1]
        values = mapped(function, x.reshape(-1, x.shape[-1]))
        return jax.tree.map(
            lambda leaf: np.asarray(leaf).reshape((*before, *leaf.shape[1:])), values
        )

    return everywhere


def named(names: Sequence[str], function: Callable) -> Callable:
    """A function of one position that returns as many values as there are names → a dict."""
    everywhere = over(lambda x: tuple(map(jnp.asarray, function(x))))
    return lambda x: dict(zip(names, everywhere(x), strict=True))


def gradients(logdensity: Callable) -> Callable:
    """Positions (…, dim) → log p and its gradient."""
    return over(jax.value_and_grad(logdensity))
