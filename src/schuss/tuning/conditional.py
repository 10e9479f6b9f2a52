"""Coordinates that are normal once others are given, from draws and their gradients.

Given the logarithms of its scales a linear model is normal, and its gradient is linear:

    ∂E/∂x_c = Σ_f φ_f (A_f x_c − b_f),    φ_f = e^(ρθ) of a given coordinate θ, or constant.

A gradient has no noise, so that least squares on a few more draws than there are unknowns find A
and b to the last digits, wherever the draws are, and what is right in the middle is right in necks
that no chain has been to. Where θ isn't what sets the scale, or the rest isn't normal, something is
left over on the draws that weren't fitted, and there is no map. The forms A_f are made diagonal
together, two of them always, more where they allow it.
"""

import itertools

import numpy as np

from schuss.coordinates import Conditional, Frame
from schuss.tuning.pilot import pilot
from schuss.tuning.row_fit import robust

FORMS = 3
"""A constant one, and those of at most two given coordinates."""

MOST_DIM = 100
"""Beyond it a search would take seconds."""

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

KNOWN = 10
"""How much larger than its error a precision must be to be more than none."""

LEFT, WRONG = 0.05, 0.3
"""The loss in a coordinate of the map for it to be taken, and to be kept."""

WORTH = 0.1
"""The loss in a coordinate, on average, with what is given held fixed: below it the target is
close enough to normal as it is."""


def least(dim: int) -> int:
    """Draws that are needed: half as many again as the unknowns of a row among those fitted."""
    return int(np.ceil(1.5 * FORMS * dim / TRAINED))


def fit(x: np.ndarray, g: np.ndarray, rng: np.random.Generator) -> Conditional | None:
    """The map from draws and gradients (n, dim) in order of time, None where there is none."""
    dim = x.shape[1]
    chosen = pilot(x, g, rng) if 3 <= dim <= MOST_DIM else None
    if chosen is None or len(chosen[0]) < least(dim):
        return None
    x, g = chosen
    with np.errstate(all="ignore"):
        for given, rate in _trials(x, g):
            frame = _frame(x, g, given, rate)
            if frame is not None:
                return frame if _useful(x, g, frame) else None
    return None


def loss(x: np.ndarray, g: np.ndarray, frame: Frame) -> float:
    """Σ_j E log(1 + R_j²) of what isn't given, in any map."""
    return float(np.sum(_losses(x, g, frame)))


def wrong(x: np.ndarray, g: np.ndarray, frame: Conditional) -> bool:
    """Whether draws (n, dim) from elsewhere show that a coordinate isn't normal."""
    with np.errstate(all="ignore"):
        return not bool(np.all(_losses(x, g, frame) < WRONG))


def _losses(x, g, frame):
    """E log(1 + R²), R = z − ∂E/∂z, of every coordinate that isn't given."""
    z = frame.inverse(np, x)
    each = robust(z - frame.pull(np, z, g), "log").mean(axis=0)
    return np.where(_given(frame), 0.0, np.nan_to_num(each, nan=np.inf))


def _given(frame):
    """Which coordinates are, (dim,) of bool; none in maps of other kinds."""
    return frame.leaders if isinstance(frame, Conditional) else np.zeros(1, bool)


def _useful(x, g, frame):
    """Whether little is left, and much would be with what is given at its middle."""
    middle = np.exp(np.median(x, axis=0) @ frame.rate.T)[:, None]
    still = frame._replace(
        precision=frame.precision * middle, pull_to=frame.pull_to * middle, rate=0 * frame.rate
    )
    before = np.mean(_losses(x, g, still), where=~_given(frame))
    return bool(before > WORTH and np.all(_losses(x, g, frame) < LEFT))


def _trials(x, g):
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
    line = design @ _solved(design, g)
    bent = np.var(g - line, axis=0) / np.maximum(np.var(g, axis=0), 1e-300)
    if not np.max(bent) > EXACT**2:
        return []
    off, h = _unit(g - line), _unit(x)
    along = [np.mean(np.mean(off * _unit(one[:, None] * line), axis=0) ** 2) for one in h.T]
    orders = (np.argsort(part)[::-1][:CANDIDATES] for part in (np.asarray(along), bent))
    return list(dict.fromkeys(int(k) for pair in zip(*orders, strict=True) for k in pair))


