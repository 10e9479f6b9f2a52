"""Effective sample size and R-hat of many columns at once, equal to ArviZ's, column by column.

Each chain is cut into two halves of n draws, m halves in all. With ĉ_t the autocovariance at lag t
averaged over the halves, by FFT, W = ĉ_0 n/(n − 1) and V = ĉ_0 + Var(means of the halves),

    ρ_t = 1 − (W − ĉ_t)/V        R̂² = V/W
    P_k = ρ_2k + ρ_2k+1, kept while positive and made to fall       (Geyer)
    ESS = mn / max(−1 + 2 Σ_{k<K} P_k + ρ_2K, 1/log10(mn)).

With weights w, a column x is replaced by the influence φ = w (x − x̂)/mean(w) of its draws on
x̂ = Σ w x / Σ w, and ESS is the number of independent unweighted draws that say as much,
(Σ w (x − x̂)²/Σ w)/mean(φ²) · ESS(φ).
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from schuss.diagnostics.inputs import Array, path_array, weight_array

ENTRIES = 1 << 18
"""Entries of the columns worked on at once: few enough to stay in the cache."""

LINE = 8
"""Columns that are read at once, which memory hands out together."""


class Pair(NamedTuple):
    """Effective sample size and R-hat of each column."""

    ess: Array
    rhat: Array


def fast_ess(x: ArrayLike, weights: ArrayLike | None = None) -> Array:
    """ESS of the mean of each column of `x` (draws, chains, dim), shape (dim,).

    ArviZ's `ess(method="mean")`. A column that never varies has ESS 0.
    """
    return ess_and_rhat(x, weights).ess


def fast_rhat(x: ArrayLike, weights: ArrayLike | None = None) -> Array:
    """Split R-hat of each column of `x` (draws, chains, dim), shape (dim,).

    ArviZ's `rhat(method="split")`. A single chain is cut in two first; a column that never varies
    has R-hat ∞.
    """
    x, w = _inputs(x, weights)
    if x.shape[1] == 1:
        x, w = _two_chains(x), None if w is None else _two_chains(w)
    return _collect(x, w).rhat


def ess_and_rhat(x: ArrayLike, weights: ArrayLike | None = None) -> Pair:
    """`fast_ess` and split R-hat in one pass; the halves of a single chain serve as its chains."""
    return _collect(*_inputs(x, weights))


def rank_ess(x: ArrayLike, weights: ArrayLike | None = None) -> Array:
    """Bulk ESS, `fast_ess` of the normal scores: ArviZ's `ess(method="bulk")`."""
    x, w = _inputs(x, weights)
    return _collect(x, w, scored=True).ess


def rank_rhat(x: ArrayLike, weights: ArrayLike | None = None) -> Array:
    """Split R-hat of the normal scores of x and of |x − median|, the larger: ArviZ's "rank"."""
    x, w = _inputs(x, weights)
    if x.shape[1] == 1:
        x, w = _two_chains(x), None if w is None else _two_chains(w)
    return _larger(x, w).rhat


def rank_ess_and_rhat(x: ArrayLike, weights: ArrayLike | None = None, *, fold: bool = True) -> Pair:
    """Bulk ESS and R-hat of the normal scores in one pass, R-hat also of |x − median| if `fold`.

    The halves of a single chain serve as its chains.
    """
    x, w = _inputs(x, weights)
    return _larger(x, w) if fold else _collect(x, w, scored=True)


def strict_ess_and_rhat(
    x: ArrayLike, weights: ArrayLike | None = None, *, centre: Array | None = None
) -> Pair:
    """The smaller of `fast_ess` and `rank_ess`, and R-hat of the normal scores, in one pass.

    With a `centre` (dim,) those of (x − centre)² follow those of x.
    """
    x, w = _inputs(x, weights)
    half_w, untied = _half_weights(w), _untied(x)
    found, start = [], 0
    for values in _blocks(x):
        order = _order(values)
        found.append(_strict(values, half_w, order, untied))
        if centre is not None:
            middle = centre[start : start + len(values), None, None]
            squares = (values - middle) ** 2
            found.append(_strict(squares, half_w, _order(squares, order), untied))
        start += len(values)
    parts = [found] if centre is None else [found[::2], found[1::2]]
    return _joined([one for part in parts for one in part])


