"""Temperatures on lines and in planes: draws from hot states, and where runs turn cold."""

import math

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from seeds import shifted

import schuss
from schuss.sampling.tempering import resampled, too_few_low
from schuss.targets import banana

from .targets import quietly

HOT = 8.0


def hot(n, chains, seed=0):
    """Independent draws of e^(−E/T) for a round Gaussian in the plane, with E."""
    x = np.sqrt(HOT) * np.random.default_rng(seed).standard_normal((n, chains, 2))
    return x, (x**2).sum(axis=-1) / 2


def test_resampled_draws_have_the_law_of_the_target():
    """Variance 1 from 8: 40 chains of 4000 states, to 5 standard errors of the chains (p = 1e-5).

    Weights e^(−7E/8) leave a quarter of the states, the ESS is (2T − 1)/T² = .23 of them.
    """
    x, energy = hot(4000, 40)
    chosen = resampled(energy, HOT, 4000)
    assert chosen.shape == (4000, 40)
    x, energy = x[chosen, np.arange(40)], energy[chosen, np.arange(40)]
    for values, truth in ((x, 0), (x**2, 1), (energy, 1)):
        means = values.mean(axis=0)
        error = means.std(axis=0, ddof=1) / np.sqrt(40)
        assert np.all(error < 0.02) and np.all(np.abs(means.mean(axis=0) - truth) < 5 * error)


@pytest.mark.parametrize("count", [400, 100])
def test_states_are_taken_in_proportion_and_in_order(count):
    """Each as often as its share, rounded up or down."""
    _, energy = hot(400, 3)
    chosen = resampled(energy, HOT, count)
    for k in range(3):
        numbers = chosen[:, k]
        assert len(numbers) == count and np.all(np.diff(numbers) >= 0)
        w = np.exp(-(1 - 1 / HOT) * energy[:, k])
        taken = np.bincount(numbers, minlength=400)
        assert np.all(np.abs(taken - count * w / w.sum()) < 1)


def test_far_energies_do_not_overflow():
    _, energy = hot(50, 2)
    chosen = resampled(energy + np.array([1e7, -1e7]), HOT, 50)
    np.testing.assert_array_equal(chosen, resampled(energy, HOT, 50))


def test_few_are_low_where_a_lower_place_was_met():
    """Of 4000 states .12 are within 1 of the bottom, which has to be theirs."""
    _, energy = hot(4000, 1)
    assert not too_few_low(energy, 0.0, HOT)
    assert too_few_low(energy, -3.0, HOT)
    assert not too_few_low(energy, -3.0, 1.0)


def test_few_are_low_where_few_have_the_weight():
    _, energy = hot(4000, 1)
    energy[:40] -= 12.0
    assert too_few_low(energy, energy.min(), HOT)


def test_a_plane_gives_as_many_draws_as_were_asked_for():
    plane = schuss.targets.coupled_quartic()
    pair = lambda x: (plane.energy(np, x), plane.gradient(np, x))  # noqa: E731
    found = quietly(value_and_grad=pair, init=np.zeros(2), draws=60)
    assert found.x.shape == (4, 60, 2) == found.draws.shape
    np.testing.assert_allclose(
        found.stats.energy, plane.energy(np, found.x.reshape(-1, 2)).reshape(4, 60), atol=1e-9
    )
    np.testing.assert_allclose(
        found.stats.gradient.reshape(-1, 2), plane.gradient(np, found.x.reshape(-1, 2)), atol=1e-8
    )


MEASURED = np.array([1.0, -0.5, 0.3, 2.0, 0.1])


def unknown_width(x):
    """Five draws of a normal density with unknown mean and log sd, flat priors."""
    return jnp.sum(-0.5 * ((MEASURED - x[0]) * jnp.exp(-x[1])) ** 2 - x[1])


def needle(x):
    """Half of the mass in N(0, I), half in N(0, 0.03² I)."""
    return two_widths(x, 0.03)


def two_widths(x, narrow):
    square = jnp.sum(x**2)
    return jnp.logaddexp(-square / 2, -square / 2 / narrow**2 - 2 * math.log(narrow))


