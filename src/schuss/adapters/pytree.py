"""Plain JAX functions of dicts and other nests of arrays."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from schuss.adapters import start
from schuss.adapters.called import called
from schuss.adapters.layout import join, layout
from schuss.adapters.over import gradients
from schuss.engines.engine import NoNumber, number
from schuss.engines.width import wide
from schuss.model import Model
from schuss.user_code import failure, untraceable


def from_pytree(
    *, logdensity: Callable | None = None, energy: Callable | None = None, init: Any
) -> Model:
    """log p of a flat position: the function of the nest that it stands for."""
    given = {"logdensity": logdensity, "energy": energy}
    named = [name for name, value in given.items() if value is not None]
    if len(named) != 1:
        raise ValueError(
            f"pass exactly one of logdensity= and energy=, got {' and '.join(named) or 'none'}"
        )
    (kind,) = named
    function = given[kind]
    if not callable(function):
        raise TypeError(f"{kind} must be callable, got {type(function).__name__}")
    sign = -1 if kind == "energy" else 1

    names, values, tree = _opened(init)
    shape = layout(values)
    if not shape.dim:
        raise ValueError("init holds no numbers; pass one position, e.g. {'mu': 0.0}")
    if len(set(names)) != len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(f"init has two entries named {', '.join(twice)}; rename one of them")

    def flattened(x):
        value = number(kind, function(jax.tree.unflatten(tree, shape.split(x))))
        if np.size(value) != 1:
            raise NoNumber(
                f"{kind} must return one number for one position, got shape {np.shape(value)}"
            )
        return sign * jnp.reshape(value, ())

    _try(kind, flattened, dict(zip(names, shape.shapes, strict=True)))

    def constrain(x):
        return dict(zip(names, shape.split(np.asarray(x, np.float64)), strict=True))

    def flatten(position):
        names_, values_, tree_ = _opened(position)
        if tree_ != tree or layout(values_) != shape:
            have, want = (
                {name: value.shape for name, value in zip(*parts, strict=True)}
                for parts in ((names_, values_), (names, values))
            )
            raise ValueError(
                f"init must have the names and shapes of the model's, {want}, got {have}"
            )
        return join(np, values_)

    return Model(
        name=called(function, kind),
        dim=shape.dim,
        logdensity=flattened,
        start=start.around(
            join(np, values),
            start.normal(0.1),
            gradients(flattened),
            f"move init to where {kind} and its gradient are finite",
        ),
        constrain=constrain,
        flatten=flatten,
        dtype=_dtype(jax.tree.leaves(init)),
    )


def _try(kind: str, flattened: Callable, shapes: dict) -> None:
    """Refuse a function that can't be traced at one position."""
    dim = sum(map(math.prod, shapes.values()))
    try:
        with wide():
            jax.eval_shape(flattened, jax.ShapeDtypeStruct((dim,), np.float64))
    except NoNumber as error:
        raise ValueError(str(error)) from None
    except Exception as error:
        raise ValueError(
            untraceable(kind, error)
            or f"{kind} fails on one position like init, with the shapes {shapes} "
            f"({failure(error)}); make it take what init holds"
        ) from error


def _opened(nest: Any) -> tuple[list[str], list[np.ndarray], Any]:
    """The names and values of a nest of arrays, and how they lie in it."""
    leaves, tree = jax.tree_util.tree_flatten_with_path(nest)
    names = [jax.tree_util.keystr(path, simple=True, separator=".") or "x" for path, _ in leaves]
    values = [_checked(name, leaf) for name, (_, leaf) in zip(names, leaves, strict=True)]
    return names, values, tree


def _dtype(leaves: Sequence) -> type:
    """float32 where all of them are NumPy's of it; JAX's may have it without being asked."""
    single = all(
        isinstance(leaf, np.ndarray | np.generic) and leaf.dtype == np.float32 for leaf in leaves
    )
    return np.float32 if single else np.float64


def _checked(name: str, leaf: Any) -> np.ndarray:
    value = np.asarray(leaf)
    if value.dtype.kind not in "fiu":
        raise ValueError(
            f"init must hold real numbers, got dtype {value.dtype} for {name}; convert "
            "it, e.g. to 0.0"
        )
    return value.astype(np.float64)
