"""Curved ridges from draws and their gradients: which coordinates lie along parabolas over others.

A coordinate that is normal around m + b h + q h², h another one from its middle, has the residual
R = (x − m − b h − q h²)/s − s ∂E/∂x = 0 (`row_fit`), wherever the draws are, once its gradient has
gained what those who follow it take along. So who is followed by nobody is found first, and those
whom it follows after it. Pairs are looked for by the correlation of one coordinate with the square
of another, and taken where next to nothing is left of the residual on the half of the draws that
wasn't fitted, those far out among them: a parabola that is only roughly right goes wrong where no
draw has been, and steps that are right in the middle of its coordinates are too long there.
"""

import math

import numpy as np

from schuss.coordinates.curved import Curved
from schuss.tuning import metric
from schuss.tuning.pilot import pilot, unit
from schuss.tuning.row_fit import Rows, held_out, robust, solve

LEAST_CORRELATION = 0.2
"""Of a coordinate with the square of another: below it the ridge is straight enough."""

CANDIDATES = 3
"""Squares that are tried for each coordinate."""

LEAST_GAIN = 0.05
"""What a parabola must take from the loss of a straight line."""

LEFT, WRONG = 0.05, 0.3
"""The loss that a parabola may leave for it to be taken, and to be kept."""

OUTER = 0.1
"""The share of draws, those farthest out, of which this is asked too."""

WORTH = 0.5
"""The share of the loss of all coordinates that may be left for the map to be of use."""


def fit(x: np.ndarray, g: np.ndarray, rng: np.random.Generator) -> Curved | None:
    """The map from draws and gradients (n, dim) in order of time, None where it isn't worth it."""
    chosen = pilot(x, g, rng)
    if chosen is None or not 3 <= x.shape[1] <= metric.DENSEST:
        return None
    x, g = chosen
    frame = straight = _straight(x)
    # Draws from far out may overflow; such a parabola has no loss that is small.
    with np.errstate(all="ignore"):
        while (links := _links(x, g, frame)).any():
            bent = _bent(x, g, frame, links)
            # Of draws from far out a parabola may be found in halves that all of them don't have.
            if np.count_nonzero(bent.curve) == np.count_nonzero(frame.curve):
                break
            frame = bent
        useful = loss(x, g, frame) < WORTH * loss(x, g, straight)
    return frame if useful else None


def loss(x: np.ndarray, g: np.ndarray, frame: Curved) -> float:
    """Σ_j E log(1 + R_j²) in the coordinates of the frame, each scaled."""
    return float(np.sum(_losses(x, g, frame).mean(axis=1)))


def wrong(x: np.ndarray, g: np.ndarray, frame: Curved) -> bool:
    """Whether draws (n, dim) from farther out show that a parabola isn't one."""
    with np.errstate(all="ignore"):
        rows, columns = np.nonzero(frame.curve)
        return bool(np.any(_farthest(_losses(x, g, frame)[rows], x.T[columns]) > WRONG))


def _losses(x, g, frame):
    """log(1 + R²) of every row in the coordinates of the frame, each scaled, (dim, n)."""
    z = frame.inverse(np, x)
    own = _own(z, frame.pull(np, z, g), np.arange(x.shape[1]))
    return np.nan_to_num(robust(own.x - own.g, "log"), nan=np.inf)


def _farthest(losses, followed):
    """The mean of rows' losses where those whom they follow, (rows, n), are far from the middle."""
    out = np.abs(followed - np.median(followed, axis=1, keepdims=True))
    far = np.argsort(-out, axis=1)[:, : math.ceil(OUTER * out.shape[1])]
    return np.take_along_axis(losses, far, axis=1).mean(axis=1)


def _straight(x) -> Curved:
    nothing = np.zeros((x.shape[1], x.shape[1]))
    return Curved(np.median(x, axis=0), nothing, nothing, np.zeros(0))


