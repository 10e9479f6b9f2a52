"""The Fréchet distance against closed forms and a general matrix root."""

import numpy as np
import pytest
from scipy.linalg import sqrtm

from schuss.ebm.frechet import frechet

RNG = np.random.default_rng(0)


def test_a_shift_costs_its_square():
    x = RNG.standard_normal((50, 6))
    assert frechet(x, x) == pytest.approx(0, abs=1e-10)
    assert frechet(x, x + np.arange(6)) == pytest.approx(np.sum(np.arange(6) ** 2))


def test_a_scale_costs_the_square_of_its_difference():
    """Σ₂ = s²Σ₁ commutes with Σ₁: the distance is (s − 1)² tr Σ₁."""
    x = RNG.standard_normal((80, 5))
    x = x - x.mean(axis=0)
    trace = np.trace(np.cov(x.T))
    assert frechet(x, 3 * x) == pytest.approx(4 * trace)


def test_against_a_general_root():
    x = RNG.standard_normal((40, 4)) @ RNG.standard_normal((4, 4))
    y = RNG.standard_normal((40, 4)) @ RNG.standard_normal((4, 4)) + 1
    one, two = np.cov(x.T), np.cov(y.T)
    apart = x.mean(axis=0) - y.mean(axis=0)
    right = apart @ apart + np.trace(one + two - 2 * np.real(sqrtm(one @ two)))
    assert frechet(x, y) == pytest.approx(right)
    assert frechet(y, x) == pytest.approx(right)


def test_fewer_samples_than_features():
    x, y = RNG.standard_normal((2, 5, 20))
    assert np.isfinite(frechet(x, y)) and frechet(x, y) > 0


def test_what_is_refused():
    with pytest.raises(ValueError, match="equally many"):
        frechet(np.zeros((4, 2)), np.zeros((5, 2)))
    with pytest.raises(ValueError, match="features must be finite"):
        frechet(np.full((4, 2), np.nan), np.zeros((4, 2)))
