"""Burn-in: the unadjusted flow, a step size for each chain, until energies stop falling."""

import math
from typing import NamedTuple

import numpy as np

from schuss.sampling import flow
from schuss.sampling.field import Field, Rows
from schuss.sampling.whereabouts import Whereabouts, after, restarted
from schuss.sampling.windows import CHUNK
from schuss.tuning import burn_in, step_size
from schuss.tuning.metric import Metric, scaled, scales_by_chain

ERROR, MEMORY, SHRINK, GROW = 0.01, 0.8, 0.5, 1.5
"""Wanted variance of the energy error per dimension, and how steps come to have it."""

NEXT = (flow.TUNING_ERROR / ERROR) ** (1 / 6)
"""The first step of tuning in units of the last one here."""


class BurnIn(NamedTuple):
    """How far it has come."""

    now: Whereabouts
    gone: np.ndarray  # whether a chain began again after the last chunk, (chains,) bool
    metric: Metric
    steps: np.ndarray  # of each chain
    errors: np.ndarray
    counts: np.ndarray
    rows: tuple[Rows, ...] = ()  # of all chunks
    over: bool = False
    since: int = 0  # chunks since a chain last began again

    @property
    def steady(self) -> tuple[Rows, ...]:
        """The later half of the chunks in which no energy fell, if nobody began again in them."""
        calm = self.over and self.since >= burn_in.LEAST and len(self.rows) < burn_in.MOST
        return self.rows[-(burn_in.LEAST // 2) :] if calm else ()

    @property
    def settled(self) -> np.ndarray:
        """Chains that leave a place here which is no worse than those of the others, (chains,)."""
        energy = self.rows[-1].energy[-1]
        others = np.max(energy[~self.gone], initial=-np.inf)
        return (energy <= others) & (self.gone | self.over)


def begin(now: Whereabouts, metric: Metric) -> BurnIn:
    """From where the chains are."""
    nothing = np.zeros(len(now.x))
    return BurnIn(now, nothing > 0, metric, step_size.first_step(now.g), nothing, nothing)


def further(field: Field, last: BurnIn, rng: np.random.Generator) -> BurnIn:
    """One more chunk of steps."""
    dim = last.now.x.shape[1]
    params = flow.params(dim, math.sqrt(dim), wanted=ERROR, memory=MEMORY, shrink=SHRINK, grow=GROW)
    begun = flow.state(last.now, last.metric, last.steps, last.errors, last.counts)
    source = field.source(1, len(last.rows))
    state, _, chunk = field.advance(flow.FLOW, params, last.metric, begun, 0, CHUNK, source)
    host = field.engine.to_numpy
    steps, errors, counts = (
        np.asarray(host(part), float) for part in (state.step_size, state.errors, state.count)
    )
    now, rows = after(state, last.metric, host), (*last.rows, chunk)
    scale = _scale(rows[len(rows) // 2 :])
    steps = steps * math.exp(np.mean(np.log(last.metric.scale / scale)))
    over = burn_in.over(np.stack([row.energy.mean(axis=0) for row in rows]), dim)
    lost = np.zeros(len(steps), bool)
    if len(rows) >= 2 * burn_in.LEAST or over:
        lost = burn_in.lost(now.energy, steps, dim)
    now = restarted(now, lost, rng)
    since = 0 if lost.any() else last.since + 1
    return BurnIn(now, lost, scaled(scale), steps, errors, counts, rows, over, since)


def _scale(rows):
    x, g = (np.concatenate(parts) for parts in ([r.x() for r in rows], [r.g() for r in rows]))
    return scales_by_chain(x, g)
