"""How JAX compiles loops of many small operations on a CPU."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

WISHES = {
    # One operation after the other: they are too small to be worth a queue.
    "xla_cpu_scheduler_type": "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED",
    # As wide as the machine has them; XLA by itself stops at 256 bits.
    "xla_cpu_prefer_vector_width": 512,
}
"""Options of XLA; versions that don't know one do without it."""

LARGE = 1024
"""Numbers in a batch of positions from which on a gradient is worth a computation of its own."""


def compiled(function: Callable, *static: str) -> Any:
    """What `jax.jit` makes of it with the options above; what is static must be hashable."""
    return jax.jit(
        function,
        static_argnames=static,
        compiler_options=options(jax.default_backend()),
    )


@functools.cache
def options(backend: str) -> dict[str, Any]:
    """Those of the wishes that this version of XLA can grant."""
    if backend != "cpu":
        return {}
    return {name: value for name, value in WISHES.items() if _granted(name, value)}


def _granted(name, value):
    try:
        jax.jit(lambda: 0, compiler_options={name: value}).lower().compile()
    except Exception:
        return False
    return True


def apart(grad_fn: Callable, running) -> Callable:
    """The same function, which XLA doesn't fuse with what comes before and after it on a CPU.

    A gradient that ends in a sum of several arrays would be summed again wherever it is used. The
    branches of a condition are compiled on their own; `running` is always true, which XLA can't
    know. Small batches aren't worth what a condition costs.
    """

    def nothing(x):
        return jax.tree.map(lambda one: jnp.zeros(one.shape, one.dtype), jax.eval_shape(grad_fn, x))

    def evaluate(x):
        if x.size < LARGE or jax.default_backend() != "cpu":
            return grad_fn(x)
        return jax.lax.cond(running, grad_fn, nothing, x)

    return evaluate
