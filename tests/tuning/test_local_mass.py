"""The mass around draws, against Gaussians whose mass is known."""

import numpy as np
import pytest

from schuss.tuning.local_mass import log_mass


def gaussian(n, mean, sd, seed=0, lift=0.0):
    """Correlated steps of draws from e^(lift − ½ Σ (x − m)²/s²), with gradients and energies."""
    rng = np.random.default_rng(seed)
    x = mean + sd * (0.3 * rng.standard_normal((n, len(sd))) + 0.5)
    return x, (x - mean) / sd**2, 0.5 * np.sum(((x - mean) / sd) ** 2, axis=-1) - lift


@pytest.mark.parametrize("dim", [1, 5, 50])
def test_gaussians_have_their_mass(dim):
    """Exactly, from few draws that lie on one side and are too close together."""
    rng = np.random.default_rng(dim)
    wide, narrow = np.exp(rng.normal(size=(2, dim)))
    one = log_mass(*gaussian(30, np.zeros(dim), wide))
    two = log_mass(*gaussian(30, np.full(dim, 9.0), narrow, 1, lift=2.0))
    want = 2 + np.sum(np.log(narrow)) - np.sum(np.log(wide))
    assert two.value - one.value == pytest.approx(want, abs=1e-9)
    assert two.error == pytest.approx(0, abs=1e-9)


def test_what_is_not_a_gaussian_has_an_error():
    x = np.random.default_rng(0).standard_normal((30, 5)) * 3
    assert log_mass(x, 4 * x**3, np.sum(x**4, axis=1)).error > 50


def test_chain_by_chain():
    parts = [gaussian(20, np.zeros(3), np.array([1.0, 2.0, 3.0]) * k, k) for k in (1, 2)]
    together = log_mass(*(np.stack(pair, axis=1) for pair in zip(*parts, strict=True)))
    np.testing.assert_allclose(together.value, [log_mass(*part).value for part in parts])


def test_a_chain_that_stood_still_shows_no_mass():
    x, g, energy = gaussian(20, np.zeros(3), np.ones(3))
    still = (np.repeat(part[:1], 20, axis=0) for part in (x, g, energy))
    both = (np.stack(pair, axis=1) for pair in zip((x, g, energy), still, strict=True))
    np.testing.assert_allclose(log_mass(*both).error, [0, np.inf], atol=1e-9)
