"""Coordinates that are normal once others are given, from draws and their gradients.

Given the logarithms of its scales a linear model is normal, and its gradient is linear:

    ∂E/∂x_c = Σ_f φ_f (A_f x_c − b_f),    φ_f = e^(ρθ) of a given coordinate θ, or constant.

A gradient has no noise, so that least squares on a few more draws than there are unknowns find A
and b to the last digits, wherever the draws are, and what is right in the middle is right in necks
that no chain has been to. Where θ isn't what sets the scale, or the rest isn't normal, something is
left over on the draws that weren't fitted, and there is no map. The forms A_f are made diagonal
together, two of them always, more where they allow it.
"""

import numpy as np

from schuss.coordinates import Conditional, Frame
from schuss.tuning.frame_fit import row_losses
from schuss.tuning.linear_given import EXACT, TRAINED, products, solved, trials
from schuss.tuning.pilot import pilot

FORMS = 3
"""A constant one, and those of at most two given coordinates."""

MOST_DIM = 100
"""Beyond it a search would take seconds."""

KNOWN = 10
"""How much larger than its error a precision must be to be more than none."""

ALIKE, LARGE = 1e-8, 0.46
"""Eigenvalues that are taken for one, and the part of the largest length that is large too: not a
simple fraction, which lengths may be of each other."""

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
        for given, rate in trials(x, g):
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
    return np.where(_given(frame), 0.0, row_losses(x, g, frame))


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


def _frame(x, g, given, rate) -> Conditional | None:
    """The map for forms that leave nothing; None where they aren't those of a density."""
    design, rest = products(x, given, rate)
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
    found = solved(design, g).reshape(-1, 1 + g.shape[1], g.shape[1])
    return (found[:, 1:] + found[:, 1:].swapaxes(1, 2)) / 2, -found[:, 0]


def _diagonalised(a):
    """V with VᵀA_fV diagonal for all forms where they allow it, and VᵀΣA_fV = 1."""
    try:
        root = np.linalg.inv(np.linalg.cholesky(a.sum(axis=0))).T
        # Where directions are alike in one form another one tells them apart.
        mixed = np.einsum("f,fij->ij", np.sqrt(1 + np.arange(len(a))), a)
        return root @ _settled(*np.linalg.eigh(root.T @ mixed @ root))
    except np.linalg.LinAlgError:
        return None


def _settled(values, vectors):
    """Eigenvectors that no rounding error can turn, among those that are alike or to −v.

    Of equal values the axis that lies in their span for the larger part and comes first gives the
    first vector, what is left of the span the others.
    """
    apart = np.flatnonzero(np.diff(values) > ALIKE) + 1
    found = []
    for span in np.split(vectors, apart, axis=1):
        left = span
        for _ in span.T:
            size = np.linalg.norm(left, axis=1)
            axis = np.argmax(size > LARGE * size.max())
            found.append(left @ (left[axis] / size[axis]))
            left = left - np.outer(found[-1], found[-1] @ left)
    return np.stack(found, axis=1)
