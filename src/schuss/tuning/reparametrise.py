"""A hierarchical map from draws and their gradients: which coordinates set the others' widths.

In the right coordinates the target is a standard normal, whose gradient is z itself. So the map
is the one that makes the residual R = z − ∂E/∂z small, robustly: first Σ log(1 + R²), then
Σ √(1 + R²). Given who depends on whom it is fitted row by row (`row_fit`, `frame_fit`).

Parents are added one by one, by what they gain on the half of the draws that wasn't fitted
(`screening`). The first must set widths: a linear dependence is the metric's affair.
"""

import numpy as np

from schuss.coordinates.hierarchical import Hierarchical
from schuss.tuning.frame_fit import (
    MOST_PARENTS,
    Links,
    Trial,
    begin,
    fit_rows,
    fitted,
    loss,
    row_losses,
    without_parents,
)
from schuss.tuning.pilot import pilot
from schuss.tuning.screening import LEAST_TOTAL, screen

MOST_DIM = 3000
"""Beyond it a search would take seconds, and gigabytes."""

STRONG = 0.4
"""Widths that change by less than e^STRONG over a parent's deviation are left to the step size."""

LEFT = 0.5
"""The share of the loss of the rows with a width that may be left for the map to be of use."""


def fit(x: np.ndarray, g: np.ndarray, rng: np.random.Generator) -> Hierarchical | None:
    """The map from draws and gradients (n, dim) in order of time, None where it isn't worth it."""
    chosen = pilot(x, g, rng) if 3 <= x.shape[1] <= MOST_DIM else None
    if chosen is None:
        return None
    # Draws from far out may overflow in a trial; such a trial has an infinite loss.
    with np.errstate(all="ignore"):
        return _fit(*chosen)


def _fit(x, g) -> Hierarchical | None:
    search = Search(x[::2], g[::2])
    state = search.known[()]
    while len(state.links.order) < MOST_PARENTS:
        trials = [trial for trial in search.further(state) if _worthwhile(x[::2], trial)]
        best = min(trials, key=lambda trial: trial.loss, default=state)
        if not best.loss < state.loss - LEAST_TOTAL:
            break
        state = search.without_any(best)
    if not state.links.order:
        return None
    frame = fit_rows(x, g, state.frame, state.links)
    frame = _anchored(x, g, Trial(frame, state.links, loss(x, g, frame)))
    spread = state.links.width.any(axis=1)
    before, after = (np.sum(row_losses(x, g, one), where=spread) for one in (begin(x, g), frame))
    return frame if after < LEFT * before else None


class Search:
    """Frames with more and more parents: the order in which they came makes a frame what it is."""

    def __init__(self, x: np.ndarray, g: np.ndarray):
        self.x, self.g = x, g
        self.known: dict[tuple[int, ...], Trial] = {(): without_parents(x, g)}

    def further(self, state: Trial) -> list[Trial]:
        """The few trials with one more parent that promise most."""
        return [self._fitted(state, links) for links in screen(self.x, self.g, *state[:2])]

    def trial(self, order: tuple[int, ...]) -> Trial | None:
        """With these parents, None where one of them gains nothing after those before it."""
        if order in self.known:
            return self.known[order]
        before = self.trial(order[:-1])
        if before is None:
            return None
        found = screen(self.x, self.g, *before[:2], np.asarray(order[-1:]))
        return self._fitted(before, found[0]) if found else None

    def without_any(self, state: Trial) -> Trial:
        """Leave out a parent that the later ones have made superfluous."""
        order = state.links.order
        for k in order[:-1]:
            trial = self.trial(tuple(one for one in order if one != k))
            if trial is not None and trial.loss < state.loss + LEAST_TOTAL / 2:
                return self.without_any(trial)
        return state

    def _fitted(self, state: Trial, links: Links) -> Trial:
        if links.order not in self.known:
            self.known[links.order] = fitted(self.x, self.g, state.frame, links)
        return self.known[links.order]


def _worthwhile(x, trial) -> bool:
    """Whether at least two rows' widths change much over the spread of the first parent."""
    first = trial.frame.inverse(np, x) @ trial.frame.parents[0]
    return int(np.sum(np.abs(trial.frame.spread[:, 0]) * np.std(first) > STRONG)) >= 2


def _anchored(x, g, trial: Trial) -> Hierarchical:
    """Rows whose width is set gain data of their own, where that makes the residual smaller."""
    frame, links = trial.frame, trial.links
    z = frame.inverse(np, x)
    heads = z @ frame.parents.T
    a = np.median(frame.log_scale + heads @ frame.spread.T, axis=0)
    anchored = links.width.any(axis=1)
    tried = frame._replace(
        anchor=np.where(anchored, np.median(x, axis=0), 0.0),
        weight=np.where(anchored, np.exp(-2 * a - 2), 0.0),
    )
    tried = fit_rows(x, g, tried, links)
    return tried if loss(x, g, tried) < trial.loss - 0.1 * LEAST_TOTAL else frame
