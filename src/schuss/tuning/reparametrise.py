"""A hierarchical map from draws and their gradients: which coordinates set the others' widths.

In the right coordinates the target is a standard normal, whose gradient is z itself. So the map
is the one that makes the residual R = z − ∂E/∂z small, robustly: first Σ log(1 + R²), then
Σ √(1 + R²). Given the parents, row j has a residual of its own,

    R_j = (x_j − m_j − Σ b_jk (x_k − c_k)) e^(−a_j) − g_j e^(a_j),    a_j = s_j + Σ C_jk z_k,

a small least-squares problem that damped Gauss–Newton steps with the weights of the loss solve,
all rows at once. A parent's row is of the same kind once its gradient has gained what the rows
below take along; rows below and above are fitted in turn.

Parents are added one by one, by what they gain on the half of the draws that wasn't fitted. The
first must set widths: a linear dependence is the metric's affair.
"""

from typing import NamedTuple

import numpy as np

from schuss.coordinates.hierarchical import Hierarchical
from schuss.tuning.metric import scales

MOST_PARENTS, CANDIDATES, TRIALS, MOST_DRAWS = 4, 8, 3, 800
LEAST_DRAWS = 64
LEAST_GAIN, LEAST_TOTAL, LEAST_SPREAD = 0.05, 0.3, 0.15
"""What a parent must gain on a row to count there, in all, and the |C| under which b is fitted."""

STRONG = 0.4
"""Widths that change by less than e^STRONG over a parent's deviation are left to the step size."""


KINDS = ("log", "root")


LEFT = 0.5
"""The share of the loss of the rows with a width that may be left for the map to be of use."""


class Links(NamedTuple):
    """Who depends on whom: parents in order, and for each row which set its place and width."""

    order: tuple[int, ...]
    place: np.ndarray  # (dim, MOST_PARENTS) of bool
    width: np.ndarray


def fit(x: np.ndarray, g: np.ndarray, rng: np.random.Generator) -> Hierarchical | None:
    """The map from draws and gradients (n, dim) in order of time, None where it isn't worth it."""
    x, g = _some(x, g, rng)
    if x.shape[1] < 3 or len(x) < LEAST_DRAWS:
        return None
    # Draws from far out may overflow in a trial; such a trial has an infinite loss.
    with np.errstate(all="ignore"):
        return _fit(x, g)


def _fit(x, g) -> Hierarchical | None:
    few = x[::2], g[::2]
    state = _nobody(*few)
    while len(state.links.order) < MOST_PARENTS:
        trials = [_fitted(*few, state.frame, links) for links in screen(*few, *state[:2])]
        trials = [trial for trial in trials if _worthwhile(few[0], trial)]
        best = min(trials, key=lambda trial: trial.loss, default=state)
        if not best.loss < state.loss - LEAST_TOTAL:
            break
        state = _without_any(*few, best)
    if not state.links.order:
        return None
    frame = _fit_rows(x, g, state.frame, state.links)
    frame = _anchored(x, g, Trial(frame, state.links, loss(x, g, frame)))
    spread = state.links.width.any(axis=1)
    before, after = (np.sum(row_losses(x, g, one), where=spread) for one in (_begin(x, g), frame))
    return frame if after < LEFT * before else None


def _worthwhile(x, trial) -> bool:
    """Whether at least two rows' widths change much over the spread of the first parent."""
    first = trial.frame.inverse(np, x) @ trial.frame.parents[0]
    return int(np.sum(np.abs(trial.frame.spread[:, 0]) * np.std(first) > STRONG)) >= 2


class Trial(NamedTuple):
    """A frame with its links, fitted, and its loss."""

    frame: Hierarchical
    links: Links
    loss: float


def _nobody(x, g) -> Trial:
    none = np.zeros((x.shape[1], MOST_PARENTS), bool)
    frame = _begin(x, g)
    return Trial(frame, Links((), none, none), loss(x, g, frame))


def _without_any(x, g, state: Trial) -> Trial:
    """Leave out a parent that the later ones have made superfluous, and begin again without it."""
    for k in state.links.order[:-1]:
        trial = _nobody(x, g)
        for one in state.links.order:
            if one == k:
                continue
            found = screen(x, g, trial.frame, trial.links, np.asarray([one]))
            if not found:
                break
            trial = _fitted(x, g, trial.frame, found[0])
        else:
            if trial.loss < state.loss + LEAST_TOTAL / 2:
                return _without_any(x, g, trial)
    return state


