"""What samplers are compared on: a target over flat positions, with energies for the verdict."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from schuss.adapters.question import ask
from schuss.engines.jax import Gradient
from schuss.engines.width import wide
from schuss.targets.target import Target

BATCH = 1024


@dataclasses.dataclass(frozen=True)
class Subject:
    """A target that every sampler takes, and its energies with their gradients."""

    target: Target
    grad_fn: Gradient

    def evaluate(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Energies (n,) and gradients (n, dim) at positions (n, dim), in batches of one size."""
        blocks = -(-len(x) // BATCH)
        padded = np.concatenate([x, np.repeat(x[-1:], blocks * BATCH - len(x), axis=0)])
        with wide():
            pairs = [self._compiled(part) for part in padded.reshape(blocks, BATCH, -1)]
        energy = np.concatenate([np.asarray(pair[0]) for pair in pairs])
        g = np.concatenate([np.asarray(pair[1]) for pair in pairs])
        return energy[: len(x)], g[: len(x)]

    @functools.cached_property
    def _compiled(self) -> Callable:
        return jax.jit(self.grad_fn)


def subject(arguments: dict[str, Any]) -> Subject:
    """Of a target, a model or a function, as `schuss.sample` takes them; JAX's, for all to run."""
    given = dict.fromkeys(("target", "energy", "logdensity", "value_and_grad", "init")) | arguments
    question = ask(**given, chains=None, seed=0, engine="auto")
    problem, grad_fn = question.problem, question.problem.grad_fn
    if not isinstance(grad_fn, Gradient):
        raise ValueError(
            f"{question.name or 'the target'} runs on engine={problem.engine.name!r}, but samplers "
            "are compared on JAX log-densities; write it with jax.numpy"
        )
    target = given["target"]
    if not isinstance(target, Target) or given["init"] is not None:
        target = Target(
            name=question.name or "log-density",
            dim=problem.dim,
            energy=lambda xp, x: _energies(grad_fn, x),
            gradient=lambda xp, x: grad_fn(x)[1],
            start=_starts(given),
            truth=target.truth if isinstance(target, Target) else None,
        )
    return Subject(target, grad_fn)


def _energies(gradient: Gradient, x):
    """E of positions (n, dim), without the gradient, that others may take it their own way."""
    if gradient.pointwise:
        return jax.vmap(lambda z: gradient.energy(z.reshape(gradient.shape)).reshape(()))(x)
    return gradient.energy(x.reshape(-1, *gradient.shape)).reshape(len(x))


def _starts(given: dict[str, Any]) -> Callable:
    """(rng, n) → starts (n, dim), each time drawn as `schuss.sample` would."""
    batch = getattr(given["init"], "ndim", 0) > 1

    def start(rng: np.random.Generator, n: int) -> np.ndarray:
        seed = int(rng.integers(2**31))
        question = ask(**given, chains=None if batch else n, seed=seed, engine="auto")
        x = np.asarray(question.problem.x, np.float64)
        return x[rng.choice(len(x), n, replace=n > len(x))] if batch else x

    return start
