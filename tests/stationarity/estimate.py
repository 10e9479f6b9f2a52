"""Means over chains with their standard errors: the ruler of every test in this folder."""

from typing import NamedTuple

import numpy as np
from seeds import shifted

import schuss


class Estimate(NamedTuple):
    """A mean and its standard error from the spread between chains."""

    mean: np.ndarray
    error: np.ndarray

    def sigmas(self, truth):
        """How many standard errors lie between the mean and `truth`, at worst."""
        return float(np.max(np.abs(self.mean - truth) / self.error))


def ratio(sums, totals) -> Estimate:
    """Σ(chain sums)/Σ(chain weights); the error is that of a ratio over independent chains."""
    totals = totals.reshape(totals.shape + (1,) * (sums.ndim - 1))
    mean = sums.sum(0) / totals.sum(0)
    error = np.sqrt(np.sum((sums - mean * totals) ** 2, axis=0)) / totals.sum(0)
    return Estimate(mean, error)


def weighted(values, weights) -> Estimate:
    """Of values (steps, chains) along paths."""
    return ratio(np.sum(weights * values, axis=0), np.sum(weights, axis=0))


class Stationary(NamedTuple):
    """Estimates of E[E], E[x] and E[x²] by one sampler."""

    energy: Estimate
    x: Estimate
    square: Estimate


def stationary(sampler, target, *, chains, steps, burn=0, seed=0) -> Stationary:
    """Weighted moments of chains that start from exact samples and forget `burn` steps.

    A sampler that is exact stays exact from there: no burn-in can be too short for it.
    """
    seed = shifted(seed)
    init = target.sample(np.random.default_rng(seed), chains)
    if burn:
        warm = schuss.Sampler(sampler, steps=burn, seed=seed + 1, engine="jax")
        init = warm.run(target=target, init=init).last
    run = schuss.Sampler(sampler, steps=steps, keep="moments", seed=seed + 2, engine="jax")
    run = run.run(target=target, init=init)
    assert not run.frozen.any()
    moments = run.moments
    totals = np.exp(moments.log_total - moments.log_total.max())
    square = moments.variance + moments.mean**2
    return Stationary(
        ratio(totals * moments.energy, totals),
        ratio(totals[:, None] * moments.mean, totals),
        ratio(totals[:, None] * square, totals),
    )


def assert_exact(sampler, target, *, chains=2000, steps=1000, seed=0, resolution=0.02):
    """The one statistical test: E, x and x² within 5 sigma of the truth.

    Up to seven numbers of two sides: an exact sampler fails once in 250 000 times. `resolution`
    bounds the standard errors, so that a test can't pass by knowing nothing.
    """
    got = stationary(sampler, target, chains=chains, steps=steps, seed=seed)
    truth = target.truth
    for name, estimate, want in (
        ("energy", got.energy, truth.energy),
        ("x", got.x, truth.mean),
        ("x²", got.square, truth.second_moment),
    ):
        assert np.all(estimate.error < resolution), (name, estimate)
        assert estimate.sigmas(want) < 5, (name, estimate, want)
    return got
