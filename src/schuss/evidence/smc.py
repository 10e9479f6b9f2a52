"""Waste-free sequential Monte Carlo from a reference to the target.

At each temperature every particle makes several adjusted ESH moves, and all the states it passes
count (Dau and Chopin 2022). Groups of particles are resampled apart, so that each is an estimate
of its own; the two halves of the groups lend each other their metric and their step size.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from schuss.arguments import mixed
from schuss.engines.engine import check_weights
from schuss.evidence import adapt
from schuss.evidence.bridge import log_ratio
from schuss.evidence.groups import by_group, log_mean
from schuss.evidence.modes import most_apart
from schuss.evidence.moves import Mover, Pull, Space
from schuss.evidence.resample import systematic
from schuss.evidence.temperature import conditional_ess, increment, log_weights

SHARE = 0.85
"""Of the states, that the weights of one step in temperature leave."""

FIRST_MOVES, FEWEST, MOST = 8, 4, 32
"""Moves of each particle at the first temperature, and their limits later."""

WORTH = 4.0
"""Moves for each correlation time of E − E₀ at the temperature before."""

FIRST = 8
"""Draws of the reference for each particle."""

ENOUGH = 2048
"""States of a group that show in which direction they fall apart."""

TEMPERATURES = 300
NEAREST, WIDEST, SLOWEST = 1e-9, 30.0, 1e-3
"""A path that comes this near to the target and not there, or slows down while the particles
spread far beyond the reference, leads to a density that can't be normalised."""


class Pool(NamedTuple):
    """States of all particles at one temperature, in NumPy."""

    x: np.ndarray  # (moves, particles, dim)
    gap: np.ndarray  # (moves, particles), E − E₀


class Row(NamedTuple):
    """How one temperature went."""

    temperature: float
    conditional_ess: float
    acceptance: float
    step_size: float
    moves: int
    correlation_time: float  # of E − E₀, in moves
    gradients: int  # for each particle
    log_z: float  # up to here
    widest: float  # the largest scale, in those of the reference


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a run leaves: estimates by group, the last states, and how it went."""

    log_z: np.ndarray  # (groups,), by the weights on the way: unbiased for Z
    bridged: np.ndarray  # (groups,), by the states on both sides of every step
    pool: Pool
    rows: tuple[Row, ...]
    gradients: int  # for each particle
    lost: int  # draws of the reference where the target was not a number
    walls: bool  # whether the target is infinite at others
    stopped: str  # why before the end: "improper", "stuck", "budget" or nothing
    pull: Pull | None  # at the end


def run(
    space: Space,
    sample: Callable,
    particles: int,
    groups: int,
    seed: int,
    *,
    max_gradients: float = math.inf,
    told: Callable[[float], None] = lambda beta: None,
) -> Outcome:
    """Temper from the reference to the target, `told` of every temperature reached."""
    rng = np.random.default_rng([seed, 0])
    second = np.arange(particles) * 2 >= particles  # the half that a particle is in
    dim = max(space.dim, 2)
    pool, lost, walls = _begin(space, sample, particles, rng)
    first_scale = adapt.spread(_opened(space, pool.x), np.ones(pool.gap.shape), 1.0)
    log_z = bridged = np.zeros(groups)
    left, gradients, rows = 1.0, FIRST, []
    steps, moves = (adapt.first_step(dim),) * 2, FIRST_MOVES
    mover, widest, stopped = None, 1.0, ""
    while left > 0:
        delta = increment(pool.gap.reshape(-1), left, SHARE)
        stopped = _trouble(pool, left, delta, widest, len(rows))
        if gradients >= max_gradients:
            stopped = "budget"
        if stopped:
            break
        logs = log_weights(pool.gap, delta)
        log_z = log_z + log_mean(by_group(logs, groups))
        left = 0.0 if delta == left else left - delta
        opened = _opened(space, pool.x)
        weights = np.exp(logs - logs.max())
        scale = _scale(opened, weights, first_scale)
        mover = Mover(
            space,
            _resample(pool.x, opened, weights, groups, rng),
            left,
            scale,
            np.where(second, steps[1], steps[0]),
            _seed(seed, len(rows)),
            rng.standard_normal((particles, 1)),
        )
        pool, accepted, spent = _walk(mover, dim, float(np.mean(steps)), moves, rng)
        after = log_weights(pool.gap, delta)
        bridged = bridged + log_ratio(by_group(logs, groups), by_group(after, groups))
        gradients += spent
        correlation_time = adapt.correlation_time(pool.gap)
        widest = float((scale / first_scale).max())
        rows.append(
            Row(
                temperature=1 - left,
                conditional_ess=conditional_ess(logs.reshape(-1)),
                acceptance=float(accepted.mean()),
                step_size=float(np.mean(steps)),
                moves=moves,
                correlation_time=correlation_time,
                gradients=spent,
                log_z=float(log_mean(log_z)),
                widest=widest,
            )
        )
        told(1 - left)
        # Each half goes on with the step that the other half's moves ask for.
        steps = (
            adapt.next_step(steps[1], float(accepted[:, second].mean()), dim),
            adapt.next_step(steps[0], float(accepted[:, ~second].mean()), dim),
        )
        moves = min(max(math.ceil(WORTH * correlation_time), FEWEST), MOST)
    pull = mover.pull() if mover is not None and left == 0 else None
    return Outcome(log_z, bridged, pool, tuple(rows), gradients, lost, walls, stopped, pull)


def _begin(space: Space, sample, particles: int, rng) -> tuple[Pool, int, bool]:
    """Draws of the reference, and where the target has no number or is infinite."""
    x = np.stack([np.asarray(sample(rng, particles), float) for _ in range(FIRST)])
    energy, reference = space.energies(space.target, x), space.energies(space.reference, x)
    if not np.all(np.isfinite(reference)):
        raise ValueError(
            f"reference gives {np.sum(~np.isfinite(reference))} of its own {reference.size} draws "
            "no finite log-density; make its sample and its log_density agree"
        )
    if not np.any(np.isfinite(energy)):
        check_weights(space.engine, space.target)
        raise ValueError(
            f"energy is finite at none of {energy.size} draws from the reference; move or widen "
            "the reference to where the target has density"
        )
    if np.any(energy == -np.inf):
        raise ValueError(
            "energy is −inf at a draw from the reference, an infinite density there; check its "
            "sign, or bound it from below"
        )
    return Pool(x, energy - reference), int(np.isnan(energy).sum()), bool(np.isinf(energy).any())


def _trouble(pool: Pool, left: float, delta: float, widest: float, temperatures: int) -> str:
    """Why the path can't be followed further, if so."""
    if not np.any(np.isfinite(pool.gap)) or np.any(pool.gap == -np.inf):
        return "improper"
    if left < NEAREST or (widest > WIDEST and delta < SLOWEST * left):
        return "improper"
    return "stuck" if temperatures == TEMPERATURES or delta < 1e-30 else ""