def _links(x, g, frame):
    """Who follows whom from now on, (dim, dim) of bool: the best pairs first, and no circles."""
    follows = frame.curve != 0
    links = np.zeros_like(follows)
    rows, columns = _candidates(x, ~follows.any(axis=1))
    if not len(rows):
        return links
    left = _left(x, frame.pull(np, frame.inverse(np, x), g), rows, columns)
    for pair in np.argsort(left):
        j, k = rows[pair], columns[pair]
        # Who is found to be followed has a gradient that is another one from the next round on.
        if not left[pair] <= LEFT or links[:, j].any():
            continue
        if not links[k].any() and not links[j].any() and not _line(follows | links)[k, j]:
            links[j, k] = True
    return links


def _line(follows):
    """Whether one follows another, directly or by way of others."""
    reached = follows.astype(int)
    for _ in range(len(follows).bit_length()):
        reached = np.minimum(reached + reached @ reached, 1)
    return reached > 0


def _candidates(x, free):
    """Pairs of a coordinate that is free and another with whose square it goes."""
    line, square = _columns(x)
    # What a straight line over the other explains isn't the square's.
    straight, bent = (np.abs(line.T @ part) / len(x) for part in (line, square))
    bent = bent / np.sqrt(np.maximum(1 - straight**2, 1e-6))
    np.fill_diagonal(bent, 0.0)
    bent = np.where(free[:, None], bent, 0.0)
    columns = np.argsort(-bent, axis=1)[:, :CANDIDATES]
    rows, columns = np.repeat(np.arange(len(bent)), columns.shape[1]), columns.ravel()
    enough = bent[rows, columns] > LEAST_CORRELATION
    return rows[enough], columns[enough]


def _columns(x):
    """Each coordinate scaled, and its square less what is linear in it, scaled too."""
    line = unit(x)
    square = line**2
    return line, unit(square - line * (line * square).mean(axis=0))


def _left(x, g, rows, columns):
    """The loss that parabolas leave on held-out draws, for each pair; ∞ where lines do as well."""
    line, square = (part.T[columns, :, None] for part in _columns(x))
    straight = _own(x, g, rows)._replace(place=line)
    parabola = straight._replace(place=np.concatenate([line, square], axis=-1))
    before, after = (robust(held_out(one), "log") for one in (straight, parabola))
    left = np.maximum(after.mean(axis=1), _farthest(after, x.T[columns]))
    return np.where(before.mean(axis=1) - left > LEAST_GAIN, left, np.inf)


def _own(x, g, rows) -> Rows:
    """Rows without anybody to follow, scaled."""
    s = metric.scales(x, g)
    z, w = ((x - np.median(x, axis=0)) / s).T[rows], (g * s).T[rows]
    return Rows(z, w, np.zeros_like(z), np.zeros((len(x), 0)), np.zeros((len(x), 0)))


def _bent(x, g, frame, links) -> Curved:
    """The frame with more rows that follow someone."""
    g = frame.pull(np, frame.inverse(np, x), g)
    heads, rows = np.flatnonzero(links.any(axis=0)), np.flatnonzero(links.any(axis=1))
    width = x[:, heads].std(axis=0)
    h = (x[:, heads] - frame.origin[heads]) / width
    own = _own(x, g, rows)._replace(place=np.concatenate([h, h * h], axis=1))
    free = links[np.ix_(rows, heads)].astype(float)
    free = np.concatenate([np.ones((len(rows), 2)), free, free], axis=1)
    theta = solve(own, np.zeros_like(free), ("log", "root"), 20, free)
    b, q = np.split(theta[:, 2:] * metric.scales(x, g)[rows, None], 2, axis=1)
    follow, curve = frame.follow.copy(), frame.curve.copy()
    follow[np.ix_(rows, heads)] = b / width
    curve[np.ix_(rows, heads)] = q / width**2
    return Curved(frame.origin, follow, curve, np.zeros(_longest(curve != 0)))


def _longest(follows):
    """Links in the longest line of those who follow each other."""
    lines, count = follows.astype(int), 0
    while lines.any() and count < len(follows):
        lines, count = np.minimum(lines @ follows, 1), count + 1
    return count
