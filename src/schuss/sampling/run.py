"""The run: windows that are all alike, decisions between them, and when there are enough draws."""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from schuss.engines.engine import Step
from schuss.problem import Problem
from schuss.results.stats import DIVERGED
from schuss.sampling import tempering
from schuss.sampling.adapt import adapt, assess
from schuss.sampling.initialise import burn_in_at, evaluate, initialise, with_step
from schuss.sampling.state import (
    Block,
    Counts,
    Moments,
    RunState,
    Visited,
    WindowRow,
    draws,
    rows,
    sealed,
    thinned,
)
from schuss.sampling.stopping import StoppingRule
from schuss.sampling.window import Setting, window
from schuss.tuning import metric as metrics
from schuss.tuning.local_mass import log_mass

FUSE = 30_000
"""Steps from which on a loop is compiled with the energy in it; on an accelerator it always is."""

ASSESS = 1.2
"""Growth of the number of draws between two assessments."""

MAX_ROWS, MAX_NUMBERS, LEAST_ROWS = 4000, 10_000_000, 250
"""Draws of a chain that are kept, beyond twice as many of which every second one goes, the
coordinates in all of them, and the draws that are kept at least."""

PER_EFFECTIVE = 4
"""Draws kept for each effective one that is asked for."""

NEAR = 1e-3
"""The distance, in units of the chains' spread, of locations that show how wide a mode is."""


MAX_MONITORED = 64
"""Chains that convergence is assessed by: more would only take time between two windows."""

GOLDEN = 0.6180339887498949


class Plan(NamedTuple):
    """What is fixed during a run."""

    problem: Problem
    seed: int
    exact: bool = True
    max_rows: int = MAX_ROWS
    moments: bool = False
    monitored: Any = slice(None)  # chains that convergence is assessed by, where there are many


def run(plan: Plan, x: np.ndarray, state: RunState | None = None) -> Iterator[RunState]:
    """The state after burn-in and after each window, without an end; from starts or a state."""
    if state is None:
        temperature = tempering.initial_temperature(plan.problem, x, plan.seed)
        state = initialise(plan.problem, x, plan.seed, temperature)
        state = state._replace(history=(_row(state),))
    while True:
        yield sealed(state)
        state = advanced(plan, cooled(plan, adapt(state, plan.seed)))


def advanced(plan: Plan, state: RunState) -> RunState:
    """The state after one more window."""
    engine = plan.problem.engine
    fused = engine.accelerator or state.counts.steps >= FUSE
    setting = Setting(
        plan.exact, state.transform, state.params, state.temperature, state.frozen, fused
    )
    key = (plan.seed, 2, state.counts.windows)
    found = window(plan.problem, setting, state.chains, state.steps, key)
    made, counts = len(found.step.energy), state.counts
    state = state._replace(
        chains=found.chains,
        facts=with_step(state.facts, found.step),
        counts=Counts(
            counts.gradients + found.step.error.size, counts.steps + made, counts.windows + 1
        ),
        moments=_moments(state.moments, found.block) if plan.moments else None,
        blocks=(*state.blocks, thinned(found.block, state.thin, state.transitions)),
        transitions=state.transitions + found.block.counts,
    )
    state = _halved(state, plan.max_rows)
    if rows(state.settled_blocks) * state.thin >= ASSESS * state.mixing.draws:
        state = state._replace(mixing=assess(state, plan.monitored))
    return state._replace(history=(*state.history, _row(state, found.step)))


