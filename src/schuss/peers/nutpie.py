"""nutpie: its default of 400 tuning draws, then sampling.

The density is a jitted function that is called from Python, so its seconds are not those of a
compiled model.
"""

import importlib
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from schuss.engines.width import wide
from schuss.peers.chain import library, logdensity, start
from schuss.peers.run import Peer, Run
from schuss.targets.target import Target


def nutpie(target: Target, budget: int, keep: bool = False) -> Peer:
    """nutpie's NUTS on a jitted log-density; a run with another seed tells how many draws fit."""
    sample = library("nutpie", "nutpie").sample
    from_pyfunc = importlib.import_module("nutpie.compiled_pyfunc").from_pyfunc

    with wide():
        compiled = jax.jit(jax.value_and_grad(logdensity(target)))
        compiled = compiled.lower(jnp.zeros(target.dim)).compile()
    calls, place = [0], [start(target, 0)]

    def value_and_gradient(x):
        calls[0] += 1
        with wide():
            value, gradient = compiled(x)
        return float(value), np.array(gradient)

    model = from_pyfunc(
        target.dim,
        lambda: value_and_gradient,
        lambda *_: lambda x: {"x": x},
        [np.dtype(np.float64)],
        [(target.dim,)],
        ["x"],
        make_initial_point_fn=lambda _: place[0],
    )

    def trace(seed: int, draws: int) -> Any:
        calls[0], place[0] = 0, start(target, seed)
        return sample(
            model, draws=draws, chains=1, cores=1, seed=seed, progress_bar=False, save_warmup=False
        )

    pilot = trace(2**31, 100).sample_stats.n_steps.values
    draws = max(1, round((budget - calls[0] + pilot.sum()) / pilot.mean()))

    def run(seed: int) -> Run:
        begun = time.perf_counter()
        found = trace(seed, draws)
        seconds = time.perf_counter() - begun
        steps = found.sample_stats.n_steps.values[0]
        x = found.posterior["x"].values[0]
        tuning = calls[0] - int(steps.sum())
        second = np.cumsum(x**2, axis=0) / np.arange(1, len(x) + 1)[:, None]
        return Run(tuning + np.cumsum(steps), second, tuning, seconds, x if keep else None)

    return run
