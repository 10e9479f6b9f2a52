"""The refreshment length of chains whose autocorrelation is known."""

import math

import numpy as np
import pytest

from schuss.tuning import length

DIM = 4


def autoregression(rho, n=6000, chains=4, seed=0):
    """x ← ρx + √(1 − ρ²) z: τ = (1 + ρ)/(1 − ρ), and (1 + ρ²)/(1 − ρ²) for its square."""
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((n, chains, DIM))
    x = np.empty_like(noise)
    x[0] = noise[0]
    for t in range(1, n):
        x[t] = rho * x[t - 1] + math.sqrt(1 - rho**2) * noise[t]
    return x


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_times_of_an_autoregression(rho):
    """96 000 values: τ comes out to a few percent; 15 % is 4 sigma at ρ = .9."""
    tau, square = length.times(autoregression(rho) + 100)
    assert tau == pytest.approx((1 + rho) / (1 - rho), rel=0.15)
    assert square == pytest.approx((1 + rho**2) / (1 - rho**2), rel=0.15)


def test_length_is_what_the_times_say():
    """ρ = .9: τ = 19 > τ₂ = 9.5, so the factor is 1: L = ε (τ − ½)."""
    found = length.refreshment(0.5, autoregression(0.9), last=8.0)
    assert found == pytest.approx(0.5 * 18.5, rel=0.15)


def test_slow_squares_shorten_it():
    """Signs that change at random around a slow size: τ = 1 and τ₂ large."""
    size = np.exp(0.5 * autoregression(0.95, seed=1))
    x = size * np.random.default_rng(2).choice([-1.0, 1.0], size.shape)
    tau, square = length.times(x)
    assert square > 5 * tau
    step = 5000.0
    expected = step * (tau - 0.5) * (tau / square) ** 2
    assert 0.5 * math.sqrt(DIM) < expected < 30 * math.sqrt(DIM)
    assert length.refreshment(step, x, last=expected) == pytest.approx(expected)


def test_bounds():
    """[½, 30]√d, and four times more or less than the last one."""
    x = autoregression(0.9)
    assert length.refreshment(1e-6, x, last=2.0) == 0.5 * math.sqrt(DIM)
    assert length.refreshment(1e6, x, last=30.0) == 30 * math.sqrt(DIM)
    assert length.refreshment(1e6, x, last=2.0) == 8.0
    assert length.refreshment(1e-6, x, last=40.0) == 10.0
    assert isinstance(length.refreshment(1.0, x, last=2.0), float)