def loss(x: np.ndarray, g: np.ndarray, frame: Hierarchical) -> float:
    """Σ_j E log(1 + R_j²)."""
    return float(np.sum(row_losses(x, g, frame)))


def row_losses(x: np.ndarray, g: np.ndarray, frame: Hierarchical) -> np.ndarray:
    """E log(1 + R_j²) of every row."""
    z = frame.inverse(np, x)
    each = np.mean(_loss(z - frame.pull(np, z, g), "log"), axis=0)
    return np.nan_to_num(each, nan=np.inf)


def screen(
    x: np.ndarray,
    g: np.ndarray,
    frame: Hierarchical,
    links: Links,
    candidates: np.ndarray | None = None,
) -> list[Links]:
    """Links with one more parent, for the few that promise most and enough."""
    z = frame.inverse(np, x)
    w = frame.pull(np, z, g)
    if candidates is None:
        candidates = _candidates(x, z, w, links)
    if not len(candidates):
        return []
    known = (z @ frame.parents.T) @ frame.spread.T
    spread = np.asarray(np.any(links.width, axis=1))
    place, width = _gains(x, z, w, known - np.median(known, axis=0), candidates, spread)
    rows = np.arange(x.shape[1])
    # A row can follow whoever isn't itself or above it already.
    barred = (rows[:, None] == candidates) | np.isin(rows, links.order)[:, None]
    place, width = (np.where(barred | (part < LEAST_GAIN), 0.0, part) for part in (place, width))
    place = np.where(spread[:, None], place, 0.0)
    total = np.sum(width + place, axis=0)
    found = []
    for best in np.argsort(-total)[:TRIALS]:
        if total[best] < LEAST_TOTAL:
            break
        column = len(links.order)
        wide, placed = links.width.copy(), links.place.copy()
        wide[:, column] = width[:, best] > 0
        placed[:, column] = (place[:, best] > 0) & ~wide[:, column]
        found.append(Links((*links.order, int(candidates[best])), placed, wide))
    return found


def _some(x, g, rng):
    """At most so many draws, evenly spread in time from a random first one."""
    sound = np.isfinite(x).all(axis=1) & np.isfinite(g).all(axis=1)
    x, g = x[sound], g[sound]
    if len(x) <= MOST_DRAWS:
        return x, g
    at = np.sort(rng.choice(len(x), MOST_DRAWS, replace=False))
    return x[at], g[at]


def _begin(x, g) -> Hierarchical:
    dim = x.shape[1]
    nothing = np.zeros((dim, MOST_PARENTS))
    return Hierarchical(
        np.median(x, axis=0),
        np.log(scales(x, g)),
        nothing,
        nothing,
        np.zeros(dim),
        np.zeros(dim),
        np.zeros(MOST_PARENTS),
        nothing.T,
    )


def _candidates(x, z, w, links):
    """Coordinates along which widths change most, and those that spread rows lie along.

    A width is read off |z|/|∂E/∂z| and off 1/|∂E/∂z|, which a change of it moves most.
    """
    tiny = 1e-12
    spread, pull = (np.log(np.abs(part) + tiny) for part in (z, w))
    changes = _related(spread - pull, z) + _related(pull, z)
    spread_rows = links.width.any(axis=1)
    places = _related(x[:, spread_rows], x)
    found = [int(k) for k in np.argsort(-changes) if k not in links.order][:CANDIDATES]
    if spread_rows.any():
        ordered = [int(k) for k in np.argsort(-places) if k not in links.order]
        found += [k for k in ordered[:CANDIDATES] if k not in found]
    return np.asarray(found)


def _related(signals, z):
    """The sum over signals (n, rows) of their squared correlations with each column of z."""
    return np.sum((_standard(signals).T @ _standard(z) / len(z)) ** 2, axis=0)


def _standard(z):
    centred = z - np.median(z, axis=0)
    spread = np.maximum(np.std(centred, axis=0), 1e-300)
    return np.clip(centred / spread, -4, 4)


