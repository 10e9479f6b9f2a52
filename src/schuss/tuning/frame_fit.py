"""A hierarchical map whose links are given, fitted to draws and their gradients.

A parent's row is of the same kind as the others once its gradient has gained what the rows below
take along; rows below and above are fitted in turn.
"""

from typing import NamedTuple

import numpy as np

from schuss.coordinates import Frame, Hierarchical
from schuss.tuning.metric import scales
from schuss.tuning.row_fit import Rows, robust, solve

MOST_PARENTS = 4

LEAST_SPREAD = 0.15
"""The |C| times a parent's deviation under which b is fitted instead."""

STILL = 0.01
"""Parents that have moved by less, in units of their deviations, leave the rows below as they are.
"""

KINDS = ("log", "root")
"""The losses that are made small, one after the other."""


class Links(NamedTuple):
    """Who depends on whom: parents in order, and for each row which set its place and width."""

    order: tuple[int, ...]
    place: np.ndarray  # (dim, MOST_PARENTS) of bool
    width: np.ndarray


class Trial(NamedTuple):
    """A frame with its links, fitted, and its loss."""

    frame: Hierarchical
    links: Links
    loss: float


def loss(x: np.ndarray, g: np.ndarray, frame: Hierarchical) -> float:
    """Σ_j E log(1 + R_j²)."""
    return float(np.sum(row_losses(x, g, frame)))


def row_losses(x: np.ndarray, g: np.ndarray, frame: Frame) -> np.ndarray:
    """E log(1 + R_j²) of every row."""
    z = frame.inverse(np, x)
    each = np.mean(robust(z - frame.pull(np, z, g), "log"), axis=0)
    return np.nan_to_num(each, nan=np.inf)


def begin(x: np.ndarray, g: np.ndarray) -> Hierarchical:
    """Medians and scales alone."""
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


def without_parents(x: np.ndarray, g: np.ndarray) -> Trial:
    """The frame in which no coordinate depends on another."""
    none = np.zeros((x.shape[1], MOST_PARENTS), bool)
    frame = begin(x, g)
    return Trial(frame, Links((), none, none), loss(x, g, frame))


def fitted(x: np.ndarray, g: np.ndarray, frame: Hierarchical, links: Links) -> Trial:
    """All rows of the frame fitted, and weak widths made places."""
    frame = fit_rows(x, g, _with_parents(x, frame, links), links)
    heads = _heads(frame, x)
    sizes = np.abs(frame.spread) * np.std(heads, axis=0)
    weak = links.width & (sizes < LEAST_SPREAD)
    if weak.any():
        links = links._replace(width=links.width & ~weak, place=links.place | weak)
        frame = frame._replace(spread=np.where(links.width, frame.spread, 0.0))
        frame = fit_rows(x, g, frame, links)
    return Trial(frame, links, loss(x, g, frame))


def _with_parents(x, frame, links):
    parents, origin = np.zeros_like(frame.parents), frame.origin.copy()
    for i, k in enumerate(links.order):
        parents[i, k] = 1
        origin[i] = np.median(x[:, k])
    moved = frame.centre + frame.follow @ (origin - frame.origin)
    return frame._replace(parents=parents, origin=origin, centre=moved)


def fit_rows(
    x: np.ndarray, g: np.ndarray, frame: Hierarchical, links: Links, sweeps: int = 3
) -> Hierarchical:
    """The rows of all others and, one by one, those of the parents, a few times in turn."""
    rest = np.setdiff1d(np.arange(x.shape[1]), links.order)
    for _ in range(sweeps):
        frame = _fit_some(x, g, frame, links, rest)
        before = _heads(frame, x)
        for k in reversed(links.order):
            z = frame.inverse(np, x)
            heads = z @ frame.parents.T
            width = frame.rows(np, x @ frame.parents.T, heads).width[:, k]
            effective = frame.pull(np, z, g)[:, k] / width
            frame = _fit_some(x, effective, frame, links, np.asarray([k]))
        if np.mean(np.abs(_heads(frame, x) - before)) < STILL:
            return frame
    return _fit_some(x, g, frame, links, rest)


def _heads(frame, x):
    """The parents' z."""
    return frame.inverse(np, x) @ frame.parents.T


def _fit_some(x, g, frame, links, which):
    """Fit the rows `which`; a parent's g is the one effective along x_k, as (n,)."""
    count = len(links.order)
    above = x @ frame.parents.T - frame.origin
    heads = _heads(frame, x)
    rows = Rows(
        x[:, which].T,
        g[None] if g.ndim == 1 else g[:, which].T,
        np.zeros((len(which), len(x))),
        above[:, :count],
        heads[:, :count],
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
    theta = solve(rows, np.concatenate(parts, axis=1), KINDS, 10, np.concatenate(free, axis=1))
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
