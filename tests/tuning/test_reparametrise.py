"""Maps from exact draws: targets whose map is known, and targets that need none."""

import math

import numpy as np
import pytest

from schuss.targets import funnel
from schuss.targets.posteriors.eight_schools import EFFECT, ERROR, eight_schools_centred
from schuss.tuning import reparametrise

Y, S = np.asarray(EFFECT), np.asarray(ERROR)


def fitted(x, g, seed=0):
    return reparametrise.fit(x, g, np.random.default_rng(seed))


def parents(frame):
    return [int(np.argmax(row)) for row in frame.parents if row.any()]


def schools(n, rng, least=-math.inf):
    """Exact draws of (μ, log τ, θ): log τ by inversion on a grid, the rest are normal."""
    grid = np.linspace(-12, 5, 40_001)
    precision = 1 / (S**2 + np.exp(2 * grid)[:, None])
    total = precision.sum(axis=1) + 1 / 25
    mean = precision @ Y / total
    log_p = (
        0.5 * np.log(precision).sum(axis=1)
        - 0.5 * np.log(total)
        - 0.5 * precision @ Y**2
        + 0.5 * total * mean**2
        - np.log1p(np.exp(2 * grid) / 25)
        + grid
    )
    p = np.exp(log_p - log_p.max()) * (grid > least)
    at = rng.choice(len(grid), n, p=p / p.sum())
    mu = mean[at] + rng.standard_normal(n) / np.sqrt(total[at])
    prior = np.exp(-2 * grid[at])[:, None]
    centre = (prior * mu[:, None] + Y / S**2) / (prior + 1 / S**2)
    theta = centre + rng.standard_normal((n, 8)) / np.sqrt(prior + 1 / S**2)
    return np.column_stack([mu, grid[at], theta])


def test_funnel_from_half_of_it():
    """y ~ N(0, 9) and widths e^(−y/2), from draws with 0 < y < 4 alone."""
    target, rng = funnel(12), np.random.default_rng(0)
    x = target.sample(rng, 4000)
    x = x[(x[:, 0] > 0) & (x[:, 0] < 4)]
    frame = fitted(x, target.gradient(np, x))
    assert frame is not None and parents(frame) == [0]
    assert frame.centre == pytest.approx(np.zeros(12), abs=0.01)
    assert np.exp(frame.log_scale) == pytest.approx([3.0] + [1.0] * 11, rel=0.01)
    assert frame.spread[1:, 0] == pytest.approx(np.full(11, -1.5), rel=0.01)
    np.testing.assert_array_equal(frame.weight, 0)


@pytest.mark.parametrize("least", [-math.inf, -0.5])
def test_eight_schools_gives_its_data_away(least):
    """θ_j | μ, τ is N(μ, τ²) times N(y_j, s_j²): the map has them, even without the neck."""
    x = schools(2000, np.random.default_rng(1), least)
    frame = fitted(x, eight_schools_centred().gradient(np, x))
    assert frame is not None and parents(frame) == [1, 0]
    assert frame.follow[2:, 1] == pytest.approx(np.ones(8), abs=0.01)
    assert frame.spread[2:, 0] * np.exp(-frame.log_scale[1]) == pytest.approx(1, abs=0.01)
    assert frame.anchor[2:] == pytest.approx(Y, abs=0.1)
    assert 1 / np.sqrt(frame.weight[2:]) == pytest.approx(S, rel=0.01)


def test_two_groups():
    """Two groups of widths, each with a parent of its own, the second in the first one's place."""
    rng, n = np.random.default_rng(2), 2000
    a, b = rng.standard_normal((2, n))
    first, second = (
        rng.standard_normal((n, 5)) * np.exp(scale)[:, None] for scale in (0.9 * a, 1.2 * b)
    )
    x = np.column_stack([first, a, second, b])
    g = np.column_stack(
        [
            first * np.exp(-1.8 * a)[:, None],
            a + 0.9 * (5 - np.sum(first**2, axis=1) * np.exp(-1.8 * a)),
            second * np.exp(-2.4 * b)[:, None],
            b + 1.2 * (5 - np.sum(second**2, axis=1) * np.exp(-2.4 * b)),
        ]
    )
    frame = fitted(x, g)
    assert frame is not None and sorted(parents(frame)) == [5, 11]
    z = frame.inverse(np, x)
    np.testing.assert_allclose(frame.pull(np, z, g), z, atol=0.05)


def test_loss_is_zero_for_the_exact_map():
    target = funnel(6)
    x = target.sample(np.random.default_rng(3), 2000)
    g = target.gradient(np, x)
    frame = fitted(x, g)
    assert frame is not None
    assert reparametrise.loss(x, g, frame) < 1e-3
    assert np.max(np.abs(frame.inverse(np, x) - target.whiten(x))) < 0.05


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_draws_that_are_not_finite(bad):
    """They are left out."""
    target = funnel(6)
    x = target.sample(np.random.default_rng(4), 2000)
    g = target.gradient(np, x)
    x[:10], g[10:20] = bad, bad
    frame = fitted(x, g)
    assert frame is not None and parents(frame) == [0]
    assert frame.spread[1:, 0] == pytest.approx(np.full(5, -1.5), rel=0.05)


def test_same_draws_same_map():
    target = funnel(6)
    x = target.sample(np.random.default_rng(6), 3000)
    g = target.gradient(np, x)
    for one, other in zip(fitted(x, g, 3), fitted(x, g, 3), strict=True):
        np.testing.assert_array_equal(one, other)
