"""Maximum mean discrepancy to an exact sample, as the paper measures convergence.

k(x, y) = exp(−|x − y|²/(2 b)) / √(2π b), b the median squared distance of the exact sample,

    MMD² = mean_{i≠j} k(x_i, x_j) + mean_{i≠j} k(y_i, y_j) − 2 mean_{ij} k(x_i, y_j).
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from schuss.diagnostics.inputs import Array, sample_array

FAR = 1e4
"""|x|²/b beyond which a kernel from matrix products would lose more than ~1e-12."""


class Reference(NamedTuple):
    """An exact sample, b, and the sums rows_i = Σ_{j≠i} exp(−|y_i − y_j|²/2b) within it."""

    samples: Array
    bandwidth: float
    rows: Array


class Interval(NamedTuple):
    """A value between its lower and upper confidence limits."""

    value: float
    low: float
    high: float


def median_squared_distance(y: ArrayLike, pairs: int = 2_000_000, seed: int = 0) -> float:
    """Median of |y_i − y_j|² over pairs i < j.

    Exact when there are at most `pairs` of them (n ≤ 2000). Otherwise over about `pairs` seeded
    random ones, in which every point occurs equally often.
    """
    y = sample_array(y, "y")
    n = y.shape[0]
    if pairs < 1:
        raise ValueError(f"pairs must be at least 1, got {pairs}; pass e.g. pairs=2_000_000")
    # Cyclic shifts by 1 … n/2 visit each pair once; for even n the last visits its pairs twice.
    shifts = np.arange(1, n // 2 + 1)
    if n * (n - 1) // 2 > pairs:
        rng = np.random.default_rng(seed)
        y = y[rng.permutation(n)]
        shifts = rng.choice((n - 1) // 2, size=max(1, pairs // n), replace=False) + 1
    distances = []
    for shift in shifts:
        count = shift if 2 * shift == n else n
        distances.append(np.sum((y - np.roll(y, shift, axis=0))[:count] ** 2, axis=1))
    return float(np.median(np.concatenate(distances)))


def reference(y: ArrayLike, bandwidth: float | None = None, *, block: int = 1024) -> Reference:
    """Prepare the exact sample `y` (m, dim) once for many comparisons."""
    y = sample_array(y, "y")
    if bandwidth is None:
        bandwidth = median_squared_distance(y)
    if not (math.isfinite(bandwidth) and bandwidth > 0):
        raise ValueError(
            f"bandwidth must be positive and finite, got {bandwidth}; pass the squared length "
            f"over which samples should be told apart, e.g. bandwidth=1.0"
        )
    rows = _row_sums((y - y.mean(axis=0)) / math.sqrt(bandwidth), block)
    return Reference(y, float(bandwidth), rows)


def mmd2(
    x: ArrayLike,
    y: Reference | ArrayLike,
    *,
    bandwidth: float | None = None,
    block: int = 1024,
) -> float:
    """Unbiased squared MMD between the sample `x` (n, dim) and the exact sample `y` (m, dim).

    `y` may be a `Reference`, which saves its share of the work. Memory is O(block²).
    """
    y = _as_reference(y, bandwidth, block)
    a, b = _scaled(x, y)
    n, m = a.shape[0], b.shape[0]
    within = float(np.sum(_row_sums(a, block))) / (n * (n - 1))
    cross = float(np.sum(_cross_sums(a, b, block))) / (n * m)
    return _height(y) * (within + _within(y) - 2 * cross)


def mmd2_interval(
    x: ArrayLike,
    y: Reference | ArrayLike,
    *,
    level: float = 0.95,
    replicates: int = 1000,
    seed: int = 0,
    bandwidth: float | None = None,
    block: int = 1024,
) -> Interval:
    """MMD² with a percentile bootstrap interval over the points (chains) of `x`, `y` held fixed.

    A replicate with multiplicities c is Σ_{i≠j} c_i c_j k(x_i, x_j)/(n − 1)² − 2 Σ c_i k(x_i, y)/n
    + k(y, y). Leaving out i = j, and with it the repeats of a point, makes the mean over replicates
    equal to the estimate. Where x and y agree the interval is too wide, never too narrow.
    """
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level}; pass e.g. level=0.95")
    if replicates < 2:
        raise ValueError(f"replicates must be at least 2, got {replicates}; pass e.g. 1000")
    y = _as_reference(y, bandwidth, block)
    a, b = _scaled(x, y)
    n, m = a.shape[0], b.shape[0]
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(n, np.full(n, 1 / n), size=replicates).astype(np.float64)
    rows = np.zeros(n)
    quadratic = np.zeros(replicates)
    for i, j, kernel in _upper_blocks(a, block):
        _add_rows(rows, i, j, kernel)
        twice = 1.0 if i == j else 2.0
        quadratic += twice * np.einsum("ri,ri->r", counts[:, i] @ kernel, counts[:, j])
    cross = _cross_sums(a, b, block) / m
    height, constant = _height(y), _within(y)
    draws = height * (quadratic / (n - 1) ** 2 + constant - 2 * (counts @ cross) / n)
    value = height * (float(np.sum(rows)) / (n * (n - 1)) + constant - 2 * float(np.mean(cross)))
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    return Interval(value, float(low), float(high))


def null_level(reference: Reference, n: int, replicates: int = 200, seed: int = 0) -> float:
    """Standard deviation of MMD² when `n` exact points are compared with the exact sample.

    Each replicate splits the exact sample at random into `n` points and the rest.
    """
    m = reference.samples.shape[0]
    if not 2 <= n <= m // 2:
        raise ValueError(
            f"n must lie between 2 and half the exact sample ({m // 2}), got {n}; "
            f"prepare the reference from more exact samples"
        )
    if replicates < 2:
        raise ValueError(f"replicates must be at least 2, got {replicates}; pass e.g. 200")
    rng = np.random.default_rng(seed)
    points, _ = _scaled(reference.samples, reference)
    total = float(np.sum(reference.rows))
    rest = m - n
    values = np.empty(replicates)
    for k in range(replicates):
        chosen = rng.choice(m, size=n, replace=False)
        inside = float(np.sum(_row_sums(points[chosen], 1024)))
        to_all = float(np.sum(reference.rows[chosen]))
        values[k] = (
            inside / (n * (n - 1))
            + (total - 2 * to_all + inside) / (rest * (rest - 1))
            - 2 * (to_all - inside) / (n * rest)
        )
    return _height(reference) * float(np.std(values, ddof=1))


def _as_reference(y: Reference | ArrayLike, bandwidth: float | None, block: int) -> Reference:
    if block < 1:
        raise ValueError(f"block must be at least 1, got {block}; pass e.g. block=1024")
    if not isinstance(y, Reference):
        return reference(y, bandwidth, block=block)
    if bandwidth is not None:
        raise ValueError(
            "bandwidth must be None when y is a Reference, which has its own; "
            "pass it to reference(y, bandwidth) instead"
        )
    return y


def _scaled(x: ArrayLike, y: Reference) -> tuple[Array, Array]:
    """Both samples centred on the exact one, in units of √b."""
    x = sample_array(x, "x")
    if x.shape[1] != y.samples.shape[1]:
        raise ValueError(
            f"x must have the dimension of the exact sample, {y.samples.shape[1]}, "
            f"got {x.shape[1]}; compare samples of the same space"
        )
    centre, unit = y.samples.mean(axis=0), math.sqrt(y.bandwidth)
    return (x - centre) / unit, (y.samples - centre) / unit


def _height(y: Reference) -> float:
    return 1 / math.sqrt(2 * math.pi * y.bandwidth)


def _within(y: Reference) -> float:
    m = y.samples.shape[0]
    return float(np.sum(y.rows)) / (m * (m - 1))


def _kernel(a: Array, b: Array) -> Array:
    """exp(−|a_i − b_j|²/2) for scaled samples, shape (len(a), len(b))."""
    with np.errstate(over="ignore"):
        half_a, half_b = np.sum(a * a, axis=1) / 2, np.sum(b * b, axis=1) / 2
        if max(half_a.max(), half_b.max()) < FAR / 2:
            left = np.column_stack([a, -half_a, np.ones_like(half_a)])
            right = np.column_stack([b, np.ones_like(half_b), -half_b])
            exponent = left @ right.T
            np.minimum(exponent, 0.0, out=exponent)
        else:
            exponent = np.zeros((a.shape[0], b.shape[0]))
            for column_a, column_b in zip(a.T, b.T, strict=True):
                difference = np.subtract.outer(column_a, column_b)
                difference *= difference
                exponent -= difference
            exponent /= 2
    return np.exp(exponent, out=exponent)


def _slices(n: int, block: int) -> list[slice]:
    return [slice(start, min(start + block, n)) for start in range(0, n, block)]


def _upper_blocks(a: Array, block: int) -> Iterator[tuple[slice, slice, Array]]:
    """Blocks on and above the diagonal of the kernel matrix of `a`, its diagonal set to zero."""
    slices = _slices(a.shape[0], block)
    for k, i in enumerate(slices):
        for j in slices[k:]:
            kernel = _kernel(a[i], a[j])
            if i == j:
                np.fill_diagonal(kernel, 0.0)
            yield i, j, kernel


def _add_rows(rows: Array, i: slice, j: slice, kernel: Array) -> None:
    rows[i] += kernel.sum(axis=1)
    if i != j:
        rows[j] += kernel.sum(axis=0)


def _row_sums(a: Array, block: int) -> Array:
    """Σ_{j≠i} k(a_i, a_j) for each i."""
    rows = np.zeros(a.shape[0])
    for i, j, kernel in _upper_blocks(a, block):
        _add_rows(rows, i, j, kernel)
    return rows


def _cross_sums(a: Array, b: Array, block: int) -> Array:
    """Σ_j k(a_i, b_j) for each i."""
    sums = np.zeros(a.shape[0])
    for i in _slices(a.shape[0], block):
        for j in _slices(b.shape[0], block):
            sums[i] += _kernel(a[i], b[j]).sum(axis=1)
    return sums
