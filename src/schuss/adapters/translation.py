"""PyTensor graphs as JAX functions, with rules for operations that PyTensor has none for."""

import concurrent.futures
import contextlib
import functools
import importlib
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType

import jax
import jax.numpy as jnp
import pytensor.link.jax
from pymc.distributions import multivariate
from pytensor.compile import mode
from pytensor.graph.fg import FunctionGraph
from pytensor.raise_op import CheckAndRaise
from pytensor.scalar.basic import Log, Log1p
from pytensor.scalar.math import Erfcinv, Erfcx, Log1mexp

from schuss.adapters.erfcx import erfcx

LINK = "pytensor.link.jax.dispatch"


def _finite(function: Callable, derivative: Callable) -> Callable:
    """A function whose derivative is finite everywhere.

    PyMC computes both branches of a condition. What comes back from the branch that isn't chosen is
    0 times its derivative: 0 as it should be, but NaN where the derivative isn't finite.
    """
    ruled = jax.custom_jvp(function)
    ruled.defjvps(lambda tangent, _, x: tangent * jnp.nan_to_num(derivative(x)))
    return lambda x: ruled(jnp.asarray(x, dtype=jnp.result_type(float, x)))


def _log1mexp(x):
    return jnp.where(x < -math.log(2), jnp.log1p(-jnp.exp(x)), jnp.log(-jnp.expm1(x)))


def _erfcinv(x):
    """The inverse of erfc, by the quantiles of the normal distribution."""
    return -jax.scipy.special.ndtri(x / 2) / math.sqrt(2)


def _is_positive_definite(matrix):
    return ~jnp.isnan(jnp.linalg.cholesky(matrix)).any()


RULES: dict[type, Callable] = {
    # PyTensor's own want TensorFlow Probability, or JAX's function, which is wrong in JAX 0.10.
    Erfcx: erfcx,
    Erfcinv: _erfcinv,
    Log: _finite(jnp.log, lambda x: 1 / x),
    Log1p: _finite(jnp.log1p, lambda x: 1 / (1 + x)),
    Log1mexp: _finite(_log1mexp, lambda x: -1 / jnp.expm1(-x)),
    # A compiled function can't raise errors: checks pass their value on, as where PyMC uses JAX.
    CheckAndRaise: lambda value, *conditions: value,
}
"""JAX functions of PyTensor's operations."""

if hasattr(multivariate, "PosDefMatrix"):  # in PyMC 5
    RULES[multivariate.PosDefMatrix] = _is_positive_definite


def translated(inputs: Sequence, outputs: Sequence) -> Callable:
    """The JAX function of a graph, as PyMC makes it."""
    with _linked() as rule_of:
        graph = FunctionGraph(inputs=list(inputs), outputs=list(outputs), clone=True)
        mode.JAX.optimizer.rewrite(graph)
        return rule_of(graph)


@contextlib.contextmanager
def _linked() -> Iterator[Callable]:
    """PyTensor's rules, with ours in their places for this while.

    Whoever imports them switches JAX to 64 bits for the whole process. Where nobody has, they are
    taken away again afterwards, so that the first to import them gets what he expects.
    """
    ours = LINK not in sys.modules
    if ours:
        sys.modules.update(_imported())
    rule_of = sys.modules[LINK].jax_funcify
    theirs = {operation: rule_of.dispatch(operation) for operation in RULES}
    try:
        for operation, function in RULES.items():
            rule_of.register(operation, lambda op, function=function, **_: function)
        yield rule_of
    finally:
        for operation, rule in theirs.items():
            rule_of.register(operation, rule)
        if ours:
            _imported().update(_taken())


@functools.cache
def _imported() -> dict[str, ModuleType]:
    """The modules of PyTensor's rules, imported without the switch."""

    def load():
        before = jax.config.jax_enable_x64
        try:
            importlib.import_module(LINK)
        finally:
            jax.config.update("jax_enable_x64", before)
        return _taken()

    # In a thread of its own the switch is that of the process, not one that holds here for a while.
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return pool.submit(load).result()


def _taken() -> dict[str, ModuleType]:
    """The modules of PyTensor's rules, no longer imported."""
    vars(pytensor.link.jax).pop(LINK.rpartition(".")[2], None)
    return {name: sys.modules.pop(name) for name in list(sys.modules) if name.startswith(LINK)}
