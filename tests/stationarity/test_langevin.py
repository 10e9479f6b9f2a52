"""Unadjusted Langevin has a stationary law of its own: N(0, 1/(1 − ε²/4)) for N(0, 1).

x' = (1 − ε²/2)x + εz is stationary where V = (1 − ε²/2)²V + ε².
"""

import pytest

from schuss import ULA
from schuss.targets import isotropic

from .estimate import assert_exact, stationary

pytestmark = pytest.mark.statistics


@pytest.mark.parametrize("step_size", [0.5, 1.0, 1.5])
def test_variance_of_ula(step_size):
    """5 sigma, three coordinates: p = 2e-6."""
    got = stationary(ULA(step_size), isotropic(3), chains=2000, steps=2000, burn=200)
    variance = 1 / (1 - step_size**2 / 4)
    assert variance == pytest.approx((1 - step_size**2 / 2) ** 2 * variance + step_size**2)
    assert got.square.sigmas(variance) < 5
    assert got.energy.sigmas(1.5 * variance) < 5
    assert got.x.sigmas(0.0) < 5
    assert got.square.sigmas(1.0) > 30


@pytest.mark.slow
def test_small_steps_are_unbiased():
    assert_exact(ULA(0.05), isotropic(3), chains=4000, steps=20_000, resolution=0.01)
