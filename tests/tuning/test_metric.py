"""The metric from few draws and their gradients, against Gaussians and SciPy's square roots."""

import numpy as np
import pytest
import scipy.linalg

from schuss.coordinates import Diagonal, LowRank
from schuss.tuning import metric


def spread(dim, seed, condition=1e4):
    """A random covariance with eigenvalues from 1/√condition to √condition."""
    rng = np.random.default_rng(seed)
    q = np.linalg.qr(rng.standard_normal((dim, dim)))[0]
    return (q * np.geomspace(condition**-0.5, condition**0.5, dim)) @ q.T


def draws(cov, n, seed):
    """Draws from N(5, cov) and the gradients there."""
    rng = np.random.default_rng([seed, 1])
    x = rng.multivariate_normal(np.zeros(len(cov)), cov, size=n, method="cholesky")
    return x + 5, np.linalg.solve(cov, x.T).T


def matrix(frame):
    """x = matrix z."""
    return frame.forward(np, np.eye(len(frame.scale))).T


def misfit(cov, root):
    """Root mean square of the logs of the eigenvalues of the covariance of z, x = root z."""
    inverse = np.linalg.inv(root)
    return np.sqrt(np.mean(np.log(np.linalg.eigvalsh(inverse @ cov @ inverse.T)) ** 2))


