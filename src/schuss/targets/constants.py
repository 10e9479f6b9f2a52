"""Constants of an energy, brought to the array library, dtype and device of its argument."""

import numpy as np
from numpy.typing import ArrayLike

from schuss.targets.target import Array, Function, Namespace


def constant(values: ArrayLike) -> Function:
    """A function `(xp, x)` that gives `values` as an array like x.

    PyTorch is handed nested lists, since compiling `vmap` of `grad` over a captured NumPy array
    fails. JAX places constants by itself, and the device of a sharded x fits x only.
    """
    array = np.asarray(values, dtype=np.float64)
    nested = array.tolist()

    def like(xp: Namespace, x: Array) -> Array:
        library = xp.__name__
        if "torch" in library:
            return xp.asarray(nested, dtype=x.dtype, device=x.device)
        if "jax" in library:
            return xp.asarray(array, dtype=x.dtype)
        return xp.asarray(array, dtype=x.dtype, device=x.device)

    return like
