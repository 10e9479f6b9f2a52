"""One chain of another library: tuned, then drawn from in compiled blocks."""

import importlib
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from schuss.engines.width import wide
from schuss.peers.run import Peer, Run
from schuss.targets.target import Target

RECORDS = 200


def library(name: str, sampler: str) -> Any:
    """BlackJAX or nutpie, or a sentence that says how to get it."""
    extra = {"blackjax": "'schuss[paper]'"}.get(name, name)
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(
            f"{sampler} needs {name}, which isn't installed; run pip install {extra}"
        ) from error


def logdensity(target: Target) -> Callable:
    """−E at one position (dim,)."""
    return lambda x: -target.energy(jnp, x[None, :])[0]


def start(target: Target, seed: int) -> np.ndarray:
    """Where the chain of a seed starts, the same for every peer."""
    return target.start(np.random.default_rng(seed), 1)[0]


def chain(
    target: Target, budget: int, tune: Callable, draw: Callable, block: int, keep: bool
) -> Peer:
    """Tune, then draw in compiled blocks until the budget is spent, a record after each.

    `tune(key, position)` gives a state, parameters and the gradients spent; `draw(key, state,
    parameters)` a state, whose `position` is the draw, and the gradients spent.
    """

    def blocked(key, state, parameters):
        def body(carry, key):
            state, total, spent = carry
            state, cost = draw(key, state, parameters)
            carry = (state, total + state.position**2, spent + cost)
            return carry, state.position if keep else None

        empty = (state, jnp.zeros(target.dim), jnp.zeros((), int))
        return jax.lax.scan(body, empty, jax.random.split(key, block))

    with wide():
        arguments = jax.random.key(0), jnp.asarray(start(target, 0))
        shapes = jax.eval_shape(tune, *arguments)
        tuned = jax.jit(tune).lower(*arguments).compile()
        advance = jax.jit(blocked).lower(arguments[0], *shapes[:2]).compile()

    def run(seed: int) -> Run:
        with wide():
            key, tune_key = jax.random.split(jax.random.key(seed))
            position = jnp.asarray(start(target, seed))
            begun = time.perf_counter()
            state, parameters, spent = tuned(tune_key, position)
            tuning = gradients = int(spent) + 1
            sums, counts, draws = [np.zeros(target.dim)], [], []
            while gradients < budget:
                key, block_key = jax.random.split(key)
                (state, total, spent), passed = advance(block_key, state, parameters)
                gradients += int(spent)
                sums.append(sums[-1] + np.asarray(total))
                counts.append(gradients)
                draws.append(passed)
            seconds = time.perf_counter() - begun
        numbers = block * np.arange(1, len(sums))
        second = np.stack(sums)[1:] / numbers[:, None]
        kept = np.concatenate([np.empty((0, target.dim)), *draws]) if keep else None
        return Run(np.asarray(counts, int), second, tuning, seconds, kept)

    return run
