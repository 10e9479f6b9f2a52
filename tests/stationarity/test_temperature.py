"""What the flow samples: e^(−(d−1)E/κ), so κ = d needs weights and κ = d − 1 must have none.

Velocities are refreshed, so that the flow is ergodic, and steps are small. Both what is right and
what is wrong are asserted, to 5 sigma (p = 6e-7 each) and by more than 50.
"""

import functools

import numpy as np
import pytest
from seeds import shifted

import schuss
from schuss import ESH
from schuss.targets import coupled_quartic, quartic

from .estimate import weighted

pytestmark = pytest.mark.statistics

TARGETS = {2: coupled_quartic(), 5: quartic(5)}


@functools.cache
def mean_energy(dim, beta):
    """E[E] under e^(−βE): by quadrature in two dimensions; d/(4β) for Σx⁴/4, a Gamma variable."""
    if dim == 5:
        return dim / (4 * beta)
    side = np.linspace(-7, 7, 1401)
    x = np.stack(np.meshgrid(side, side), axis=-1)
    energy = np.sum(x**4, axis=-1) / 8 + x[..., 0] ** 2 / 2 + (x[..., 1] - x[..., 0]) ** 2 / 2
    p = np.exp(-beta * energy)
    return np.sum(p * energy) / np.sum(p)


@functools.cache
def states(dim, kappa, weight="energy"):
    target = TARGETS[dim]
    return schuss.trajectory(
        target,
        init=target.sample(np.random.default_rng(shifted(0)), 500),
        sampler=ESH(0.05, kappa=kappa, refresh=2 * dim**0.5, weight=weight),
        steps=12_000,
        every=10,
        seed=shifted(1),
        engine="jax",
    )


def estimate(path, log_weight):
    """After 2000 steps in which the start is forgotten."""
    return weighted(path.energy[201:], np.exp(log_weight[200:]))


def test_quadrature_finds_the_numbers_of_the_theory():
    assert mean_energy(2, 1.0) == pytest.approx(0.781, abs=5e-4)
    assert mean_energy(2, 0.5) == pytest.approx(1.479, abs=5e-4)


@pytest.mark.parametrize("dim", TARGETS)
def test_kappa_d(dim):
    path = states(dim, float(dim))
    truth, hot = mean_energy(dim, 1.0), mean_energy(dim, (dim - 1) / dim)
    right = estimate(path, path.log_weight)
    assert right.error < 0.003 and right.sigmas(truth) < 5
    wrong = estimate(path, np.zeros_like(path.log_weight))
    assert wrong.error < 0.006 and wrong.sigmas(hot) < 5
    assert wrong.sigmas(truth) > 50
    np.testing.assert_allclose(path.log_weight, -path.energy[1:] / dim, rtol=1e-12)


@pytest.mark.parametrize("dim", TARGETS)
def test_kappa_one_less(dim):
    path = states(dim, dim - 1.0)
    truth, cold = mean_energy(dim, 1.0), mean_energy(dim, 1 + 1 / dim)
    right = estimate(path, path.log_weight)
    assert right.error < 0.003 and right.sigmas(truth) < 5
    np.testing.assert_array_equal(path.log_weight, 0)
    wrong = estimate(path, -path.energy[1:] / dim)
    assert wrong.error < 0.003 and wrong.sigmas(cold) < 5
    assert wrong.sigmas(truth) > 50


@pytest.mark.parametrize("kappa", [3.0, 8.0])
def test_other_divisors_are_temperatures(kappa):
    path = states(2, kappa)
    hot = estimate(path, np.zeros_like(path.log_weight))
    assert hot.sigmas(mean_energy(2, 1 / kappa)) < 5
    assert estimate(path, path.log_weight).sigmas(mean_energy(2, 1.0)) < 5