def cooled(plan: Plan, state: RunState) -> RunState:
    """The state itself, or at temperature 1 where few states are where e^(−E) is.

    The draws go, and one chain begins at the lowest energy met.
    """
    if state.temperature == 1 or not state.settled_blocks:
        return state
    (energy,) = draws(state.settled_blocks, "energy")
    if not tempering.too_few_low(energy, state.facts.lowest, state.temperature):
        return state
    chains, facts, counts = state.chains, state.facts, state.counts
    x, e, grad = (np.array(part) for part in chains[:3])
    spread = x.std(axis=0)
    highest = int(np.argmax(e))
    x[highest] = facts.lowest_x
    near = facts.lowest_x + NEAR * spread * chains.u[:, : x.shape[1]]
    energy, g = evaluate(plan.problem, near)
    mass, error = log_mass(near, g, energy)
    typical = np.array([energy.min() + x.shape[1] / 2])
    visited = Visited(facts.lowest_x[None], typical, np.array([mass - error]))
    e, grad = evaluate(plan.problem, x)
    counts = counts._replace(gradients=counts.gradients + 2 * len(x))
    facts = facts._replace(visited=facts.visited.joined(visited))
    fresh = burn_in_at(plan.problem, x, e, grad, plan.seed, 1.0, facts, counts)
    return adapt(fresh._replace(history=(*state.history, _row(fresh))), plan.seed)


def rows_kept(rule: StoppingRule, keep: str, chains: int, dim: int) -> int:
    """Draws of each chain beyond twice as many of which every second one goes."""
    few = max(min(MAX_ROWS, MAX_NUMBERS // (chains * dim)), LEAST_ROWS)
    wanted = 0 if rule.draws is None or keep == "moments" else rule.draws * (rule.thin or 1)
    if rule.ess is not None:
        wanted = math.ceil(PER_EFFECTIVE * rule.ess / chains)
    return max(few, wanted)


def monitored(chains: int) -> slice | np.ndarray:
    """All chains, or one from each of `MAX_MONITORED` equal parts.

    Not at equal distances, where starts that repeat in a cycle would show only some of them.
    """
    if chains <= MAX_MONITORED:
        return slice(None)
    bounds = np.arange(MAX_MONITORED + 1) * chains // MAX_MONITORED
    within = np.arange(MAX_MONITORED) * GOLDEN % 1
    return bounds[:-1] + (within * np.diff(bounds)).astype(int)


def _moments(so_far: Moments | None, block: Block) -> Moments:
    """With the draws of one more block, of which those beyond a chain's count don't count."""
    if so_far is None:
        origin = block.x[0]
        so_far = Moments(np.zeros(len(origin)), origin, 0 * origin, 0 * origin)
    valid = np.arange(len(block.energy))[:, None] < block.counts
    away = np.where(valid[..., None], block.x - so_far.origin, 0.0)
    return Moments(
        so_far.states + block.counts,
        so_far.origin,
        so_far.total + away.sum(axis=0),
        so_far.squares + (away**2).sum(axis=0),
    )


def _halved(state: RunState, max_rows: int) -> RunState:
    """With every second draw where there are more than twice as many as are kept."""
    early, blocks, thin = state.blocks[: state.settled], state.settled_blocks, state.thin
    if state.frozen:  # nothing is fitted any more
        early = early[:1]
    while rows(early) > 2 * max_rows:
        early = _every_second(early)
    while rows(blocks) > 2 * max_rows:
        blocks, thin = _every_second(blocks), 2 * thin
    return state._replace(blocks=(*early, *blocks), settled=len(early), thin=thin)


def _every_second(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    found, before = [], 0
    for block in blocks:
        found.append(thinned(block, 2, before))
        before = before + block.counts
    return tuple(block for block in found if block.counts.any())


def _row(state: RunState, step: Step | None = None) -> WindowRow:
    """A line of the history: of burn-in, or of a window with its steps."""
    dim, made = state.chains.u.shape[1], state.blocks[-1].energy
    tries = error = np.empty(0)
    if step is not None:
        tries = step.acceptance[np.isfinite(step.acceptance)]
        error = np.abs(step.error[step.complete])
        error = np.where(error < DIVERGED, error, DIVERGED)
    return WindowRow(
        gradients=state.counts.gradients,
        phase=state.phase,
        steps=0 if step is None else len(step.energy),
        step_size=float(state.params.step_size.mean()),
        L=state.params.L,
        rank=metrics.rank(state.transform.metric),
        acceptance=float(tries.mean()) if tries.size else math.nan,
        error=float(np.mean(error**2)) / dim if error.size else math.nan,
        energy=float(made.mean()) if made.size else math.nan,
        ess=state.mixing.ess,
        rhat=state.mixing.rhat,
    )
