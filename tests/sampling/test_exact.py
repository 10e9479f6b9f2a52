"""The tuned sampler is exact: known moments to 5 sigma, and ranks of truths that are uniform."""

import numpy as np
import pytest
from scipy.stats import chi2, rankdata
from seeds import shifted

import schuss

from .targets import ENERGY, MEAN, SECOND, quietly, sigmas


def assert_right(found, mean, second, energy, resolution):
    """Within 5 standard errors by the scatter of 32 chains: p = 2e-5 for each of 2d + 1 numbers.

    `resolution` bounds the errors in units of the deviation: a test can't pass by knowing nothing.
    """
    for values, truth in (
        (found.x, mean),
        (found.x**2, second),
        (found.stats.energy, energy),
    ):
        away, error = sigmas(values, truth)
        assert np.all(error < resolution * values.std(axis=(0, 1))), error
        assert np.all(away < 5), (away, values.mean(axis=(0, 1)), truth)


def test_log_gamma_variables():
    """Skewed, with an exponential wall on one side."""
    found = quietly(draws=1000, chains=32, seed=shifted(5))
    assert found.stats.exact
    assert_right(found, MEAN, SECOND, ENERGY, 0.03)


@pytest.mark.slow
@pytest.mark.parametrize("thin", [1, 3])
def test_log_gamma_variables_sharply(thin):
    found = quietly(draws=20_000 // thin, thin=thin, chains=32, seed=shifted(6))
    assert_right(found, MEAN, SECOND, ENERGY, 0.01)


@pytest.mark.slow
@pytest.mark.parametrize("dim", [3, 5])
def test_quartic(dim):
    target = schuss.targets.quartic(dim)
    found = schuss.sample(target, draws=8000, chains=32, seed=shifted(7), progress=False)
    truth = target.truth
    assert_right(found, truth.mean, truth.second_moment, truth.energy, 0.01)


@pytest.mark.slow
def test_a_plane_and_a_line():
    for target in (schuss.targets.coupled_quartic(), schuss.targets.double_well(1)):
        found = schuss.sample(target, draws=8000, chains=32, seed=shifted(8), progress=False)
        truth = target.truth
        assert_right(found, truth.mean, truth.second_moment, truth.energy, 0.03)


# Simulation-based calibration: a parameter from its prior, data from it, draws of the posterior;
# the parameter's rank among independent draws of the posterior is uniform.


def regression(rng):
    """y = a + bt + σz with a, b ~ N(0, 1), log σ ~ N(−1, ½²), at six times."""
    times = np.linspace(-1, 1, 6)
    a, b, s = rng.standard_normal(3) * [1, 1, 0.5] + [0, 0, -1]
    y = a + b * times + np.exp(s) * rng.standard_normal(6)

    def value_and_grad(x):
        a, b, s = x.T
        scaled = (y - a[:, None] - b[:, None] * times) * np.exp(-s)[:, None]
        energy = (a**2 + b**2) / 2 + 2 * (s + 1) ** 2 + 6 * s + (scaled**2).sum(axis=1) / 2
        pull = scaled * np.exp(-s)[:, None]
        return energy, np.stack(
            [
                a - pull.sum(axis=1),
                b - pull @ times,
                4 * (s + 1) + 6 - (scaled**2).sum(axis=1),
            ],
            axis=1,
        )

    return np.array([a, b, s]), value_and_grad


def counts(rng):
    """One count of Poisson(e^x), x ~ N(1, 1): a line."""
    x = rng.standard_normal(1) + 1
    y = rng.poisson(np.exp(x[0]))

    def value_and_grad(z):
        rate = np.exp(z[:, 0])
        energy = (z[:, 0] - 1) ** 2 / 2 + rate - y * z[:, 0]
        return energy, (z[:, 0] - 1 + rate - y)[:, None]

    return x, value_and_grad


@pytest.mark.slow
@pytest.mark.parametrize("model", [regression, counts])
def test_calibration(model):
    """200 truths, their ranks among 19 draws in ten bins: χ² with 9 degrees, at p = 1e-4 for each.

    A posterior too narrow by two fifths has χ² around 67, where the limit is 34.
    """
    truths, ranks = 200, []
    for seed in range(truths):
        rng = np.random.default_rng([seed, 12])
        truth, value_and_grad = model(rng)
        found = quietly(
            value_and_grad=value_and_grad,
            init=truth + 0.1 * rng.standard_normal((4, len(truth))),
            draws=250,
            seed=shifted(seed),
        )
        chosen = rng.permutation(found.x.reshape(-1, len(truth)))[:19]
        ranks.append([rankdata(np.append(chosen[:, i], truth[i]))[-1] for i in range(len(truth))])
    for column in np.array(ranks).T:
        tally = np.histogram(column, np.arange(0.5, 21, 2))[0]
        statistic = np.sum((tally - truths / 10) ** 2) / (truths / 10)
        assert statistic < chi2.isf(1e-4, 9), tally