def _gains(x, z, w, known, candidates, spread):
    """What each candidate gains on each row by setting its place, and beyond that its width.

    Rows are as wide as the frame has them so far, e^`known`; places are in units of x, and only
    those of rows that are `spread` or gain a width are looked for.
    """
    dim, few = z.shape[1], len(candidates)
    rows, columns = np.repeat(np.arange(dim), few), np.tile(candidates, dim)
    place, width = (_standard(part).T[columns, :, None] for part in (x, z))
    nothing = z.T[..., None][..., :0]
    own = _Rows(z.T * np.exp(known.T), w.T * np.exp(-known.T), known.T, nothing, nothing)
    alone = np.repeat(_held_out(own), few)
    everything = own.rows(rows)._replace(place=place, width=width)
    none = place[..., :0]
    widened = _held_out(everything._replace(place=none))
    # Pairs without a gain have no need of the larger fits.
    placed, both = alone.copy(), widened.copy()
    tried = np.flatnonzero(alone - widened > LEAST_GAIN)
    if len(tried):
        both[tried] = _held_out(everything.rows(tried))
    tried = np.flatnonzero((alone - widened > LEAST_GAIN) | spread[rows])
    if len(tried):
        placed[tried] = _held_out(everything._replace(width=none).rows(tried))
    width = np.minimum(placed - both, alone - widened)
    return (alone - placed).reshape(dim, few), width.reshape(dim, few)


