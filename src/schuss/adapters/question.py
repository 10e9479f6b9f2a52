"""What `sample` was asked to sample: a target, a model or a function, and from where."""

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from schuss.adapters import derivative
from schuss.arguments import arrayed, entropy, filled, floating, whole
from schuss.model import Model
from schuss.problem import Problem, check_target, pose
from schuss.targets.target import Target

CHAINS = 4
JITTER = 0.1
"""Chains that are given one place to start from start around it, with this deviation."""


@dataclasses.dataclass(frozen=True)
class Question:
    """A problem, and the way from flat draws (chains, draws, dim) to what the user knows."""

    problem: Problem
    name: str
    restore: Callable
    dims: Mapping[str, Sequence[str]]
    coords: Mapping[str, Sequence[Any]]
    spent: int = 0  # gradients that it took to check what was given


def ask(target, *, energy, logdensity, value_and_grad, init, chains, seed, engine, **options):
    """Make one question of what the user gave."""
    rng = np.random.default_rng([entropy(seed), 3])
    functions = {"energy": energy, "logdensity": logdensity, "value_and_grad": value_and_grad}
    if isinstance(target, Model):
        if any(function is not None for function in functions.values()):
            named = " and ".join(name for name, f in functions.items() if f is not None)
            raise ValueError(f"pass exactly one of a model and a function, got both: {named}=")
        return _of_model(target, init, chains, seed, engine, rng)
    if target is not None:
        check_target("target", target)
    if target is None and _is_nest(init):
        from schuss.adapters import from_pytree

        if value_and_grad is not None:
            raise ValueError(
                "value_and_grad= takes flat positions; pass init as an array, or use "
                "schuss.from_value_and_grad with names"
            )
        model = from_pytree(logdensity=logdensity, energy=energy, init=init)
        return _of_model(model, None, chains, seed, engine, rng)
    if isinstance(target, Target) and init is None:
        init = target.start(rng, _count(chains))
    elif init is None and target is None:
        raise ValueError(
            "init is missing; pass a point (dim,), a batch (chains, dim), a dict of arrays, or a "
            "function (rng, chains) → starts"
        )
    elif init is not None:
        init = starts(init, chains, rng)
    problem = pose(
        target,
        energy=energy,
        logdensity=logdensity,
        value_and_grad=value_and_grad,
        init=init,
        seed=seed,
        engine=engine,
        **options,
    )

    def restore(x):
        shaped = problem.unflatten(x.reshape(-1, problem.dim))
        return np.asarray(shaped).reshape(*x.shape[:2], *problem.shape)

    name = target.name if isinstance(target, Target) else _called(*functions.values())
    spent = 0
    if value_and_grad is not None:
        spent = _checked(derivative.ENERGY, problem.grad_fn, problem.x, seed)
    return Question(problem, name, restore, {}, {}, spent)


def starts(init, chains, rng):
    """A batch of starting positions from a point, a batch or a function that draws them."""
    if callable(init) and not hasattr(init, "dtype"):
        return filled("init", floating("init", _drawn(init, rng, _count(chains))))
    array: Any = arrayed("init", _on_host(init))
    if array.ndim == 0 or str(array.dtype) == "object":
        raise ValueError(
            "init must be a point (dim,), a batch (chains, dim) or a function (rng, chains) → "
            f"starts, got {init!r}; one parameter is a point like [0.0], and models have starts "
            "of their own if it is left out"
        )
    array = filled("init", floating("init", array))
    if array.ndim == 1:
        noise = JITTER * rng.standard_normal((_count(chains), len(array)))
        if type(array).__module__.startswith("torch"):
            import torch

            return array[None] + torch.as_tensor(noise, dtype=array.dtype, device=array.device)
        return np.asarray(np.asarray(array)[None] + noise, array.dtype)
    if chains is not None and len(array) != whole("chains", chains, 1):
        raise ValueError(
            f"init holds {len(array)} starts but chains={chains}; leave chains out, or pass one "
            "point (dim,)"
        )
    return array


def _of_model(model: Model, init, chains, seed, engine, rng) -> Question:
    if model.dim == 0:
        raise ValueError(f"{model.name} has no parameters: there is nothing to sample")
    if model.flatten is not None and _is_nest(init):
        init = model.flatten(init)
    x = model.start(rng, _count(chains)) if init is None else starts(init, chains, rng)
    if np.shape(x)[1:] != (model.dim,):
        raise ValueError(
            f"init has shape {np.shape(x)[1:]} but {model.name} has {model.dim} flat coordinates; "
            f"pass a point ({model.dim},), a batch (chains, {model.dim}), or leave it out"
        )
    x = np.asarray(x, model.dtype)
    problem = pose(
        logdensity=model.logdensity,
        value_and_grad=model.value_and_grad,
        init=x,
        seed=seed,
        engine=engine,
    )
    spent = 0
    if model.value_and_grad is not None:
        words = derivative.LOG_P._replace(name=f"fn ({model.name})")
        spent = _checked(words, model.value_and_grad, x, seed)
        model.constrain(x[:, None])  # a function that can't be right is refused before the run
    return Question(problem, model.name, model.constrain, model.dims, model.coords, spent)


def _checked(words: derivative.Words, value_and_grad, x, seed) -> int:
    """Gradients that it took to see that those written by hand are right."""
    rng = np.random.default_rng([entropy(seed), 4])
    return derivative.check(words, value_and_grad, np.asarray(x, float), rng)


def _drawn(init, rng, chains):
    """Starts from a function of (rng, chains), or of rng alone called once for each chain."""
    try:
        parameters = len(inspect.signature(init).parameters)
    except (TypeError, ValueError):
        parameters = 2
    if not parameters:
        raise TypeError(
            "init must be a function of (rng, chains) or of rng, got one of no arguments; pass "
            "what it returns"
        )
    if parameters == 1:
        call, drawn = "init(rng)", [_on_host(init(rng)) for _ in range(chains)]
        wanted = "one start, shape (dim,)"
    else:
        call, drawn = "init(rng, chains)", _on_host(init(rng, chains))
        wanted = f"{chains} starts, shape ({chains}, dim)"
    array = arrayed(call, drawn)
    if array.ndim < 2 or len(array) != chains or str(array.dtype) == "object":
        one = drawn[0] if parameters == 1 else drawn
        plain = str(array.dtype) == "object" or not hasattr(one, "shape")
        got = f"a {type(one).__name__}" if plain else f"shape {np.shape(one)}"
        raise ValueError(f"{call} must return {wanted}, got {got}")
    return np.asarray(array)


def _on_host(init: Any) -> Any:
    """JAX's arrays as NumPy's, in 64 bits: without its switch it has none that ask for them."""
    if not type(init).__module__.startswith("jax"):
        return init
    array = np.asarray(init)
    return array.astype(np.float64) if array.dtype == np.float32 else array


def _count(chains) -> int:
    return CHAINS if chains is None else whole("chains", chains, 1)


def _is_nest(init) -> bool:
    return isinstance(init, Mapping | tuple) or (
        isinstance(init, list) and any(hasattr(part, "shape") and part.shape for part in init)
    )


def _called(*functions) -> str:
    """The name of the function that was given."""
    function = next((f for f in functions if f is not None), None)
    name = getattr(function, "__name__", type(function).__name__)
    return "" if name == "<lambda>" else name