@pytest.mark.parametrize("seed", range(5))
def test_geometric_mean(seed):
    """B^(−½)(B^½ A B^½)^½ B^(−½) by SciPy, and its own equation: M B M = A."""
    a, b = spread(6, seed), spread(6, seed + 100)
    root = scipy.linalg.sqrtm(b)
    inverse = np.linalg.inv(root)
    want = inverse @ scipy.linalg.sqrtm(root @ a @ root) @ inverse
    found = metric._between(a, b)
    np.testing.assert_allclose(found, want.real, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(found @ b @ found, a, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_allclose(metric._between(a, np.linalg.inv(a)), a, rtol=1e-6, atol=1e-8)


def test_better_than_the_sample_covariance():
    """In 12 dimensions at condition 10⁴, from 30 draws: for each of ten seeds, and by a fifth.

    Eigenvalues between ½ and 2 are let be and the rest is shrunk, or it would be exact.
    """
    ours, theirs = [], []
    for seed in range(10):
        cov = spread(12, seed)
        x, g = draws(cov, 30, seed)
        root = np.linalg.cholesky(np.cov(x, rowvar=False))
        ours.append(misfit(cov, matrix(metric.fit(x, g, effective=30))))
        theirs.append(misfit(cov, root))
        assert misfit(cov, np.eye(12)) > 2
    assert np.all(np.array(ours) < theirs)
    assert np.mean(ours) < 0.8 * np.mean(theirs)
    assert max(ours) < 0.75


def test_many_draws_find_the_covariance():
    """Up to eigenvalues that are let be: the condition number falls from 10⁴ to at most 4."""
    cov = spread(12, 3)
    frame = metric.fit(*draws(cov, 20_000, 3), effective=20_000)
    inverse = np.linalg.inv(matrix(frame))
    values = np.linalg.eigvalsh(inverse @ cov @ inverse.T)
    assert values.min() > 0.49 and values.max() < 2.05


def test_scales_of_a_gaussian_are_exact():
    """g = x/s²: three draws are enough."""
    s = np.geomspace(1e-6, 1e6, 9)
    x = s * np.random.default_rng(0).standard_normal((3, 9))
    np.testing.assert_allclose(metric.scales(x + 3, x / s**2), s, rtol=1e-6)
    frame = metric.fit(x, x / s**2, effective=1e12)
    assert frame.scale == pytest.approx(s)


def test_a_scale_that_cannot_be_told_is_one():
    x = np.random.default_rng(0).standard_normal((10, 4))
    g = x.copy()
    x[:, 1], g[:, 2], g[0, 3] = 0.0, 0.0, np.nan
    np.testing.assert_array_equal(metric.scales(x, g)[1:], 1.0)


def test_gradients_whose_squares_are_infinite_tell_no_scale():
    x = np.random.default_rng(0).standard_normal((10, 2))
    assert metric.scales(x, x * np.array([1.0, 1e200]))[1] == 1


def test_scales_by_chain_are_the_geometric_mean():
    """Each chain about its own place: between chains nothing counts."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((50, 3, 2))
    factors = np.array([1.0, 4.0, 16.0])[:, None]
    g = x / factors**2
    shifted = x + 1000 * np.arange(3)[:, None]
    np.testing.assert_allclose(metric.scales_by_chain(shifted, g), 4.0, rtol=1e-9)


@pytest.mark.parametrize("dim", [2, 20, 32, 33, 60, 128, 129, 150, 200, 201])
def test_metrics_of_a_dimension_have_few_shapes(dim):
    """Small ones have all directions from the beginning; others as many as are compiled anyway."""
    rng = np.random.default_rng(dim)
    x = rng.standard_normal((400, dim))
    first = np.ones(dim) / np.sqrt(dim)
    x = x + 9 * (x @ first)[:, None] * first
    g = x - 0.99 * (x @ first)[:, None] * first
    frame = metric.fit(x, g, effective=400)
    np.testing.assert_array_equal(metric.unit(dim).forward(np, x), x)
    if dim <= 32:
        shapes = [np.shape(part) for part in frame]
        assert shapes == [np.shape(part) for part in metric.unit(dim)]
        assert shapes == [np.shape(part) for part in metric.scaled(np.ones(dim))]
        assert shapes == [(dim,), (dim, dim), (dim,)]
    elif dim <= 200:
        assert isinstance(metric.unit(dim), Diagonal) and isinstance(frame, LowRank)
        assert frame.vectors.shape[1] in (32, 128, dim)
        assert 1 <= metric.rank(frame) <= frame.vectors.shape[1]
    else:
        assert isinstance(frame, Diagonal)
    if dim <= 200:
        # The one long direction, by ten, is found among them.
        assert np.linalg.norm(matrix(frame) @ first) > 5
        np.testing.assert_allclose(frame.forward(np, frame.inverse(np, x)), x, rtol=1e-9, atol=1e-9)


def test_round_gaussians_get_no_directions():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((5000, 40))
    frame = metric.fit(x, x, effective=5000)
    assert isinstance(frame, Diagonal)
    np.testing.assert_allclose(frame.scale, 1, rtol=1e-12)


def test_few_effective_draws_are_trusted_little():
    """With n effective draws, n/(n + 2) of what they say: none at all leaves the identity."""
    cov = spread(4, 0)
    x, g = draws(cov, 1000, 0)
    none = metric.fit(x, g, effective=1e-9)
    assert metric.rank(none) == 0
    some, all_ = (metric.fit(x, g, effective=n) for n in (2, 1e9))
    misfits = [misfit(cov, matrix(frame)) for frame in (all_, some, none)]
    assert misfits == sorted(misfits)


def test_leading_directions_of_many_dimensions():
    """What is left of a covariance with two wide and two narrow directions, from few draws.

    Each of them spreads over all coordinates, whose scales alone leave a condition number of 5·10⁶.
    """
    rng = np.random.default_rng(0)
    dim, n = 300, 120
    basis, _ = np.linalg.qr(rng.standard_normal((dim, 4)))
    variance = np.array([1e4, 1e2, 1e-2, 1e-3])
    x = rng.standard_normal((n, dim))
    x = x + (x @ basis) * (np.sqrt(variance) - 1) @ basis.T
    g = x + (x @ basis) * (1 / variance - 1) @ basis.T
    fitted = metric.fit_many(x, g, n)
    assert 4 <= metric.rank(fitted) <= 8
    covariance = np.eye(dim) + basis * (variance - 1) @ basis.T
    there = fitted.inverse(np, covariance)
    values = np.linalg.eigvalsh(fitted.inverse(np, there.T))
    assert values.max() / values.min() < 200
