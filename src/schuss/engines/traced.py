"""A function of one array as JAX traces it: a computation and its constants.

JAX reads what a function closes over, globals and attributes when it traces the function. Code that
was compiled for a computation is right for any function that traces to the same operations on the
same constants, and for no other.
"""

import dataclasses
import functools
import hashlib
from collections.abc import Callable, Hashable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, jaxpr_as_fun

MOST = 6
"""Functions whose compiled code is kept, those that were used last: it takes 20 MB for each."""

NUMBERS = bool | int | float | complex | np.generic | np.ndarray | jax.Array

RULES = ("custom_jvp_call", "custom_vjp_call")
"""Operations with a derivative of their own, which only the trace of a derivative shows."""


@dataclasses.dataclass(frozen=True)
class Traced:
    """A computation on one array. Those with equal contents are equal."""

    content: Hashable
    tree: Any  # how its values lie in what it returns
    closed: ClosedJaxpr = dataclasses.field(compare=False, repr=False)

    def __hash__(self):
        """The hash of the content, which is long."""
        return self._hash

    @functools.cached_property
    def _hash(self):
        return hash(self.content)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the argument."""
        return self.closed.in_avals[0].shape

    @property
    def dtype(self) -> Any:
        """The type of the argument."""
        return self.closed.in_avals[0].dtype

    def __call__(self, x):
        """What it returns for x."""
        values = jaxpr_as_fun(self.closed)(jnp.asarray(x, self.dtype))
        return jax.tree.unflatten(self.tree, values)


def trace(function: Callable, shape: tuple[int, ...], dtype) -> tuple[Traced, Any]:
    """A function of arrays of this shape as it is now, and the shapes of what it returns."""
    # JAX remembers what it traced by the function: a new one around it is traced anew.
    make = jax.make_jaxpr(lambda x: function(x), return_shape=True)
    closed, shapes = make(jax.ShapeDtypeStruct(shape, dtype))
    # NumPy's arrays may change after the trace.
    consts = [np.array(c) if isinstance(c, np.ndarray) else c for c in closed.consts]
    tree = jax.tree.structure(shapes)
    return Traced(content(closed), tree, ClosedJaxpr(closed.jaxpr, consts)), shapes


def content(value: Any) -> Hashable:
    """What equal computations have in common: operations, their parameters, and all numbers."""
    if isinstance(value, ClosedJaxpr | Jaxpr):
        # Depending on the version of JAX, a computation holds its constants or another one does.
        bare: Any = getattr(value, "jaxpr", value)
        return _operations(bare), tuple(map(content, getattr(value, "consts", ())))
    if isinstance(value, NUMBERS):
        return _number(value)
    if isinstance(value, dict):
        return dict, tuple((name, content(part)) for name, part in sorted(value.items()))
    if isinstance(value, list | tuple):
        return type(value), tuple(map(content, value))
    try:
        hash(value)
    except TypeError:
        return Alone(value)
    return type(value), value


@dataclasses.dataclass(frozen=True, eq=False)
class Alone:
    """Something that can't be compared, and is equal to nothing else."""

    value: Any


def has_rules(value: Any) -> bool:
    """Whether a computation, or a part of it, has a derivative of its own."""
    if isinstance(value, ClosedJaxpr | Jaxpr):
        return any(eqn.primitive.name in RULES or has_rules(eqn.params) for eqn in value.eqns)
    if isinstance(value, dict):
        return any(map(has_rules, value.values()))
    return isinstance(value, list | tuple) and any(map(has_rules, value))


def _operations(jaxpr: Jaxpr) -> Hashable:
    """Operations in their order, with variables numbered as they come."""
    numbers: dict = {}

    def of(atom):
        if isinstance(atom, Literal):
            return content(atom.val), atom.aval
        return numbers.setdefault(atom, len(numbers)), atom.aval

    def operation(eqn):
        params = eqn.params
        if eqn.primitive.name in RULES:
            # Rules are wrapped anew in every trace.
            params = {name: p for name, p in params.items() if isinstance(p, ClosedJaxpr)}
        ins, outs = (tuple(map(of, atoms)) for atoms in (eqn.invars, eqn.outvars))
        return eqn.primitive, eqn.primitive.name, ins, content(params), outs

    inputs = tuple(map(of, (*jaxpr.constvars, *jaxpr.invars)))
    eqns = tuple(map(operation, jaxpr.eqns))
    return inputs, eqns, tuple(map(of, jaxpr.outvars))


def _number(value) -> Hashable:
    """Numbers to the last bit, and what kind of number they are."""
    kind = type(value)
    if isinstance(value, jax.Array):
        if not value.is_fully_addressable:
            return Alone(value)
        if jax.dtypes.issubdtype(value.dtype, jax.dtypes.extended):
            return kind, value.dtype, _number(jax.random.key_data(value))
    array = np.asarray(value)
    return kind, array.dtype, array.shape, hashlib.sha256(array.tobytes()).digest()