def _scale(opened, weights, otherwise) -> np.ndarray:
    """The metric of each particle: the spread of the half that it isn't in, at the new weights."""
    half = opened.shape[1] // 2
    first, last = (
        adapt.spread(opened[:, of], weights[:, of], otherwise)
        for of in (slice(half), slice(half, None))
    )
    return np.repeat([last, first], half, axis=0)


def _walk(mover: Mover, dim: int, step: float, moves: int, rng) -> tuple[Pool, np.ndarray, int]:
    """The states after each move, the probabilities of acceptance, and gradients a particle."""
    lengths = [adapt.proposal_length(dim, step, rng.random()) for _ in range(moves)]
    x, gap, accepted = mover.moves(lengths)
    return Pool(x, gap), accepted, 1 + sum(lengths)


def _resample(x, opened, weights, groups, rng) -> np.ndarray:
    """One state for each particle, out of those of its own group."""
    size = x.shape[1] // groups
    picked = []
    for g in range(groups):
        mine = slice(g * size, (g + 1) * size)
        w = weights[:, mine].reshape(-1)
        if not w.sum() > 0:
            # A group that lost everything counts for nothing from here on.
            w = np.ones_like(w)
        order = np.argsort(opened[:, mine] @ _apart(opened[:, mine], weights[:, mine]), axis=None)
        chosen = rng.permutation(order[systematic(w[order], size, rng.random())])
        picked.append(x[:, mine][np.unravel_index(chosen, (len(x), size))])
    return np.concatenate(picked)


def _apart(opened, weights) -> np.ndarray:
    """The direction in which the states of one group fall apart most, by the latest of them."""
    latest = slice(-math.ceil(ENOUGH / opened.shape[1]), None)
    if not weights[latest].sum() > 0:
        latest = slice(None)
    w = weights[latest].reshape(-1)
    return most_apart(_flat(opened[latest]), w if w.sum() > 0 else np.ones_like(w)).direction


def _opened(space: Space, x: np.ndarray) -> np.ndarray:
    return space.opened(_flat(x)).reshape(x.shape)


def _flat(x: np.ndarray) -> np.ndarray:
    return x.reshape(-1, x.shape[-1])


def _seed(seed: int, t: int) -> int:
    """A seed for the noise of one temperature."""
    return mixed(seed, 1, t)
