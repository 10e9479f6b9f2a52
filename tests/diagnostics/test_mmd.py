"""Maximum mean discrepancy against a plain loop and exact Gaussian integrals."""

import math
import tracemalloc

import numpy as np
import pytest
from seeds import shifted

from schuss.diagnostics import (
    Reference,
    median_squared_distance,
    mmd2,
    mmd2_interval,
    null_level,
    reference,
)


def naive_mmd2(x, y, bandwidth):
    def k(a, b):
        return math.exp(-sum((p - q) ** 2 for p, q in zip(a, b, strict=True)) / (2 * bandwidth))

    n, m = len(x), len(y)
    xx = sum(k(x[i], x[j]) for i in range(n) for j in range(n) if i != j) / (n * (n - 1))
    yy = sum(k(y[i], y[j]) for i in range(m) for j in range(m) if i != j) / (m * (m - 1))
    xy = sum(k(a, b) for a in x for b in y) / (n * m)
    return (xx + yy - 2 * xy) / math.sqrt(2 * math.pi * bandwidth)


@pytest.mark.parametrize("dim", [1, 2, 7])
@pytest.mark.parametrize("offset", [0.0, 1e3, 1e7])
def test_equals_plain_loop(dim, offset):
    """Also where both samples lie far from the origin, and where they lie far from each other.

    Moving x to the centre of y rounds its coordinates, by 1e-9 at 1e7.
    """
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(23, dim)) * 1.3 + 0.2, rng.normal(size=(31, dim))
    bandwidth = 0.7
    together = mmd2(x + offset, y + offset, bandwidth=bandwidth, block=8)
    assert together == pytest.approx(naive_mmd2(x + offset, y + offset, bandwidth), abs=1e-12)
    apart = mmd2(x + offset, y, bandwidth=bandwidth, block=8)
    assert apart == pytest.approx(naive_mmd2(x + offset, y, bandwidth), abs=1e-12 + 1e-17 * offset)


def test_default_bandwidth_is_median_squared_distance_of_the_exact_sample():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(20, 3)), 2 * rng.normal(size=(30, 3))
    distances = [np.sum((a - b) ** 2) for i, a in enumerate(y) for b in y[i + 1 :]]
    assert median_squared_distance(y) == pytest.approx(np.median(distances), rel=1e-14)
    assert mmd2(x, y) == pytest.approx(naive_mmd2(x, y, np.median(distances)), abs=1e-12)


@pytest.mark.parametrize("n", [2, 3, 30, 31])
def test_median_is_exact_over_all_pairs(n):
    y = np.random.default_rng(n).normal(size=(n, 2))
    distances = [np.sum((a - b) ** 2) for i, a in enumerate(y) for b in y[i + 1 :]]
    assert median_squared_distance(y) == pytest.approx(np.median(distances), rel=1e-14)


def test_median_of_many_points_is_close_to_the_population_value():
    """|y − y'|²/2 is χ²(2) in two dimensions, with median 2 log 2; the sample is sorted.

    The median of 2e6 pairs has a relative error of 1/(√2e6 log 2) ≈ 1e-3 over seeds.
    """
    y = np.random.default_rng(2).normal(size=(10_000, 2))
    y = y[np.argsort(y[:, 0])]
    assert median_squared_distance(y) == pytest.approx(4 * math.log(2), rel=0.03)
    assert median_squared_distance(y, seed=1) == pytest.approx(median_squared_distance(y), rel=7e-3)


def test_blocks_and_reference_do_not_matter():
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(37, 4)), rng.normal(size=(53, 4))
    whole = mmd2(x, y, block=1000)
    assert [mmd2(x, y, block=b) for b in (1, 7, 37, 53)] == pytest.approx([whole] * 4, abs=1e-14)
    assert mmd2(x, reference(y)) == pytest.approx(whole, abs=1e-14)
    one, many = mmd2_interval(x, y, block=1000), mmd2_interval(x, y, block=7)
    assert many == pytest.approx(one, abs=1e-14)
    assert one.value == pytest.approx(whole, abs=1e-14)


def test_unbiased():
    """Mean over 4000 null replicates within 5 standard errors of zero (false alarm 6e-7).

    With the diagonal left in, it would be 2 k(0)/8, hundreds of standard errors away.
    """
    rng = np.random.default_rng(shifted(4))
    values = [mmd2(*rng.normal(size=(2, 8, 2)), bandwidth=1.0) for _ in range(4000)]
    assert abs(np.mean(values)) < 5 * np.std(values) / math.sqrt(len(values))


def test_far_points_count_as_far_and_do_not_warn():
    y = np.random.default_rng(5).normal(size=(50, 2))
    x = np.full((10, 2), 1e200)
    within = mmd2(y[:25], y[25:], bandwidth=1.0)
    assert math.isfinite(within)
    expected = (1 + np.sum(reference(y, 1.0).rows) / (50 * 49)) / math.sqrt(2 * math.pi)
    assert mmd2(x, y, bandwidth=1.0) == pytest.approx(expected, rel=1e-12)


def gaussian_null_sd(dim, bandwidth, n, m):
    """Var = 2 (1/n + 1/m)² E[h²], h the doubly centred kernel of N(0, I), by Gaussian integrals."""
    b = bandwidth
    square = (b / (b + 4)) ** (dim / 2)
    mean = (b / (b + 2)) ** (dim / 2)
    shared = (b / (b + 1)) ** dim * ((b + 1) / (b + 3)) ** (dim / 2)
    return math.sqrt(2 * (square - 2 * shared + mean**2) / (2 * math.pi * b)) * (1 / n + 1 / m)


