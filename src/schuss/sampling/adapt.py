"""All decisions of a run, taken between two windows from the draws so far: pure functions.

1. chains that stay apart, with next to no mass around them, go on beside another one
2. a map, where a linear test or a search finds one in which the density is closer to a Gaussian
3. the metric, by the Fisher divergence: draws and their gradients
4. ε, by the acceptance of first tries; L = 2√d
5. the run has settled since the last of these that was a large change
6. all is frozen once ESS is 100 over what has settled, and the map was found right again
"""

import math
from typing import Any

import numpy as np

from schuss.coordinates import through, to_z
from schuss.diagnostics.vectorised import ess_and_rhat, fast_ess, strict_ess_and_rhat
from schuss.sampling import tempering
from schuss.sampling.initialise import beside, last_visit, moved_beside
from schuss.sampling.state import (
    Block,
    KernelParams,
    Mixing,
    RunState,
    Search,
    Transform,
    WindowRow,
    draws,
    rows,
)
from schuss.tuning import burn_in, search, slopes, step_size
from schuss.tuning import metric as metrics
from schuss.tuning.local_mass import log_mass

FIRST, GROWTH, LONGEST = 16, 1.4, 1024
"""Steps of the first window, the factor by which windows grow, and the steps of the longest."""

MAX_NUMBERS = 4_000_000
"""Coordinates of all positions of a window, beyond which it grows no longer."""

ACCEPTANCE = 0.85
"""Of first tries, to which ε is tuned."""

ERROR, FREE_OF_BIAS = 3e-3, 200.0
"""E[W²]/d of unadjusted steps, up to this effective sample size."""

BOUNDS, ALIKE = (0.4, 2.5), 1.3
"""By how much ε changes at most, and by how much where it is known."""

STEADY = 2
"""Windows in a row without a large change before all is frozen."""

CHANGED = 1.6
"""A ratio of two metrics' scales, along any direction, that is a large change."""

MAX_FIT, MAX_FIT_NUMBERS = 20_000, 10_000_000
"""Draws of all chains that a fit takes, evenly spaced, and coordinates of them all."""

MAX_MAPS = 4

ENOUGH_TO_FREEZE = 100.0

MIN_DRAWS = 32
"""Draws of a chain from which on their convergence is assessed."""

MAX_COLUMNS = 64
"""Coordinates that an assessment takes, the slowest ones."""

NEGLIGIBLE = 1e-3
"""Share of the mass around a chain below which it may be moved beside another one."""


