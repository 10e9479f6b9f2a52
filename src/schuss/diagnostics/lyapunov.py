"""The largest Lyapunov exponent of a deterministic flow: where it is chaotic, it mixes.

Benettin's method: beside each trajectory runs a shadow, a small distance away in (x, u). Every
few steps the growth of the distance is noted and the shadow is pulled back along the same
direction,

    λ = Σ log(distance after / distance before) / time,

over what comes after the shadow has turned to the direction that grows fastest.
"""

import dataclasses
from typing import Any

import numpy as np

from schuss.algorithms import ESH, Algorithm, Unscaled
from schuss.arguments import whole
from schuss.diagnostics.inputs import Array
from schuss.problem import launch, pose

DISTANCE = 1e-7
"""Of the shadow: far above the rounding of float64, far below every length of the energy."""


def lyapunov(
    target=None,
    *,
    energy=None,
    logdensity=None,
    value_and_grad=None,
    init=None,
    chains: int | None = None,
    sampler: Algorithm | None = None,
    steps: int = 20_000,
    renormalise: int = 100,
    discard: float = 0.5,
    seed: int = 0,
    engine: Any = "auto",
) -> Array:
    """Exponents of the flow from each start, shape (chains,), per unit of the flow's own time.

    That is scaled time, hence distance, for `ESH`. The target is given as in `schuss.trajectory`.
    The shadow is pulled back every `renormalise` steps, and the first share `discard` of the steps
    isn't counted. Where the flow isn't chaotic the distance still grows in proportion to time, so
    that zero shows as log(2)/(time/2) or so. A chain that was frozen has nan.
    """
    algorithm = ESH(step_size=0.05) if sampler is None else sampler
    steps, renormalise = whole("steps", steps, 1), whole("renormalise", renormalise, 1)
    _check(algorithm, steps, renormalise, discard)
    problem = pose(
        target,
        energy=energy,
        logdensity=logdensity,
        value_and_grad=value_and_grad,
        init=init,
        chains=chains,
        seed=seed,
        engine=engine,
    )
    used = problem.engine
    x = used.to_numpy(problem.x)
    n, dim = x.shape
    if dim < 2:
        raise ValueError("init must have at least 2 coordinates: on a line there is no chaos")
    if x.dtype != np.float64:
        raise ValueError(
            f"init must be float64, in which a distance of {DISTANCE} can be followed, got "
            f"{x.dtype}; convert it, and the energy with it"
        )
    # Apart from the plain seed, by which init may have been drawn: u along x is a singular start.
    rng = np.random.default_rng([seed, 2])
    u = rng.standard_normal((n, dim))
    if isinstance(algorithm, ESH):
        u = u / np.linalg.norm(u, axis=1, keepdims=True)
    place, apart = np.stack([x, u]), rng.standard_normal((2, n, dim))

    rounds = steps // renormalise
    growth, alive = np.empty((rounds, n)), np.ones(n, bool)
    for k in range(rounds):
        shadow = place + DISTANCE * apart / _length(apart)[:, None]
        starts, velocities = np.concatenate([place, shadow], axis=1)
        both = dataclasses.replace(problem, x=used.asarray(starts, problem.x))
        job, state, seen = launch(
            both, algorithm, seed, speed=False, weighted=False, velocity=velocities
        )
        _, before = _split(used, seen.x, seen.u)
        state, _, record = used.record(job, state, 0, 1, renormalise)
        place, apart = _split(used, record.seen.x[0], record.seen.u[0])
        growth[k] = np.log(_length(apart) / _length(before))
        alive &= used.to_numpy(job.kernel.alive(used.xp, state)).reshape(2, n).all(axis=0)
    counted = growth[int(discard * rounds) :]
    span = renormalise * np.asarray(algorithm.step_size, float)
    return np.where(alive, counted.mean(axis=0) / span, np.nan)


def _split(engine, x, u):
    """The trajectories, (2, chains, dim) with x first, then u, and the way to their shadows."""
    pairs = np.stack([engine.to_numpy(part).reshape(2, -1, part.shape[-1]) for part in (x, u)])
    return pairs[:, 0], pairs[:, 1] - pairs[:, 0]


def _length(apart):
    return np.sqrt(np.sum(apart**2, axis=(0, 2)))


def _check(algorithm, steps, renormalise, discard):
    more = [getattr(algorithm, name, None) for name in ("refresh", "adjust", "box")]
    if not isinstance(algorithm, ESH | Unscaled) or any(part is not None for part in more):
        raise ValueError(
            "sampler must be a deterministic flow, Unscaled or ESH without refresh, adjust and "
            f"box, got {algorithm!r}; pass e.g. sampler=ESH(step_size=0.05)"
        )
    if np.ndim(algorithm.step_size):
        raise ValueError("step_size must be one number here, got one for each chain")
    if not 0 <= discard < 1:
        raise ValueError(f"discard must be a share from 0 to below 1, got {discard}; pass e.g. 0.5")
    if steps < 2 * renormalise:
        raise ValueError(
            f"steps must be at least twice renormalise, {2 * renormalise}, got {steps}; run longer"
        )
