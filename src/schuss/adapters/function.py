"""Log-densities with gradients in NumPy, from Stan or by hand."""

import inspect
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from schuss.adapters import start as starts
from schuss.adapters.called import called
from schuss.adapters.layout import Layout
from schuss.arguments import numbers, pair, whole
from schuss.model import Model


def from_value_and_grad(
    fn: Callable,
    dim: int,
    *,
    names: Sequence[str] | Mapping[str, Sequence[int]] | None = None,
    start: Any = None,
    constrain: Callable | None = None,
    batched: bool = False,
) -> Model:
    """Energies −log p and gradients −∂ log p/∂x of chains, from those of log p."""
    if not callable(fn):
        raise TypeError(f"fn must be a function of a position, got {type(fn).__name__}")
    if constrain is not None and not callable(constrain):
        raise TypeError(
            f"constrain must be a function of a position, got {type(constrain).__name__}"
        )
    dim = whole("dim", dim, 1)
    logs = _batch(fn, dim) if batched else _loop(fn, dim)

    def energies(x):
        value, gradient = logs(np.asarray(x))
        return -value, -gradient

    return Model(
        name=called(fn, "function"),
        dim=dim,
        value_and_grad=energies,
        start=_start(start, dim, logs),
        constrain=_constrain(names, constrain, dim),
    )


def _loop(fn: Callable, dim: int) -> Callable:
    """A function of one position over chains, one after another."""

    def everywhere(x):
        found = [_checked(fn(row), (), (dim,)) for row in x]
        return np.stack([value for value, _ in found]), np.stack([slope for _, slope in found])

    return everywhere


def _batch(fn: Callable, dim: int) -> Callable:
    return lambda x: _checked(fn(x), (len(x),), (len(x), dim))


def _checked(found: Any, value_shape: tuple, gradient_shape: tuple) -> tuple:
    value, gradient = pair("fn", found, "a pair, log p and its gradient")
    value, gradient = value.astype(np.float64), gradient.astype(np.float64)
    if value.shape != value_shape or gradient.shape != gradient_shape:
        raise ValueError(
            f"fn must return log p of shape {value_shape} and a gradient of shape "
            f"{gradient_shape}, got {value.shape} and {gradient.shape}; batched=True is for "
            "functions of (chains, dim)"
        )
    return value, gradient


def _start(start: Any, dim: int, logs: Callable) -> Callable:
    if callable(start):
        return lambda rng, chains: _drawn(start, rng, chains, dim)
    remedy = "pass start=, a position where log p and its gradient are finite"
    if start is None:
        return starts.around(np.zeros(dim), starts.uniform(2.0), logs, remedy)
    centre = numbers("start", start)
    if centre.shape != (dim,):
        raise ValueError(
            f"start must be a position of shape ({dim},) or a function (rng, chains), got shape "
            f"{centre.shape}"
        )
    return starts.around(centre, starts.normal(0.1), logs, remedy)


def _drawn(start: Callable, rng: np.random.Generator, chains: int, dim: int) -> np.ndarray:
    """Starts from a function, which must be of the right shape."""
    try:
        inspect.signature(start).bind(rng, chains)
    except TypeError:
        raise TypeError(
            "start must be a function of (rng, chains), got one of other arguments; write def "
            f"start(rng, chains): return rng.normal(size=(chains, {dim}))"
        ) from None
    except ValueError:  # one without a signature
        pass
    drawn = numbers("what start(rng, chains) returns", start(rng, chains))
    if drawn.shape != (chains, dim):
        raise ValueError(
            f"start(rng, {chains}) must return shape ({chains}, {dim}), got {drawn.shape}"
        )
    return drawn


def _constrain(names: Any, constrain: Callable | None, dim: int) -> Callable:
    """Flat positions (chains, draws, dim) → named values."""
    shapes = _shapes(names)
    if constrain is None:
        _check_count(shapes, dim, "coordinates of a position")

    def named(x):
        x = np.asarray(x, np.float64)
        if constrain is not None:
            found = [constrain(row) for row in x.reshape(-1, dim)]
            rows = numbers("what constrain returns", found)
            x = rows.reshape(*x.shape[:-1], -1)
            _check_count(shapes, x.shape[-1], "values that constrain returns")
        found = shapes or {"x": x.shape[-1:]}
        return dict(zip(found, Layout(tuple(found.values())).split(x), strict=True))

    return named


def _shapes(names: Any) -> dict[str, tuple[int, ...]] | None:
    if names is None:
        return None
    if isinstance(names, Mapping):
        try:
            return {name: tuple(map(operator.index, shape)) for name, shape in names.items()}
        except TypeError:
            raise TypeError(
                f"names must have shapes such as () and (8,), got {dict(names)!r}"
            ) from None
    several = isinstance(names, Sequence) and not isinstance(names, str)
    if not (
        several and all(isinstance(name, str) for name in names) and len(set(names)) == len(names)
    ):
        raise ValueError(f"names must be a list of names that differ, got {names!r}")
    return dict.fromkeys(names, ())


def _check_count(shapes: Mapping | None, wanted: int, what: str) -> None:
    if shapes is not None and Layout(tuple(shapes.values())).dim != wanted:
        raise ValueError(
            f"names must stand for the {wanted} {what}, one each or by shapes, got "
            f"{Layout(tuple(shapes.values())).dim}"
        )