def _partners(x, g, k, rate):
    """Those along which what is left of the gradient given k goes with place and force.

    Of the rows where most is left, each is compared with the products of a coordinate with 1, with
    the row's own coordinate and with its force, less what is explained already.
    """
    some = _spaced(0, len(x), 4 * x.shape[1] + SPARE)
    x, g = x[some], g[some]
    design, rest = _design(x, (k,), rate)
    if not np.isfinite(design).all():
        return []
    q, g = np.linalg.qr(_scaled(design)[0])[0], g[:, rest]
    off = g - q @ (q.T @ g)
    most = np.argsort(np.var(off, axis=0) / np.maximum(np.var(g, axis=0), 1e-300))[-ROWS:]
    off, force, h = off[:, most], _unit((g - off)[:, most]), _unit(x)
    own, total = h[:, rest[most]], np.maximum(np.sum(off**2, axis=0), 1e-300)
    found = []
    for other in rest:
        products = h[:, other, None, None] * np.stack([np.ones_like(own), own, force], axis=2)
        flat = products.reshape(len(x), -1)
        products = (flat - q @ (q.T @ flat)).reshape(products.shape)
        square = np.einsum("nri,nrj->rij", products, products)
        # Where products are alike, or nothing but what is explained, nothing is divided by.
        square += (1e-9 * np.trace(square, axis1=1, axis2=2)[:, None, None] + 1e-300) * np.eye(3)
        along = np.einsum("nri,nr->ri", products, off)
        gained = np.sum(along * np.linalg.solve(square, along[..., None])[..., 0], axis=1)
        found.append(np.mean(np.where(rest[most] == other, 0.0, gained / total)))
    return [int(one) for one in rest[np.argsort(found)[::-1][:PARTNERS]]]


def _unit(x):
    centred = x - x.mean(axis=0)
    return centred / np.maximum(centred.std(axis=0), 1e-300)


def _design(x, given, rate):
    """φ_f and φ_f x_c of all forms, each φ one at the middle, (n, forms·(1 + rest))."""
    rest = np.setdiff1d(np.arange(x.shape[1]), given)
    away = x[:, given] - np.median(x[:, given], axis=0)
    forms = np.concatenate([np.ones((len(x), 1)), np.exp(rate * away)], axis=1)
    columns = np.concatenate([np.ones((len(x), 1)), x[:, rest]], axis=1)
    return (forms[:, :, None] * columns[:, None]).reshape(len(x), -1), rest


def _solved(design, g):
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
    design, rest = _design(x, given, rate)
    if not np.isfinite(design).all():
        return np.inf
    n, spread = int(TRAINED * len(x)), np.maximum(g[:, rest].std(axis=0), 1e-300)
    early, late = _spaced(0, n, design.shape[1] + SPARE), _spaced(n, len(x), 2 * SPARE)
    off = g[np.ix_(late, rest)] - design[late] @ _solved(design[early], g[np.ix_(early, rest)])
    left = np.max(np.sqrt(np.mean(off**2, axis=0)) / spread)
    return float(np.nan_to_num(left, nan=np.inf))


def _spaced(first, last, most):
    """At most so many numbers from `first` up to `last`, at equal distances."""
    return np.linspace(first, last - 1, min(most, last - first)).astype(int)


def _frame(x, g, given, rate) -> Conditional | None:
    """The map for forms that leave nothing; None where they aren't those of a density."""
    design, rest = _design(x, given, rate)
    dim, g = x.shape[1], g[:, rest]
    a, b = _forms(design, g)
    vectors = _diagonalised(a)
    if vectors is None:
        return None
    halves = (_forms(design[i::2], g[i::2])[0] for i in (0, 1))
    own, first, second = (np.einsum("ji,fjk,ki->fi", vectors, f, vectors) for f in (a, *halves))
    # Deep in a neck one form is all there is to see, and others drown in its rounding errors.
    known = np.abs(own) > KNOWN * np.abs(first - second)
    if not (np.all(own[known] > -EXACT) and np.all(np.sum(own, axis=0, where=known) > 0.5)):
        return None
    known = known & (own > 0)
    precision, pull_to, rates = np.zeros((3, FORMS, dim))
    shape = slice(len(own)), rest
    precision[shape], pull_to[shape] = known * own, known * (b @ vectors)
    precision[0, given] = 1
    rates[1 : len(own), given] = rate * np.eye(len(given))
    # φ is one at the origin of the map, where it was one at the middle of the draws.
    middle = np.exp(-rates @ np.median(x, axis=0))[:, None]
    whole, inverted = np.eye(dim), np.eye(dim)
    whole[np.ix_(rest, rest)] = vectors
    inverted[np.ix_(rest, rest)] = np.linalg.inv(vectors)
    return Conditional(whole, inverted, precision * middle, pull_to * middle, rates)


def _forms(design, g):
    """A_f and b_f by least squares, (forms, rest, rest) and (forms, rest)."""
    found = _solved(design, g).reshape(-1, 1 + g.shape[1], g.shape[1])
    return (found[:, 1:] + found[:, 1:].swapaxes(1, 2)) / 2, -found[:, 0]


def _diagonalised(a):
    """V with VᵀA_fV diagonal for all forms where they allow it, and VᵀΣA_fV = 1."""
    try:
        lower = np.linalg.cholesky(a.sum(axis=0))
        root = np.linalg.inv(lower).T
        # Where directions are alike in one form another one tells them apart.
        mixed = np.einsum("f,fij->ij", np.sqrt(1 + np.arange(len(a))), a)
        return root @ np.linalg.eigh(root.T @ mixed @ root)[1]
    except np.linalg.LinAlgError:
        return None