def adapt(state: RunState, seed: int) -> RunState:
    """The parameters of the next window."""
    longest = np.clip(MAX_NUMBERS // state.chains.x.size, 4 * FIRST, LONGEST)
    longer = min(int(state.steps * GROWTH), int(longest))
    if state.frozen:
        return state._replace(steps=longer)
    known = state.steady >= STEADY and state.search.checked
    if known and state.mixing.ess >= ENOUGH_TO_FREEZE:
        return state._replace(steps=longer, frozen=True)
    state = _without_strays(_restarted(state, seed))
    x, grad = _recent(state)
    grad = grad / state.temperature
    maps, tried = _search(state, _flat(x), _flat(grad), seed)
    y, g = in_map(maps, x, grad)
    metric = _metric(y, g, state.transform.metric)
    ratio, volume = _change(state.transform.metric, metric)
    other = maps is not state.transform.maps
    knee = _knee(state, maps, metric)
    large = other or ratio > CHANGED or math.isfinite(knee) > math.isfinite(state.params.knee)
    root, change = math.sqrt(len(metric.scale)), 1.0
    first = state.phase == "burn-in"
    if not first:
        change = _step_change(state.history[-1], state.mixing.ess)
    epsilon = state.params.step_size * change * math.exp(volume)
    if other:
        epsilon = np.full_like(epsilon, 0.5 * root)
    steady = state.steady + 1 if not large and 1 / ALIKE < change < ALIKE else 0
    return (state.unsettled() if large else state)._replace(
        transform=Transform(metric, maps),
        params=KernelParams(epsilon, 2 * root, knee),
        steady=steady,
        search=tried,
        # What a long window of wrong parameters would teach, a short one does.
        steps=FIRST if other else longer if steady and not first else state.steps,
    )


def assess(state: RunState, monitored: np.ndarray | slice = slice(None)) -> Mixing:
    """Convergence of the draws since the run settled, at a temperature of those resampled."""
    blocks = state.settled_blocks
    size = rows(blocks)
    if size < MIN_DRAWS:
        return Mixing(draws=size * state.thin)
    found = draws(blocks, "x", "energy", columns=slowest(blocks))
    x, energy = (part[:, monitored] for part in found)
    if state.temperature != 1:
        chosen = tempering.resampled(energy, state.temperature, len(energy))
        each = np.arange(energy.shape[1])
        x, energy = x[chosen, each], energy[chosen, each]
    values = [x, (x - x.mean((0, 1))) ** 2, energy[..., None]]
    bulk, rhat = strict_ess_and_rhat(np.concatenate(values, 2))
    low, high = np.quantile(x, (0.05, 0.95), axis=(0, 1))
    tail = fast_ess(np.concatenate([x <= low, x >= high], 2).astype(float))
    scale = state.chains.x.shape[0] / energy.shape[1]
    return Mixing(scale * float(min(bulk.min(), tail.min())), float(rhat.max()), size * state.thin)


def slowest(blocks: tuple[Block, ...]) -> np.ndarray | slice:
    """The `MAX_COLUMNS` coordinates that move least, by the means of blocks of x and (x − m)².

    A mean of n draws has the variance τ σ²/n, so that Σ n (mean − m)² is in proportion to τ.
    """
    if blocks[0].x.shape[-1] <= MAX_COLUMNS:
        return slice(None)
    count = np.array([len(block.energy) for block in blocks])[:, None, None]
    mean = np.stack([block.x.mean(axis=0) for block in blocks])
    square = np.stack([np.einsum("ncd,ncd->cd", block.x, block.x) for block in blocks]) / count
    center = np.average(mean, axis=0, weights=count[:, 0, 0]).mean(axis=0)
    spread = square - 2 * center * mean + center**2
    variance = np.average(spread, axis=0, weights=count[:, 0, 0]).mean(axis=0)
    slow = [
        np.sum(count * (part - middle) ** 2, axis=(0, 1)) / scale
        for part, middle, scale in ((mean, center, variance), (spread, variance, variance**2))
    ]
    return np.unique([np.argsort(-one)[: MAX_COLUMNS // 2] for one in slow])


def in_map(maps: tuple, x: np.ndarray, grad: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """y, and the gradient in y of E and the log-determinant, of draws (n, chains, dim)."""
    if not maps:
        return x, grad
    y = to_z(np, maps, _flat(x))
    _, g = through(np, lambda x: (np.zeros(len(x)), _flat(grad)), maps)(y)
    return y.reshape(x.shape), g.reshape(x.shape)


def _recent(state: RunState) -> tuple[np.ndarray, np.ndarray]:
    """Draws and gradients for the fits: the later half of all since burn-in."""
    size, chains = rows(state.blocks), len(state.chains.energy)
    skip = size // 2
    most = min(MAX_FIT, MAX_FIT_NUMBERS // state.chains.x.shape[1])
    every = -(-(size - skip) * chains // max(most, chains))
    x, grad = draws(state.blocks, "x", "grad", at=slice(skip, None, every))
    return x, grad


def _flat(values: np.ndarray) -> np.ndarray:
    return values.reshape(-1, values.shape[-1])


def _restarted(state: RunState, seed: int) -> RunState:
    """Chains whose last window lay above all of another's, with a negligible mass around them."""
    last = state.blocks[-1]
    if len(last.energy) < 8 or state.temperature != 1 or state.transform.maps:
        return state
    energy = last.energy
    mass, error = log_mass(last.x, last.grad, energy)
    best = int(np.argmax(mass - error))
    apart = energy.min(axis=0) > energy[:, best].max()
    lost = apart & (mass + error < mass[best] - error[best] + math.log(NEGLIGIBLE))
    if not lost.any():
        return state
    rng = np.random.default_rng([seed, 12, state.counts.windows])
    visited = state.facts.visited.joined(
        last_visit(last.x[:, lost], last.grad[:, lost], energy[:, lost])
    )
    facts = state.facts._replace(visited=visited, restarts=state.facts.restarts + int(lost.sum()))
    chains = moved_beside(state.chains, beside(lost, rng), rng)
    return state.unsettled()._replace(chains=chains, facts=facts)


def _without_strays(state: RunState) -> RunState:
    """Without the blocks before the last chain came to where all are later."""
    blocks = state.settled_blocks
    if len(blocks) < 2 or not all(block.counts.all() for block in blocks):
        return state
    (energy,) = draws(blocks[len(blocks) // 2 :], "energy")
    means = np.stack([block.energy.mean(axis=0) for block in blocks])
    first = burn_in.strayed(means, float(energy.std()))
    if not first:
        return state
    left = sum(block.counts for block in blocks[first:])
    return state._replace(
        settled=state.settled + first,
        mixing=Mixing(),
        moments=None,
        transitions=left * state.thin,
    )


def _search(state: RunState, x, grad, seed) -> tuple[tuple, Search]:
    maps, tried, gradients = state.transform.maps, state.search, state.counts.gradients
    dim = x.shape[1]
    if dim < 3 or state.temperature != 1 or tried.changes >= MAX_MAPS or gradients < tried.due:
        return maps, tried
    present: Any = maps[0] if maps else None
    kinds = search.kinds(present, gradients, *x.shape)
    if not kinds:
        return maps, tried
    rng = np.random.default_rng([seed, 11, tried.changes])
    found = search.best_map(x, grad, present, kinds, rng)
    if found is present:
        return maps, tried._replace(due=max(2 * gradients, search.LEAST_GRADIENTS), checked=True)
    due = gradients + search.LEAST_GRADIENTS
    last = found is None or tried.changes + 1 == MAX_MAPS
    return (() if found is None else (found,)), Search(due, tried.changes + 1, checked=last)


def _metric(y, g, present) -> metrics.Metric:
    """From draws and gradients in y, worth as many independent ones as the median ESS."""
    dim = y.shape[-1]
    effective = float(np.median(ess_and_rhat(y).ess)) if len(y) >= 8 else 1.0
    with np.errstate(all="ignore"):
        if dim == 1:
            fitted = metrics.scaled(np.append(metrics.scales(_flat(y), _flat(g)), 1.0))
        else:
            fit = metrics.fit if dim <= metrics.DENSEST else metrics.fit_many
            fitted = fit(_flat(y), _flat(g), effective)
    finite = all(np.isfinite(part).all() for part in fitted)
    return fitted if finite else present


def _knee(state: RunState, maps, metric) -> float:
    """Where steps become shorter, from when they are refused on steep slopes; ∞ before."""
    last, knee = state.blocks[-1], state.params.knee
    if last.x.shape[-1] == 1:
        return knee
    g = in_map(maps, last.x, last.grad / state.temperature)[1]
    tried = slopes.tries(metric.pull(np, g, g), last.acceptance)
    if tried.shape[1] < slopes.LEAST_TRIES or not (math.isfinite(knee) or slopes.refused(tried)):
        return knee
    return slopes.knee(tried, g.shape[-1])


def _step_change(last: WindowRow, ess: float) -> float:
    """The factor by which ε changes: by acceptance, or by W ∝ ε³ where nothing is decided.

    The flow's bias², about E[W²]/d to the power ⅔, is to fall with the variance, 1/ESS.
    """
    if math.isfinite(last.acceptance):
        return step_size.from_acceptance(last.acceptance, ACCEPTANCE, BOUNDS)
    if not math.isfinite(last.error):
        return BOUNDS[0]
    wanted = ERROR * min(1.0, (FREE_OF_BIAS / max(ess, 1.0)) ** 1.5)
    return float(np.clip((max(last.error, 1e-12) / wanted) ** (-1 / 6), *BOUNDS))


def _change(before: metrics.Metric, after: metrics.Metric) -> tuple[float, float]:
    """The largest ratio of scales along any direction, and the change of the mean log scale."""
    volume = metrics.log_scale(before) - metrics.log_scale(after)
    if metrics.rank(before) == metrics.rank(after) == 0:
        return math.exp(np.abs(np.log(after.scale / before.scale)).max()), volume
    eye = np.eye(len(after.scale))
    singular = np.linalg.svd(before.inverse(np, after.forward(np, eye)), compute_uv=False)
    return float(max(singular.max(), 1 / singular.min())), volume