@pytest.mark.parametrize("dim", [2, 50])
def test_null_level(dim):
    """A standard deviation from 400 replicates is good to 1/√800 = 3.5 % and more with its tail."""
    y = np.random.default_rng(6).normal(size=(4000, dim))
    ref = reference(y)
    expected = gaussian_null_sd(dim, ref.bandwidth, 500, 3500)
    assert null_level(ref, 500, replicates=400) == pytest.approx(expected, rel=0.2)


def test_null_level_equals_splitting_by_hand():
    y = np.random.default_rng(7).normal(size=(60, 2))
    ref = reference(y)
    rng = np.random.default_rng(11)
    values = []
    for _ in range(5):
        chosen = rng.choice(60, size=20, replace=False)
        rest = np.delete(y, chosen, axis=0)
        values.append(mmd2(y[chosen], rest, bandwidth=ref.bandwidth))
    assert null_level(ref, 20, replicates=5, seed=11) == pytest.approx(
        np.std(values, ddof=1), rel=1e-10
    )


def test_bootstrap_replicates_equal_the_definition():
    """Quantiles of replicates built by index, without pairs of one point with itself."""
    rng = np.random.default_rng(8)
    x, y = rng.normal(size=(9, 2)) + 0.5, rng.normal(size=(15, 2))
    n, replicates = 9, 40
    ref = reference(y, 1.0)

    def k(a, b):
        return np.exp(-np.sum((a - b) ** 2) / 2) / math.sqrt(2 * math.pi)

    within_y = np.mean([k(a, b) for i, a in enumerate(y) for j, b in enumerate(y) if i != j])
    counts = np.random.default_rng(3).multinomial(n, np.full(n, 1 / n), size=replicates)
    values = []
    for row in counts:
        index = np.repeat(np.arange(n), row)
        pairs = sum(k(x[i], x[j]) for i in index for j in index if i != j)
        cross = np.mean([k(x[i], b) for i in index for b in y])
        values.append(pairs / (n - 1) ** 2 + within_y - 2 * cross)
    got = mmd2_interval(x, ref, level=0.8, replicates=replicates, seed=3)
    assert (got.low, got.high) == pytest.approx(tuple(np.quantile(values, [0.1, 0.9])), abs=1e-12)


@pytest.mark.parametrize(("shift", "least", "most"), [(1.0, 0.68, 0.92), (0.0, 0.68, 1.0)])
def test_interval_coverage(shift, least, most):
    """Intervals at 80 % from 300 experiments: 5 σ of the binomial is .115.

    Truth for x ~ N(shift, 1) and y fixed by Gaussian integrals. At shift 0 the statistic is
    degenerate and the interval conservative.
    """
    rng = np.random.default_rng(9)
    y = rng.normal(size=(200, 1))
    ref, n = reference(y, 1.0), 80
    height = 1 / math.sqrt(2 * math.pi)
    xx, xy = 1 / math.sqrt(3), np.mean(np.exp(-((y - shift) ** 2) / 4)) / math.sqrt(2)
    yy = np.sum(ref.rows) / (200 * 199)
    truth = height * (xx + yy - 2 * xy)
    hits = 0
    for seed in range(300):
        x = rng.normal(size=(n, 1)) + shift
        got = mmd2_interval(x, ref, level=0.8, replicates=200, seed=seed)
        hits += got.low <= truth <= got.high
    assert least <= hits / 300 <= most


def test_memory_does_not_grow_with_the_square():
    """20 000 points would need 3.2 GB for the kernel matrix."""
    rng = np.random.default_rng(10)
    x, y = rng.normal(size=(20_000, 2)), rng.normal(size=(500, 2))
    ref = reference(y)
    tracemalloc.start()
    mmd2(x, ref)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50e6


def test_accepts_other_libraries_and_single_precision():
    torch, jnp = pytest.importorskip("torch"), pytest.importorskip("jax.numpy")
    x = np.random.default_rng(12).normal(size=(20, 2)).astype(np.float32)
    expected = mmd2(x, 1.1 * x)
    assert mmd2(jnp.asarray(x), jnp.asarray(1.1 * x)) == expected
    assert mmd2(torch.asarray(x), torch.asarray(1.1 * x)) == expected


GOOD = np.arange(12.0).reshape(6, 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mmd2(GOOD[:, 0], GOOD), r"x must have shape \(n, dim\)"),
        (lambda: mmd2(GOOD, GOOD * np.nan), "y must be finite, got 12"),
        (lambda: mmd2(GOOD[:1], GOOD), "x needs at least 2 points"),
        (lambda: mmd2(GOOD[:, :1], GOOD), "x must have the dimension of the exact sample, 2"),
        (lambda: mmd2(GOOD, GOOD, bandwidth=-1.0), "bandwidth must be positive and finite"),
        (lambda: mmd2(GOOD, np.zeros((6, 2))), "bandwidth must be positive and finite, got 0.0"),
        (lambda: mmd2(GOOD, reference(GOOD), bandwidth=1.0), "bandwidth must be None"),
        (lambda: mmd2(GOOD, GOOD, block=0), "block must be at least 1"),
        (lambda: mmd2_interval(GOOD, GOOD, level=95), "level must lie between 0 and 1"),
        (lambda: mmd2_interval(GOOD, GOOD, replicates=1), "replicates must be at least 2"),
        (lambda: null_level(reference(GOOD), 4), "n must lie between 2 and half"),
        (lambda: null_level(reference(GOOD), 2, 1), "replicates must be at least 2"),
        (lambda: median_squared_distance(GOOD, pairs=0), "pairs must be at least 1"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_reference_is_a_plain_tuple():
    assert Reference._fields == ("samples", "bandwidth", "rows")
