"""Which coordinates make the gradient linear in all others, once they are given.

A search by least squares on draws and their gradients: likely coordinates first, alone and in
pairs. What may be given is told by what isn't linear without it.
"""

import itertools
from collections.abc import Iterator

import numpy as np

from schuss.tuning.pilot import unit

RATES = (-2, -1, 1, 2)
"""ρ: given may be the logarithm of a deviation, a variance, a precision or its root."""

CANDIDATES, LEADERS, PARTNERS = 4, 2, 2
"""Coordinates that are tried alone, by either of two signs; those of them that are tried as the
first of a pair, and those that are tried as its second."""

ROWS = 16
"""Rows of the gradient that tell of a partner."""

TRAINED, SPARE = 0.6, 32
"""The share of the draws, the first of them, that is fitted, and how many more than there are
unknowns: without noise a few are enough, and many take long."""

EXACT = 1e-4
"""What may be left of a gradient, as a share of its deviation."""


def trials(x: np.ndarray, g: np.ndarray) -> Iterator[tuple[tuple[int, ...], int]]:
    """Given coordinates and their rate that leave nothing of the gradient, one alone first."""
    likely = _candidates(x, g)
    alone = (((k,), rate) for k in likely for rate in RATES)
    pairs = (
        ((k, other), rate)
        for k in likely[:LEADERS]
        for rate in RATES
        for other in _partners(x, g, k, rate)
    )
    for given, rate in itertools.chain(alone, pairs):
        if _left(x, g, given, rate) < EXACT:
            yield given, rate


def _candidates(x, g):
    """Those that might be given, likely ones first.

    Their own gradients are least linear, quadratics of all that they set the scale of; and what
    isn't linear in the others' gradients goes with these, larger or smaller along what is given.
    """
    design = np.concatenate([np.ones((len(x), 1)), x], axis=1)
    line = design @ solved(design, g)
    bent = np.var(g - line, axis=0) / np.maximum(np.var(g, axis=0), 1e-300)
    if not np.max(bent) > EXACT**2:
        return []
    off, h = unit(g - line), unit(x)
    along = [np.mean(np.mean(off * unit(one[:, None] * line), axis=0) ** 2) for one in h.T]
    orders = (np.argsort(part)[::-1][:CANDIDATES] for part in (np.asarray(along), bent))
    return list(dict.fromkeys(int(k) for pair in zip(*orders, strict=True) for k in pair))


def _partners(x, g, k, rate):
    """Those along which what is left of the gradient given k goes with place and force.

    Of the rows where most is left, each is compared with the products of a coordinate with 1, with
    the row's own coordinate and with its force, less what is explained already.
    """
    some = _spaced(0, len(x), 4 * x.shape[1] + SPARE)
    x, g = x[some], g[some]
    design, rest = products(x, (k,), rate)
    if not np.isfinite(design).all():
        return []
    q, g = np.linalg.qr(_scaled(design)[0])[0], g[:, rest]
    off = g - q @ (q.T @ g)
    most = np.argsort(np.var(off, axis=0) / np.maximum(np.var(g, axis=0), 1e-300))[-ROWS:]
    off, force, h = off[:, most], unit((g - off)[:, most]), unit(x)
    own, total = h[:, rest[most]], np.maximum(np.sum(off**2, axis=0), 1e-300)
    found = []
    for other in rest:
        tried = h[:, other, None, None] * np.stack([np.ones_like(own), own, force], axis=2)
        flat = tried.reshape(len(x), -1)
        tried = (flat - q @ (q.T @ flat)).reshape(tried.shape)
        square = np.einsum("nri,nrj->rij", tried, tried)
        # Where products are alike, or nothing but what is explained, nothing is divided by.
        square += (1e-9 * np.trace(square, axis1=1, axis2=2)[:, None, None] + 1e-300) * np.eye(3)
        along = np.einsum("nri,nr->ri", tried, off)
        gained = np.sum(along * np.linalg.solve(square, along[..., None])[..., 0], axis=1)
        found.append(np.mean(np.where(rest[most] == other, 0.0, gained / total)))
    return [int(one) for one in rest[np.argsort(found)[::-1][:PARTNERS]]]


def products(x: np.ndarray, given: tuple[int, ...], rate: float) -> tuple[np.ndarray, np.ndarray]:
    """φ_f and φ_f x_c of all forms, φ = 1 at the middle, (n, forms·(1 + rest)), and the rest."""
    rest = np.setdiff1d(np.arange(x.shape[1]), given)
    away = x[:, given] - np.median(x[:, given], axis=0)
    forms = np.concatenate([np.ones((len(x), 1)), np.exp(rate * away)], axis=1)
    columns = np.concatenate([np.ones((len(x), 1)), x[:, rest]], axis=1)
    return (forms[:, :, None] * columns[:, None]).reshape(len(x), -1), rest


def solved(design: np.ndarray, g: np.ndarray) -> np.ndarray:
    """Least squares; not a number where columns depend on each other."""
    design, size = _scaled(design)
    q, r = np.linalg.qr(design)
    try:
        return np.linalg.solve(r, q.T @ g) / size[:, None]
    except np.linalg.LinAlgError:
        return np.full((design.shape[1], g.shape[1]), np.nan)


def _scaled(design):
    """Columns of one size, and what they were divided by."""
    size = np.maximum(np.sqrt(np.mean(design**2, axis=0)), 1e-300)
    return design / size, size


def _left(x, g, given, rate):
    """What is left of the worst row of the gradient on draws that weren't fitted, later ones."""
    design, rest = products(x, given, rate)
    if not np.isfinite(design).all():
        return np.inf
    n, spread = int(TRAINED * len(x)), np.maximum(g[:, rest].std(axis=0), 1e-300)
    early, late = _spaced(0, n, design.shape[1] + SPARE), _spaced(n, len(x), 2 * SPARE)
    off = g[np.ix_(late, rest)] - design[late] @ solved(design[early], g[np.ix_(early, rest)])
    left = np.max(np.sqrt(np.mean(off**2, axis=0)) / spread)
    return float(np.nan_to_num(left, nan=np.inf))


def _spaced(first, last, most):
    """At most so many numbers from `first` up to `last`, at equal distances."""
    return np.linspace(first, last - 1, min(most, last - first)).astype(int)
