"""Which coordinate might be one more parent: by what it gains on the draws that weren't fitted."""

import numpy as np

from schuss.coordinates.hierarchical import Hierarchical
from schuss.tuning.frame_fit import Links
from schuss.tuning.row_fit import Rows, held_out_loss

CANDIDATES, TRIALS = 8, 3
"""Coordinates that are looked at, and those of them that are worth a fit."""

LEAST_GAIN, LEAST_TOTAL = 0.05, 0.3
"""What a parent must gain on a row to count there, and in all."""


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
    own = Rows(z.T * np.exp(known.T), w.T * np.exp(-known.T), known.T, nothing, nothing)
    alone = np.repeat(held_out_loss(own), few)
    everything = own.rows(rows)._replace(place=place, width=width)
    none = place[..., :0]
    widened = held_out_loss(everything._replace(place=none))
    # Pairs without a gain have no need of the larger fits.
    placed, both = alone.copy(), widened.copy()
    tried = np.flatnonzero(alone - widened > LEAST_GAIN)
    if len(tried):
        both[tried] = held_out_loss(everything.rows(tried))
    tried = np.flatnonzero((alone - widened > LEAST_GAIN) | spread[rows])
    if len(tried):
        placed[tried] = held_out_loss(everything._replace(width=none).rows(tried))
    width = np.minimum(placed - both, alone - widened)
    return (alone - placed).reshape(dim, few), width.reshape(dim, few)
