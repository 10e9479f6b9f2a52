"""A window: some steps of one kernel at fixed parameters, and the end of what was under way.

Where a chain is after a fixed number of steps is no fair draw: transitions that take longer are
under way more often. So every chain finishes its transition at the end of a window, and a draw is
where a transition ends.
"""

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from schuss.arguments import mixed
from schuss.coordinates import Auxiliary, through, to_z
from schuss.core import persistent, unadjusted
from schuss.core.dynamics import ESH
from schuss.core.integrators import LEAPFROG, MINIMAL_NORM
from schuss.core.kernel import Kernel, Noise
from schuss.core.refresh import forgetting
from schuss.engines.engine import Job, Step, tempered, walk
from schuss.problem import Problem
from schuss.sampling.state import Block, ChainState, KernelParams, Transform
from schuss.tuning.metric import in_loops

METROPOLIS = persistent.kernel(ESH, LEAPFROG)
"""The scaled flow with a Metropolis test in every step (Neal 2020; Riou-Durand et al. 2023)."""

LOCAL = persistent.kernel(ESH, LEAPFROG, local=True)
"""The same with steps that are shorter on steep slopes."""

SPREAD = 0.1
"""How much the logarithms of local steps vary."""

FLOW = unadjusted.kernel(ESH, MINIMAL_NORM)
"""The scaled flow as it is: MCLMC."""


class Setting(NamedTuple):
    """What is fixed during a window."""

    exact: bool
    transform: Transform
    params: KernelParams
    temperature: float = 1.0
    frozen: bool = False
    fused: bool = False


class Found(NamedTuple):
    """What a window leaves."""

    chains: ChainState
    block: Block
    step: Step  # every step, lookaheads included


def window(
    problem: Problem, setting: Setting, chains: ChainState, steps: int, key: tuple[int, ...]
) -> Found:
    """So many steps of each chain from where it is, with the noise of this key."""
    engine, like = problem.engine, problem.x
    rng = np.random.default_rng([*key, 1])
    frames = _frames(problem, setting.transform, rng)
    z = to_z(np, frames, chains.x)
    given = tempered(lambda x: (chains.energy, chains.grad), setting.temperature)
    with np.errstate(all="ignore"):
        energy, grad = through(np, given, frames)(z)
        kernel, params, state = begin(setting.exact, setting.params, chains, z, energy, grad, rng)

    def placed(record):
        return type(record)(*(engine.asarray(part, like) for part in record))

    temperature = None if setting.temperature == 1 else engine.asarray(setting.temperature, like)
    source = engine.source(mixed(*key), like)
    frames = tuple(map(placed, frames))
    job = Job(kernel, problem.grad_fn, placed(params), source, frames, temperature)
    state, moving, parts, made = placed(state), np.ones(len(z), bool), [], 0
    while moving.any():
        go = engine.fused if setting.fused and not made else functools.partial(walk, engine)
        state, source, part = go(job, state, made, steps, moving)
        job, made = job._replace(source=source), made + steps
        parts.append(part)
        moving, steps = moving & ~part.complete[-1], 1
    step = Step(*map(np.concatenate, zip(*parts, strict=True)))
    block = _block(chains, step, setting.frozen)
    u = np.asarray(engine.to_numpy(state.u), float)
    s = np.asarray(engine.to_numpy(state.s), float) if setting.exact else chains.slice_variable
    return Found(_after(chains, block)._replace(u=u, slice_variable=s), block, step)


class Begun(NamedTuple):
    """A kernel with its parameters and a state, as NumPy arrays."""

    kernel: Kernel
    params: Any
    state: Any


def begin(exact: bool, params: KernelParams, chains: ChainState, z, energy, grad, rng) -> Begun:
    """Chains at the beginning of a transition at z, with the energy and the gradient there."""
    dim, ratio = z.shape[1], params.step_size / params.L
    kappa, zero = np.float64(dim - 1), np.float64(0)
    nu, slice_uniform = forgetting(np, 2 * ratio, dim), (chains.slice_variable[:, None] + 1) / 2
    if not exact:
        kernel, given = FLOW, unadjusted.Params(params.step_size, kappa, nu)
    else:
        local = math.isfinite(params.knee)
        kernel, lookahead = LOCAL if local else METROPOLIS, np.floor(0.5 / ratio)
        law = (np.float64(params.knee), np.float64(SPREAD)) if local else (zero, zero)
        given = persistent.Params(params.step_size, kappa, kappa, nu, lookahead, 2 * ratio, *law)
    uniform = np.concatenate([slice_uniform, rng.uniform(size=slice_uniform.shape)], axis=1)
    return Begun(kernel, given, kernel.init(np, z, energy, grad, Noise(chains.u, uniform), given))


def _frames(problem, transform, rng):
    """Changes of coordinates from x to z; on a line one coordinate more, redrawn each time."""
    frames = (*transform.maps, in_loops(transform.metric))
    if problem.dim > 1:
        return frames
    return (Auxiliary(rng.standard_normal((len(problem.x), 1))), *frames)


def _block(chains: ChainState, step: Step, frozen: bool) -> Block:
    """The states at the ends of transitions, from where the steps evaluated the energy."""
    n = len(step.energy)
    place = np.maximum.accumulate(np.where(step.moved, np.arange(1, n + 1)[:, None], 0), axis=0)
    counts = step.complete.sum(axis=0)
    ends = np.argsort(~step.complete, axis=0, kind="stable")
    ends = np.take_along_axis(
        ends, np.minimum(np.arange(counts.max())[:, None], counts - 1), axis=0
    )
    place, each = np.take_along_axis(place, ends, axis=0), np.arange(len(counts))

    def accepted(start, tried):
        return np.concatenate([start[None], np.asarray(tried, float)])[place, each]

    def ended(values):
        return np.take_along_axis(np.asarray(values, float), ends, axis=0)

    return Block(
        accepted(chains.x, step.x),
        accepted(chains.energy, step.energy),
        accepted(chains.grad, step.g),
        ended(step.error),
        ended(step.acceptance),
        counts,
        frozen,
    )


def _after(chains: ChainState, block: Block) -> ChainState:
    """Where the last draws of a block are, or where a chain without any was before."""
    each, last = np.arange(len(block.counts)), np.maximum(block.counts - 1, 0)
    some = block.counts > 0
    if not some.any():
        return chains
    x, energy, grad = (part[last, each] for part in block[:3])
    return chains._replace(
        x=np.where(some[:, None], x, chains.x),
        energy=np.where(some, energy, chains.energy),
        grad=np.where(some[:, None], grad, chains.grad),
    )
