"""Ergodic sampling: the clock, the interpolation, and the evenness of the draws."""

import numpy as np
import pytest
from scipy.integrate import quad
from seeds import shifted

import schuss
from schuss.core.ergodic import clock, interpolate

from .energies import bowl


def path(chains=3, steps=50, epsilon=0.1):
    return schuss.trajectory(
        value_and_grad=lambda x: bowl(np, x),
        init=np.random.default_rng(0).standard_normal((chains, 2)),
        sampler=schuss.ESH(step_size=epsilon),
        steps=steps,
    )


def test_clock_is_an_integral():
    """t = ∫ e^r dt̄/d for r(t̄) = sin 2t̄, to the error of a trapezoid sum."""
    epsilon, dim = 0.01, 4
    scaled = epsilon * np.arange(301)
    times = clock(np, np.sin(2 * scaled)[:, None] * np.ones(2), epsilon, dim)
    assert times.shape == (301, 2)
    for step in (0, 1, 120, 300):
        exact = quad(lambda s: np.exp(np.sin(2 * s)) / dim, 0, scaled[step])[0]
        np.testing.assert_allclose(times[step], exact, atol=1e-4)


def test_clock_with_a_step_for_each_chain():
    r = np.zeros((5, 2))
    times = clock(np, r, np.asarray([0.1, 0.4]), 2)
    np.testing.assert_allclose(times[-1], [0.2, 0.8])


def test_time_of_a_thinned_path_goes_on():
    """Every fifth state only: the same end to second order."""
    whole = path(steps=100, epsilon=0.02)
    thinned = schuss.trajectory(
        value_and_grad=lambda x: bowl(np, x),
        init=whole.x[0],
        velocity=whole.u[0],
        sampler=schuss.ESH(step_size=0.02),
        steps=100,
        every=5,
    )
    np.testing.assert_allclose(thinned.time, whole.time[::5], rtol=2e-2)


def test_interpolation_is_linear():
    """Against numpy.interp, the ends and exact hits included."""
    rng = np.random.default_rng(1)
    times = np.concatenate([[0.0], np.cumsum(rng.random(20))])
    x = rng.standard_normal((21, 3))
    moments = np.concatenate([rng.uniform(0, times[-1], 200), times, [0.0, times[-1]]])
    expected = np.stack([np.interp(moments, times, column) for column in x.T], axis=1)
    np.testing.assert_allclose(interpolate(np, x, times, moments), expected, atol=1e-13)


def test_a_clock_that_stands_still_is_no_trouble():
    x = np.asarray([[0.0], [1.0], [2.0]])
    found = interpolate(np, x, np.zeros(3), np.zeros(2))
    assert np.isfinite(found).all()


@pytest.mark.parametrize("n", [1, 2, 3, 7, 300])
def test_draws_come_evenly_from_all_chains(n):
    """Chains in boxes of their own show whose draw it is: ⌊n/chains⌋ or one more from each."""
    walk = schuss.trajectory(
        value_and_grad=lambda x: bowl(np, x - np.round(x / 100) * 100),
        init=np.asarray([[0.3, 0.1], [100.3, 0.2], [200.1, 0.3]]),
        sampler=schuss.ESH(step_size=0.1),
        steps=20,
    )
    owner = np.round(walk.ergodic_sample(n, seed=4)[:, 0] / 100).astype(int)
    counts = np.bincount(owner, minlength=3)
    assert counts.sum() == n and counts.max() - counts.min() <= 1


def test_draws_are_uniform_in_time():
    """Shares of 30 000 draws in ten equal stretches of time, chi-square at an error rate of 1e-6.

    A path in one dimension whose position says the time: a straight line, without force.
    """
    line = schuss.trajectory(
        value_and_grad=lambda x: (np.zeros(len(x)), np.zeros_like(x)),
        init=np.zeros((1, 2)),
        velocity=np.asarray([[1.0, 0.0]]),
        sampler=schuss.ESH(step_size=0.1),
        steps=37,
    )
    draws = line.ergodic_sample(30_000, seed=shifted(1))[:, 0]
    counts = np.histogram(draws, bins=10, range=(0, 3.7))[0]
    assert counts.sum() == 30_000
    assert np.sum((counts - 3000) ** 2 / 3000) < 45.1


def test_slow_stretches_get_fewer_draws():
    """Time goes with e^r: the share before half of the states, to 5 sigma of 20 000 draws."""
    walk = path(chains=1, steps=60)
    middle = walk.time[30, 0] / walk.time[-1, 0]
    assert abs(middle - 0.5) > 0.03
    rng = np.random.default_rng(shifted(5))
    moments = rng.uniform(0, walk.time[-1, 0], 20_000)
    # The same stream of random numbers would only repeat the code: positions tell the time here.
    drawn = walk.ergodic_sample(20_000, seed=shifted(2))
    nearest = np.argmin(np.sum((drawn[:, None] - walk.x[None, :, 0]) ** 2, axis=-1), axis=1)
    expected = interpolate(np, walk.x[:, 0], walk.time[:, 0], moments)
    theirs = np.argmin(np.sum((expected[:, None] - walk.x[None, :, 0]) ** 2, axis=-1), axis=1)
    early, truth = np.mean(nearest < 30), np.mean(theirs < 30)
    assert early == pytest.approx(truth, abs=5 * (0.5 / 20_000) ** 0.5)
    assert early == pytest.approx(middle, abs=0.03)