def _held_out(rows: "_Rows"):
    """The loss of each row on either half of the draws when the other half is fitted."""
    n = rows.x.shape[1]
    parts = (slice(0, n // 2), slice(n // 2, n))
    total = np.zeros(len(rows.x))
    start = np.zeros((len(rows.x), 2 + rows.place.shape[-1] + rows.width.shape[-1]))
    for train, test in (parts, parts[::-1]):
        theta = _solve(rows.draws(train), start, ("log",), 10)
        total += _loss(rows.draws(test).residual(theta), "log").mean(axis=1) / 2
    return total


class _Rows(NamedTuple):
    """Rows to be fitted: x, g and known log widths (rows, n), what sets their places and widths."""

    x: np.ndarray
    g: np.ndarray
    known: np.ndarray
    place: np.ndarray
    width: np.ndarray

    def draws(self, part):
        return _Rows(*(a[:, part] for a in self))

    def rows(self, part):
        return _Rows(*(a[part] for a in self))

    def residual(self, theta):
        return self._parts(theta)[0]

    def _parts(self, theta):
        """As the frame has it; the last two parameters, y and log λ, may be missing."""
        q, r = self.place.shape[-1], self.width.shape[-1]
        b, c, data = np.split(theta[:, 2:], [q, q + r], axis=1)
        a = self.known + theta[:, 1, None] + (self.width @ c[..., None])[..., 0]
        a = np.clip(a, -60, 60)
        place = theta[:, 0, None] + (self.place @ b[..., None])[..., 0]
        share, offset = np.ones_like(a), np.zeros_like(a)
        if data.shape[1]:
            share = 1 / (1 + np.exp(np.minimum(data[:, 1, None] + 2 * a, 60)))
            offset = data[:, 0, None] - place
            place = place + (1 - share) * offset
        grow = np.exp(a) * np.sqrt(share)
        ahead, pull = (self.x - place) / grow, self.g * grow
        return ahead - pull, ahead + pull, grow, share, offset

    def jacobian(self, theta):
        """The residual and its derivatives by m, s, b, C, and y and log λ where they are."""
        r, total, grow, share, offset = self._parts(theta)
        mine = 1 - share
        by_place = (-share / grow)[..., None]
        by_width = (-share * (2 * mine * offset / grow + total))[..., None]
        columns = [by_place, by_width, by_place * self.place, by_width * self.width]
        if theta.shape[1] > sum(column.shape[-1] for column in columns):
            by_weight = -mine * (share * offset / grow - 0.5 * total)
            columns += [(-mine / grow)[..., None], by_weight[..., None]]
        return r, np.concatenate(columns, axis=-1)


def _loss(r, kind):
    square = np.minimum(r * r, 1e200)
    if kind == "square":
        return square
    return np.log1p(square) if kind == "log" else np.sqrt(1 + square) - 1


def _solve(rows: _Rows, theta, kinds, iterations, free=None):
    """Minimise the losses one after the other; `free` (rows, parameters) says what may move."""
    identity = np.eye(theta.shape[1])
    free = np.ones(theta.shape) if free is None else free
    n = rows.x.shape[1]
    for kind in kinds:
        damping, idle = np.full(len(theta), 1e-2), 0
        loss = _loss(rows.residual(theta), kind).mean(axis=1)
        for _ in range(iterations):
            r, jac = rows.jacobian(theta)
            jac = np.clip(jac * free[:, None], -1e60, 1e60)
            square = np.minimum(r * r, 1e200)
            weight = (1 + square) ** {"log": -1.0, "root": -0.5, "square": 0.0}[kind]
            weighted = np.swapaxes(jac * weight[..., None], 1, 2)
            normal, slope = weighted @ jac / n, weighted @ r[..., None] / n
            diagonal = np.diagonal(normal, axis1=1, axis2=2) * damping[:, None] + 1e-12
            move = -np.linalg.solve(normal + identity * diagonal[..., None], slope)[..., 0]
            # A width changes by no more than a factor of e at once.
            move[:, 1] = np.clip(move[:, 1], -1, 1)
            trial = theta + move * free
            value = _loss(rows.residual(trial), kind).mean(axis=1)
            better = np.isfinite(value) & (value < loss)
            idle = 0 if np.any(loss - value > 1e-5) else idle + 1
            theta = np.where(better[:, None], trial, theta)
            loss = np.where(better, value, loss)
            damping = np.clip(np.where(better, damping / 5, damping * 5), 1e-6, 1e6)
            if idle == 2:
                break
    return theta


def _fitted(x, g, frame, links):
    """All rows of the frame fitted, and weak widths made places."""
    frame = _fit_rows(x, g, _with_parents(x, frame, links), links)
    heads = frame.inverse(np, x) @ frame.parents.T
    sizes = np.abs(frame.spread) * np.std(heads, axis=0)
    weak = links.width & (sizes < LEAST_SPREAD)
    if weak.any():
        links = links._replace(width=links.width & ~weak, place=links.place | weak)
        frame = frame._replace(spread=np.where(links.width, frame.spread, 0.0))
        frame = _fit_rows(x, g, frame, links)
    return Trial(frame, links, loss(x, g, frame))


def _with_parents(x, frame, links):
    parents, origin = np.zeros_like(frame.parents), frame.origin.copy()
    for i, k in enumerate(links.order):
        parents[i, k] = 1
        origin[i] = np.median(x[:, k])
    moved = frame.centre + frame.follow @ (origin - frame.origin)
    return frame._replace(parents=parents, origin=origin, centre=moved)


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
    tried = _fit_rows(x, g, tried, links)
    return tried if loss(x, g, tried) < trial.loss - 0.1 * LEAST_TOTAL else frame


def _fit_rows(x, g, frame, links, sweeps=3):
    rest = np.setdiff1d(np.arange(x.shape[1]), links.order)
    for _ in range(sweeps):
        frame = _fit_some(x, g, frame, links, rest)
        for k in reversed(links.order):
            z = frame.inverse(np, x)
            heads = z @ frame.parents.T
            width = frame.rows(np, x @ frame.parents.T, heads).width[:, k]
            effective = frame.pull(np, z, g)[:, k] / width
            frame = _fit_some(x, effective, frame, links, np.asarray([k]))
    return _fit_some(x, g, frame, links, rest)


def _fit_some(x, g, frame, links, which):
    """Fit the rows `which`; a parent's g is the one effective along x_k, as (n,)."""
    count = len(links.order)
    above = x @ frame.parents.T - frame.origin
    heads = frame.inverse(np, x) @ frame.parents.T
    shape = (len(which), len(x), count)
    rows = _Rows(
        x[:, which].T,
        g[None] if g.ndim == 1 else g[:, which].T,
        np.zeros((len(which), len(x))),
        np.broadcast_to(above[:, :count], shape),
        np.broadcast_to(heads[:, :count], shape),
    )
    anchored = frame.weight[which] > 0
    parts = [
        frame.centre[which, None],
        frame.log_scale[which, None],
        frame.follow[which, :count],
        frame.spread[which, :count],
        frame.anchor[which, None],
        np.log(np.where(anchored, frame.weight[which], 1e-100))[:, None],
    ]
    always = np.ones((len(which), 2))
    free = [always, links.place[which, :count], links.width[which, :count]]
    if anchored.any():
        free.append(anchored[:, None] * always)
    else:
        parts = parts[:4]
    theta = _solve(rows, np.concatenate(parts, axis=1), KINDS, 10, np.concatenate(free, axis=1))
    centre, log_scale, follow, spread, anchor, weight = (np.array(part) for part in frame[:6])
    centre[which], log_scale[which] = theta[:, 0], theta[:, 1]
    follow[which, :count], spread[which, :count] = (
        theta[:, 2 : 2 + count],
        theta[:, 2 + count : 2 + 2 * count],
    )
    if anchored.any():
        anchor[which] = theta[:, -2]
        weight[which] = np.where(anchored, np.exp(theta[:, -1]), 0.0)
    return frame._replace(
        centre=centre,
        log_scale=log_scale,
        follow=follow,
        spread=spread,
        anchor=anchor,
        weight=weight,
    )
