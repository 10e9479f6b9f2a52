"""The posterior of a run, from its state."""

import numpy as np

from schuss.adapters.question import Question
from schuss.results import Moments, Posterior, Stats
from schuss.sampling import tempering
from schuss.sampling.run import Plan
from schuss.sampling.state import FIELDS, Facts, RunState, draws, rows
from schuss.sampling.stopping import Clock, StoppingRule
from schuss.tuning.local_mass import log_mass
from schuss.tuning.metric import scales

MAX_JUDGED, MAX_SHARE = 20_000, 1000.0
"""Draws that show what is out of reach; the largest share of mass that is taken for one. Far out on
a flat slope, where chains are still coming down, there seems to be any amount of mass."""

LOW = 0.1
"""Quantile of the bottoms E − ½ Σ s²g², which on a Gaussian are all its lowest energy."""

MIN_ROWS = 4
"""Draws of a chain below which all since burn-in are given, and the verdict says so."""


def posterior(
    question: Question,
    plan: Plan,
    state: RunState,
    rule: StoppingRule,
    clock: Clock,
    *,
    keep: str = "draws",
    interrupted: bool = False,
) -> Posterior:
    """The draws since the run settled, with all that is known of them."""
    problem, facts = question.problem, state.facts
    settled = rows(state.settled_blocks) >= MIN_ROWS
    blocks = state.settled_blocks if settled else state.blocks
    size = rows(blocks)
    at = _spaced(size, rule)
    every = at if state.temperature == 1 else slice(None)
    kept = dict(zip(FIELDS, draws(blocks, *FIELDS, at=every), strict=True))
    kept["adapting"] = _adapting(blocks, size)[every]
    if state.temperature != 1:
        chosen = tempering.resampled(kept["energy"], state.temperature, len(at))
        each = np.arange(chosen.shape[1])
        kept = {name: values[chosen, each] for name, values in kept.items()}
    kept = {name: np.swapaxes(values, 0, 1) for name, values in kept.items()}
    x = np.ascontiguousarray(kept["x"])
    maps = state.transform.maps
    stats = Stats(
        energy=kept["energy"].astype(problem.engine.to_numpy(problem.x).dtype),
        # Errors of steps that a Metropolis test decided on are no bias, unless there is no test.
        energy_error=kept["error"],
        acceptance=kept["acceptance"] if plan.exact else None,
        # Where there are walls, the identities that gradients are checked by don't hold.
        gradient=None if facts.walls and not maps else kept["grad"],
        adapting=kept["adapting"],
        step_size=float(state.params.step_size.mean()),
        refresh=state.params.L,
        gradients=_gradients(question, state),
        seconds=clock.seconds,
        divergences=facts.divergences,
        restarted=facts.restarts,
        thin=state.thin * max(size // max(len(at), 1), 1),
        history=tuple(row._asdict() | {"refresh": row.L} for row in state.history),
        exact=plan.exact,
        cut_short=not settled,
        sampler="auto" if plan.exact else "auto, exact=False",
        coordinates=maps[0].meaning if maps else "",
        leaders=tuple(np.flatnonzero(maps[0].leaders).tolist()) if maps else (),
        seed=plan.seed,
        engine=problem.engine.name,
        interrupted=interrupted,
        reached=rule.reached(x.shape[1]),
        left_behind=_missed_mass(facts, kept) if not facts.walls else 0.0,
        outward=1.0 if facts.walls or maps else _outward(facts, kept),
    )
    common = {
        "name": question.name,
        "dims": question.dims,
        "coords": question.coords,
        "start_groups": _groups(problem),
    }
    if keep == "moments":
        return Posterior(stats=stats, moments=_moments(state, x), **common)
    return Posterior(stats=stats, draws=question.restore(x), x=x, **common)


def _adapting(blocks, size: int) -> np.ndarray:
    """Which draws (size, chains) were made while parameters still moved."""
    before = sum((block.counts for block in blocks if not block.frozen), 0 * blocks[0].counts)
    return np.arange(size)[:, None] < before


def _spaced(size: int, rule: StoppingRule) -> np.ndarray:
    """The numbers of the draws that are given: as many as asked for, evenly spaced."""
    count = size // (rule.thin or 1) if rule.draws is None else min(rule.draws, size)
    every = np.arange(1, count + 1)
    if rule.thin is not None and rule.thin * count <= size:
        return every * rule.thin - 1
    return every * size // max(count, 1) - 1


def _gradients(question: Question, state: RunState) -> dict[str, int]:
    """Gradients of all chains by phase."""
    found, last = {"start": question.spent} if question.spent else {}, 0
    for row in state.history:
        found[row.phase] = found.get(row.phase, 0) + row.gradients - last
        last = row.gradients
    return found


def _groups(problem) -> np.ndarray | None:
    """A label for each chain, the same for those that began at one place; None if none did."""
    starts = problem.engine.to_numpy(problem.x)
    found, labels = np.unique(starts.reshape(len(starts), -1), axis=0, return_inverse=True)
    return labels.reshape(-1) if 1 < len(found) < len(starts) else None


def _outward(facts: Facts, kept: dict[str, np.ndarray]) -> float:
    """The upper quartile of (x − x₀)·∇E/d, whose mean is 1 for every density and place x₀.

    Here x₀ is the start. Where it is far from a narrow density, there is much work of both signs.
    """
    with np.errstate(all="ignore"):
        work = ((kept["x"] - facts.start) * kept["grad"]).sum(axis=-1)
        return float(np.max(np.quantile(work, 0.75, axis=1))) / kept["x"].shape[-1]


def _missed_mass(facts: Facts, kept: dict[str, np.ndarray]) -> float:
    """The largest mass around visited locations that no draw reaches, in units of the draws'.

    Such a location is further out than any draw, or lower than the bottom that the draws' own
    gradients point to: a narrow mode may lie amid a broad one.
    """
    visited = facts.visited
    if not visited.mass.size:
        return 0.0
    step = max(kept["energy"].size // MAX_JUDGED, 1)
    x, grad, energy = (
        kept[name].reshape(-1, *kept[name].shape[2:])[::step] for name in ("x", "grad", "energy")
    )
    mean, sd = x.mean(axis=0), x.std(axis=0)
    sd = np.where(sd > 0, sd, 1.0)
    with np.errstate(over="ignore", invalid="ignore"):
        away, reach = (np.sum(((part - mean) / sd) ** 2, axis=1) for part in (visited.x, x))
        share = np.exp(visited.mass - log_mass(x, grad, energy).value)
        bottom = energy - 0.5 * np.sum((scales(x, grad) * grad) ** 2, axis=1)
    lower = visited.energy < min(np.quantile(bottom, LOW), energy.min())
    beyond = (away > reach.max()) | lower
    return float(np.max(share[beyond & (share < MAX_SHARE)], initial=0.0))


def _moments(state: RunState, x: np.ndarray) -> Moments:
    """Of every transition since the run settled, or of the draws where they are resampled."""
    from schuss.diagnostics.vectorised import fast_ess

    ess = fast_ess(np.swapaxes(x, 0, 1))
    found = state.moments
    if found is None or state.temperature != 1 or found.states.min() < 2:
        return Moments(x.mean(axis=1), x.var(axis=1), np.full(len(x), x.shape[1]), ess)
    away = found.total / found.states[:, None]
    variance = found.squares / found.states[:, None] - away**2
    return Moments(found.origin + away, variance, found.states, ess)