def _strict(values: Array, half_w: Array | None, order: NDArray[np.intp], untied: Array) -> Pair:
    own = _judged(values, values, half_w)
    bulk = _judged(_scores(values, half_w, order, untied), values, half_w)
    return Pair(np.minimum(bulk.ess, own.ess), bulk.rhat)


def nested_rhat(x: ArrayLike, groups: int) -> Array:
    """Nested R-hat (Margossian et al.) of `x` (draws, chains, dim) over `groups` of chains.

    Chains k·C/groups … form one superchain that started at one place. With B the variance of the
    superchain means and W the mean over superchains of the variance of chain means plus the mean
    variance within chains, R̂² = 1 + B/W. It says for few draws of many chains whether the start
    is forgotten, which the R-hat of single chains can't.
    """
    x = path_array(x, "x")
    draws, chains, dim = x.shape
    if groups < 2 or chains % groups or chains // groups < 2:
        raise ValueError(
            f"groups must cut the {chains} chains into at least two equal parts of two chains or "
            f"more, got {groups}; pass a divisor of the number of chains"
        )
    means = x.mean(axis=0).reshape(groups, chains // groups, dim)
    within = means.var(axis=1, ddof=1)
    if draws > 1:
        within = within + x.var(axis=0, ddof=1).reshape(means.shape).mean(axis=1)
    between = means.mean(axis=1).var(axis=0, ddof=1)
    return _root_ratio(within.mean(axis=0) + between, within.mean(axis=0))


def _inputs(x: ArrayLike, weights: ArrayLike | None) -> tuple[Array, Array | None]:
    x = path_array(x, "x", at_least=4)
    return x, None if weights is None else weight_array(weights, x.shape[:2])


def _two_chains(x: Array) -> Array:
    """One chain as two chains of half the length."""
    half = x.shape[0] // 2
    if half < 4:
        raise ValueError(f"x needs at least 8 draws of a single chain, got {x.shape[0]}")
    return np.concatenate([x[:half], x[-half:]], axis=1)


def _larger(x: Array, w: Array | None) -> Pair:
    """Bulk ESS, and the larger of the R-hats of x and of |x − median|."""
    bulk = _collect(x, w, scored=True)
    # The middle of an odd number of draws is in neither half, so it has no say in the median.
    folded = np.abs(x - _median(_without_middle(x), None if w is None else _without_middle(w)))
    tail = _collect(x, w, scored=True, transformed=folded)
    return Pair(bulk.ess, np.maximum(bulk.rhat, tail.rhat))


def _without_middle(x: Array) -> Array:
    half = x.shape[0] // 2
    return x if x.shape[0] % 2 == 0 else np.concatenate([x[:half], x[-half:]])


def _collect(
    x: Array, w: Array | None, scored: bool = False, transformed: Array | None = None
) -> Pair:
    """ESS and R-hat block by block. A column counts as constant by `x`, not by `transformed`."""
    half_w, untied = _half_weights(w), _untied(x) if scored else None
    found = []
    others = _blocks(x if transformed is None else transformed)
    for original in _blocks(x) if transformed is not None else others:
        values = original if transformed is None else next(others)
        columns = values if untied is None else _scores(values, half_w, _order(values), untied)
        found.append(_judged(columns, original, half_w))
    return _joined(found)


def _judged(columns: Array, original: Array, half_w: Array | None) -> Pair:
    """ESS and R-hat of one block, whose columns are constant where the `original` ones are."""
    factor = 1.0
    if half_w is not None:
        columns, factor = _influence(columns, half_w)
    used = original if half_w is None else original[:, half_w > 0][:, None]
    constant = np.all(used == used[:, :1, :1], axis=(1, 2))
    size, ratio = _geyer(columns)
    return Pair(np.where(constant, 0.0, factor * size), np.where(constant, np.inf, ratio))


def _joined(found: list[Pair]) -> Pair:
    return Pair(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


def _half_weights(w: Array | None) -> Array | None:
    return None if w is None else next(_blocks(w[:, :, None]))[0]


def _blocks(x: Array) -> Iterator[Array]:
    """Blocks of columns as (columns, halves of chains, n), each half contiguous."""
    draws, chains, dim = x.shape
    step = max(1, ENTRIES // (draws * chains))
    wide = step * math.ceil(LINE / step)
    for start in range(0, dim, wide):
        columns = _turned(x[:, :, start : start + wide])
        for first in range(0, len(columns), step):
            yield columns[first : first + step]


def _turned(x: Array) -> Array:
    """(draws, chains, columns) as (columns, halves of chains, n), some chains at a time."""
    draws, chains, dim = x.shape
    half, some = draws // 2, max(1, ENTRIES // (draws * dim))
    turned = np.empty((dim, 2, chains, half))
    for start in range(0, chains, some):
        part = x[:, start : start + some].T
        turned[:, 0, start : start + some] = part[..., :half]
        turned[:, 1, start : start + some] = part[..., -half:]
    return turned.reshape(dim, 2 * chains, half)


def _geyer(columns: Array) -> tuple[Array, Array]:
    """ESS and R-hat of `columns` (columns, m, n)."""
    from scipy.fft import irfft, next_fast_len, rfft

    dim, halves, draws = columns.shape
    size = halves * draws
    # Twice the length, so that the circular correlation of the transform does not wrap around.
    length = int(next_fast_len(2 * draws, real=True) or 2 * draws)
    some = min(halves, max(1, ENTRIES // (dim * length)))
    padded, means, power = np.zeros((dim, some, length)), np.empty((halves, dim)).T, np.zeros(())
    for start in range(0, halves, some):
        part = columns[:, start : start + some]
        here, mean = padded[:, : part.shape[1]], means[:, start : start + some]
        # In order of time: runs repeat to the last bit where this is always rounded alike.
        mean[...] = np.cumsum(part, axis=2)[..., -1] / draws
        np.subtract(part, mean[:, :, None], out=here[..., :draws])
        parts = np.asarray(rfft(here, axis=2)).view(np.float64)
        np.square(parts, out=parts)
        squares = parts[..., ::2] + parts[..., 1::2]
        squares[:, 0] += power
        power = squares.sum(axis=1)
    covariance = np.asarray(irfft(power / halves, n=length, axis=1))[:, :draws] / draws
    within = covariance[:, 0] * draws / (draws - 1)
    pooled = covariance[:, 0] + means.var(axis=1, ddof=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        rho = 1 - (within[:, None] - covariance) / pooled[:, None]
    rho[:, 0] = 1.0
    last = max(0, (draws - 3) // 2)
    pairs = rho[:, : 2 * last + 2].reshape(-1, last + 1, 2).sum(axis=2)
    positive = np.logical_and.accumulate(pairs > 0, axis=1)
    stop = np.minimum(positive.sum(axis=1), last)
    falling = np.where(
        np.arange(last + 1) < stop[:, None], np.minimum.accumulate(pairs, axis=1), 0.0
    )
    row = np.arange(stop.size)
    even = rho[row, 2 * stop]
    even = np.where((even > 0) | (pairs[row, stop] >= 0), even, 0.0)
    time = np.maximum(-1 + 2 * falling.sum(axis=1) + even, 1 / np.log10(size))
    return size / time, _root_ratio(pooled, within)


def _root_ratio(pooled: Array, within: Array) -> Array:
    """√(pooled/within), ∞ where nothing varies within."""
    positive = within > 0
    return np.where(positive, np.sqrt(pooled / np.where(positive, within, 1.0)), np.inf)


def _order(columns: Array, near: NDArray[np.intp] | None = None) -> NDArray[np.intp]:
    """Places in the block that sort each column, (columns, draws of all chains).

    In the order `near` they rise and fall seldom: the squares of sorted numbers fall and then
    rise, and a stable sort merges such parts.
    """
    flat = columns.reshape(columns.shape[0], -1)
    if near is not None:
        flat = flat.take(near)
    order = np.argsort(flat, axis=1, kind=None if near is None else "stable")
    order += np.arange(len(flat))[:, None] * flat.shape[1]
    return order if near is None else near.take(order)


def _untied(x: Array) -> Array:
    """The normal scores of a column of `x` without ties, in order."""
    from scipy.special import ndtri

    size = x.shape[0] // 2 * 2 * x.shape[1]
    return ndtri((np.arange(size) + 0.625) / (size + 0.25))


def mid_ranks(values: ArrayLike) -> Array:
    """Ranks 1, 2, … of all entries; equal ones share the mean of theirs. The shape is kept."""
    values = np.asarray(values)
    _, group, size = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(size) - (size - 1) / 2)[group].reshape(values.shape)


def _scores(columns: Array, w: Array | None, order: NDArray[np.intp], untied: Array) -> Array:
    """Normal scores Φ⁻¹((n p + 1/8)/(n + 1/4)) of the mid-rank p of each draw in its column."""
    from scipy.special import ndtri

    flat = columns.reshape(columns.shape[0], -1)
    size = flat.shape[1]
    ordered = flat.take(order)
    place = np.arange(size)
    new = np.ones(flat.shape, dtype=bool)
    np.not_equal(ordered[:, 1:], ordered[:, :-1], out=new[:, 1:])
    if new.all() and w is None:
        ordered_scores = np.broadcast_to(untied, flat.shape)
    else:
        # Ties share the middle of the mass from the first to the last of their group.
        first = np.maximum.accumulate(np.where(new, place, 0), axis=1)
        ends = np.concatenate([new[:, 1:], np.ones_like(new[:, :1])], axis=1)
        final = np.minimum.accumulate(np.where(ends, place, size)[:, ::-1], axis=1)[:, ::-1]
        if w is None:
            middle = (first + final + 1) / 2
        else:
            mass = np.cumsum(w.take(order, mode="wrap"), axis=1)
            before = np.concatenate([np.zeros_like(mass[:, :1]), mass[:, :-1]], axis=1)
            total = np.take_along_axis(before, first, axis=1)
            total = (total + np.take_along_axis(mass, final, axis=1)) / 2
            middle = size * total / mass[:, -1:]
        ordered_scores = ndtri((middle + 0.125) / (size + 0.25))
    scores = np.empty(flat.size)
    scores[order] = ordered_scores
    return scores.reshape(columns.shape)


def _influence(columns: Array, w: Array) -> tuple[Array, Array]:
    """φ of each column, and what turns the ESS of φ into that of x̂."""
    total = w.sum()
    centred = columns - (np.einsum("kmn,mn->k", columns, w) / total)[:, None, None]
    variance = np.einsum("kmn,mn->k", centred**2, w) / total
    influence = w * centred / w.mean()
    spread = np.mean(influence**2, axis=(1, 2))
    return influence, variance / np.where(spread > 0, spread, 1.0)


def _median(x: Array, w: Array | None) -> Array:
    """Median over draws and chains of each dimension, shape (dim,)."""
    flat = x.reshape(-1, x.shape[2])
    if w is None:
        return np.median(flat, axis=0)
    used = w.reshape(-1) > 0
    values, mass = flat[used], w.reshape(-1)[used]
    order = np.argsort(values, axis=0)
    values, sorted_mass = np.take_along_axis(values, order, axis=0), mass[order]
    middle = np.cumsum(sorted_mass, axis=0) - sorted_mass / 2
    half = mass.sum() / 2
    return np.array([np.interp(half, *pair) for pair in zip(middle.T, values.T, strict=True)])