def wider_needle(x):
    """Half of the mass in N(0, I), half in N(0, 0.08² I)."""
    return two_widths(x, 0.08)


def in_the_plane(logdensity, seed, **options):
    options = {"draws": 1000, "progress": False} | options
    return schuss.sample(logdensity=logdensity, init=np.zeros(2), seed=seed, **options)


def by_temperature(logdensity, seed, **options):
    """A run, and its gradients at the last state of each temperature, in order of time."""
    last = {}

    def callback(view):
        last[view.state.temperature] = view.gradients

    return in_the_plane(logdensity, seed, callback=callback, **options), last


@pytest.mark.statistics
@pytest.mark.parametrize("seed", range(3))
def test_heavy_tails_in_the_plane_are_sampled_cold(seed):
    """At T = 8 the density of five draws of unknown width is improper.

    The mean is Student's t with 4 degrees of freedom; quantiles to five standard errors at an
    effective sample of 1000: one false alarm in a million.
    """
    found, gradients = by_temperature(unknown_width, shifted(seed))
    assert list(gradients) == [HOT, 1] and gradients[HOT] < 5000 and found.verdict.converged
    scale = MEASURED.std(ddof=1) / 5**0.5
    for p in (0.05, 0.5, 0.95):
        below = np.mean(found.x[..., 0] < MEASURED.mean() + scale * stats.t.ppf(p, 4))
        assert below == pytest.approx(p, abs=5 * (p * (1 - p) / 1000) ** 0.5)


@pytest.mark.statistics
def test_a_mode_too_narrow_for_the_heat_is_sampled_cold():
    """The share within 0.48 is 0.554 and known to 5 standard errors of 400 effective draws."""
    found, gradients = by_temperature(wider_needle, shifted(1), draws=400)
    assert list(gradients) == [HOT, 1] and found.verdict.converged
    inside = np.mean(np.sum(found.x**2, axis=-1) < 0.48**2)
    assert inside == pytest.approx(0.554, abs=5 * 0.5 / 400**0.5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::schuss.NotConverged")
def test_a_narrow_mode_is_rarely_missed_in_silence():
    """Where no descent falls into it nobody knows of it: at 1 of 24, 3 of 16 are so once in 40."""
    missed = 0
    for seed in range(16):
        found = in_the_plane(needle, shifted(seed), draws=400)
        inside = np.mean(np.sum(found.x**2, axis=-1) < 0.18**2)
        missed += found.verdict.converged and abs(inside - 0.508) > 5 * 0.5 / 400**0.5
    assert missed < 3


class Stop(Exception):
    pass


def stopped(sampled, place, gradients):
    """A run that is stopped after so many gradients, resumed, and the same run as a whole."""

    def stop(view):
        if view.gradients >= gradients:
            raise Stop

    with pytest.raises(Stop):
        sampled(checkpoint=place, callback=stop)
    return sampled(checkpoint=place), sampled()


@pytest.mark.filterwarnings("ignore::schuss.NotConverged")
@pytest.mark.parametrize("gradients", [400, 2500], ids=["hot", "cold"])
def test_a_run_that_turned_cold_is_resumed(tmp_path, gradients):
    def sampled(**options):
        return in_the_plane(unknown_width, 3, draws=200, **options)

    resumed, whole = stopped(sampled, tmp_path / "run.zarr", gradients)
    np.testing.assert_array_equal(resumed.x, whole.x)


@pytest.mark.statistics
def test_a_gaussian_in_the_plane_stays_hot():
    _, gradients = by_temperature(lambda x: -jnp.sum(x**2) / 2, shifted(0), draws=200)
    assert list(gradients) == [HOT]


@pytest.mark.statistics
def test_draws_from_the_heat_are_as_far_apart_as_they_need_to_be():
    """On the banana hot states are 50 times more alike than cooled ones, of which a fifth count."""
    found = schuss.sample(banana(), seed=shifted(0), progress=False)
    assert sum(found.stats.gradients.values()) < 300_000
    assert found.verdict.numbers["ess"] > 500
