"""64-bit arithmetic in JAX for a while, without traces in the rest of the process.

JAX keeps the dtype that it gave to a NumPy array, under the array alone, while anything lives that
was compiled with it. Code of the other width gets that dtype too, and fails: what runs in 64 bits
and what runs in 32 bits couldn't share their data. Here it is kept under the width as well.
"""

import functools
import weakref

import jax
import numpy as np


def wide():
    """64-bit arithmetic, whatever JAX's switch says."""
    if not jax.config.jax_enable_x64:
        _mend()
    return jax.enable_x64(True)


@functools.cache
def _mend() -> None:
    """Make JAX keep NumPy arrays by width, unless it does by itself."""
    try:
        from jax._src.dtypes import canonicalize_value, canonicalize_value_handlers
    except ImportError:
        return
    array = np.zeros(1)
    with jax.enable_x64(True):
        double = canonicalize_value(array)
    with jax.enable_x64(False):
        single = canonicalize_value(array)
    if single.dtype == double.dtype:
        canonicalize_value_handlers[np.ndarray] = ByWidth(type(double))


class ByWidth:
    """NumPy arrays → JAX's constants, the same one for an array and a width while it lives."""

    def __init__(self, constant: type):
        self.constant, self.known = constant, {}

    def __call__(self, array: np.ndarray):
        """The constant, in the dtype that JAX has at this width."""
        key = id(array), jax.config.jax_enable_x64
        source, found = (part() for part in self.known.get(key, (_none, _none)))
        if source is not array or found is None:
            dtype = jax.dtypes.canonicalize_dtype(array.dtype)
            found = self.constant(np.asarray(array, dtype))
            kept = weakref.ref(found, lambda _: self.known.pop(key, None))
            self.known[key] = weakref.ref(array), kept
        return found


def _none() -> None:
    """A reference to nothing."""
