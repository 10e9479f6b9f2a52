"""Weights of states in closed form, and Jarzynski's estimate of log Z."""

import math

import numpy as np
import pytest

import schuss
from schuss.core import weights


def test_closed_forms():
    energy, r = np.asarray([1.5, -2.0]), np.asarray([0.3, -0.7])
    np.testing.assert_allclose(weights.work(energy, r, 4), energy + 3 * r)
    np.testing.assert_allclose(weights.hamiltonian(energy, r, 2.5), energy + 2.5 * r)
    np.testing.assert_allclose(weights.log_weight(energy, 4, 4), -energy / 4)
    np.testing.assert_allclose(weights.log_weight(energy, 3, 4), 0)
    np.testing.assert_allclose(weights.log_weight_by_speed(r, 4, 4), r)
    np.testing.assert_allclose(weights.log_weight_by_speed(r, 3, 4), 0)
    np.testing.assert_allclose(weights.jarzynski(energy, 2.0, r, 3.0, 3), energy - 2 + r)
    np.testing.assert_allclose(weights.jarzynski_exact(energy, 2.0, r, 4), energy - 2 - 3 * r)


@pytest.mark.parametrize("kappa", [2.0, 3.0, 5.0])
def test_weights_differ_by_a_constant_along_an_exact_path(kappa):
    """E + κr = const makes the weights by energy, by speed and by e^(−W) one and the same."""
    r = np.linspace(-1, 2, 9)
    energy = 1.7 - kappa * r
    by_energy = weights.log_weight(energy, kappa, 3)
    by_speed = weights.log_weight_by_speed(r, kappa, 3)
    np.testing.assert_allclose(np.diff(by_energy - by_speed), 0, atol=1e-12)
    np.testing.assert_allclose(np.diff(by_energy + weights.work(energy, r, 3)), 0, atol=1e-12)


@pytest.mark.parametrize("kappa", [2.0, 3.0, 6.0])
def test_jarzynski_forms_agree_where_the_hamiltonian_is_conserved(kappa):
    """E(x₀) = E(x_t) + κ r_t."""
    r, first, reference = np.linspace(-1, 1, 5), 0.8, 0.3
    paper = weights.jarzynski(reference, first, r, kappa, 3)
    exact = weights.jarzynski_exact(reference, first - kappa * r, r, 3)
    np.testing.assert_allclose(paper, exact, atol=1e-14)


COVARIANCE = np.asarray([[0.15, 0.03, 0.0], [0.03, 0.14, 0.02], [0.0, 0.02, 0.16]])
PRECISION = np.linalg.inv(COVARIANCE)


def precise_gaussian(x):
    g = x @ PRECISION
    return 0.5 * np.sum(x * g, axis=1), g


def log_z(path, x, *, exact):
    """The estimate at the end and its standard error, shifted to Z itself."""
    logs = path.jarzynski(0.5 * np.sum(x * x, axis=1), exact=exact)[-1]
    w = np.exp(logs)
    constant = 1.5 * math.log(2 * math.pi)
    return np.log(w.mean()) + constant, w.std() / w.mean() / len(w) ** 0.5


TRUTH = 0.5 * math.log((2 * math.pi) ** 3 * np.linalg.det(COVARIANCE))


def flow(epsilon, steps, kappa=None, seed=0, chains=20_000):
    x = np.random.default_rng(seed).standard_normal((chains, 3))
    sampler = schuss.ESH(step_size=epsilon, kappa=kappa)
    path = schuss.trajectory(
        value_and_grad=precise_gaussian,
        init=x,
        sampler=sampler,
        steps=steps,
        every=steps,
        seed=seed,
    )
    return path, x


def test_jarzynski_at_a_small_step():
    """Covariance eigenvalues in .1….2, E₀ = ½|x|²: both forms within four standard errors."""
    eigenvalues = np.linalg.eigvalsh(COVARIANCE)
    assert eigenvalues.min() >= 0.1 and eigenvalues.max() <= 0.2
    path, x = flow(0.05, 100)
    for exact in (True, False):
        found, error = log_z(path, x, exact=exact)
        assert error < 0.02
        assert found == pytest.approx(TRUTH, abs=4 * error)


@pytest.mark.parametrize("kappa", [2.0, 3.0, 6.0])
def test_jarzynski_at_a_large_step(kappa):
    """ε = 1, beyond the size of the target: the exact form holds to four standard errors, any κ.

    The paper's (κ = d) is off by twenty: the Hamiltonian isn't conserved at such a step.
    """
    path, x = flow(1.0, 10, kappa)
    found, error = log_z(path, x, exact=True)
    assert error < 0.1
    assert found == pytest.approx(TRUTH, abs=4 * error)
    if kappa == 3:
        found, error = log_z(path, x, exact=False)
        assert abs(found - TRUTH) > 10 * error
