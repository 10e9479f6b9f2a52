"""The joint record of ESS and R-hat."""

import numpy as np
import pytest

from schuss.diagnostics import convergence, ess, rhat


def test_good_chains():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1000, 4, 3))
    result = convergence(x, np.sum(x**2, axis=2) / 2)
    assert result.ess_x.shape == result.rhat_square.shape == (3,)
    assert result.worst_ess > 3000
    assert result.worst_rhat < 1.01


def test_columns_are_x_centred_squares_and_energy():
    rng = np.random.default_rng(1)
    x, energy = rng.normal(size=(100, 4, 2)) + 5, rng.normal(size=(100, 4))
    weights = rng.uniform(size=(100, 4))
    for w in (None, weights):
        mean = np.average(x, axis=(0, 1), weights=w)
        result = convergence(x, energy, w)
        assert result.ess_x == pytest.approx(ess(x, w))
        assert result.ess_square == pytest.approx(ess((x - mean) ** 2, w))
        assert result.rhat_square == pytest.approx(rhat((x - mean) ** 2, w))
        assert result.ess_energy == pytest.approx(ess(energy[:, :, None], w)[0])
        assert result.rhat_energy == pytest.approx(rhat(energy[:, :, None], w)[0])
        assert result.worst_ess == min(*result.ess_x, *result.ess_square, result.ess_energy)
        assert result.worst_rhat == max(*result.rhat_x, *result.rhat_square, result.rhat_energy)


def test_sees_chains_that_keep_their_own_radius():
    """Chains on circles of different radius agree on the mean and on nothing else."""
    rng = np.random.default_rng(2)
    angle = rng.uniform(0, 2 * np.pi, size=(500, 4))
    radius = np.array([0.3, 0.8, 1.3, 2.0])
    x = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=2)
    result = convergence(x, np.sum(x**2, axis=2) / 2)
    assert result.worst_rhat > 1.2
    assert result.worst_rhat >= result.rhat_energy > 1.2


def test_bad_input():
    x = np.zeros((10, 2, 3))
    with pytest.raises(ValueError, match=r"energy must have shape \(10, 2\) like x"):
        convergence(x, np.zeros((9, 2)))
    with pytest.raises(ValueError, match="energy must be finite"):
        convergence(x, np.full((10, 2), np.nan))
    with pytest.raises(ValueError, match="x needs at least 4 draws"):
        convergence(x[:3], np.zeros((3, 2)))
