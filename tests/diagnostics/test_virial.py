"""The virial of exact samples is the temperature; its errors against leaving out chains by hand."""

import numpy as np
import pytest
from seeds import shifted

from schuss.diagnostics import virial, virial_bias

SCALE = np.array([0.1, 1.0, 5.0])


def gaussian(seed, draws, chains, temperature=1.0):
    z = np.random.default_rng(seed).normal(size=(draws, chains, 3))
    x = 100 + np.sqrt(temperature) * SCALE * z
    return x, (x - 100) / SCALE**2


@pytest.mark.parametrize("temperature", [1.0, 1.5])
def test_exact_gaussian(temperature):
    """Within 5 standard errors, which are √2/√20 000 = 1 %."""
    x, g = gaussian(0, 200, 100, temperature)
    got = virial(x, g, temperature=temperature)
    assert np.all(np.abs(got.value - 1) < 5 * got.standard_error)
    assert got.standard_error == pytest.approx(np.full(3, np.sqrt(2 / 20_000)), rel=0.4)
    assert got.standard_error.shape == got.value.shape == (3,)


def test_exact_quartic():
    """E = Σ x⁴/4: x g = x⁴, and x⁴/4 ~ Gamma(1/4). Five standard errors."""
    rng = np.random.default_rng(shifted(1))
    x = (4 * rng.gamma(0.25, size=(4000, 3))) ** 0.25 * rng.choice([-1, 1], size=(4000, 3))
    got = virial(x, x**3)
    assert np.all(np.abs(got.value - 1) < 5 * got.standard_error)
    assert np.all(got.standard_error < 0.05)


def test_wrong_width_is_seen():
    x, g = gaussian(2, 100, 50)
    assert virial(100 + 1.2 * (x - 100), 1.2 * g).value == pytest.approx(1.44, rel=0.15)
    bias = virial_bias(100 + 1.2 * (x - 100), 1.2 * g)
    assert bias.value == pytest.approx(0.44**2, rel=0.2)
    assert bias.value > 5 * bias.standard_error


def test_weights_correct_the_temperature():
    """States at T = 1.5 with weight exp(−(1 − 1/T) E) have virial 1; without, T. Five errors."""
    x, g = gaussian(3, 300, 100, temperature=1.5)
    energy = np.sum(g * (x - 100), axis=2) / 2
    got = virial(x, g, np.exp(-energy / 3))
    assert np.all(np.abs(got.value - 1) < 5 * got.standard_error)
    assert np.all(virial(x, g).value > 1.3)


def test_equals_the_definition_and_leaving_out_by_hand():
    rng = np.random.default_rng(4)
    x, g = rng.normal(size=(2, 7, 4, 2))
    w = rng.uniform(size=(7, 4))

    def plain(x, g, w):
        mean = np.average(x, axis=(0, 1), weights=w)
        return np.average((x - mean) * g, axis=(0, 1), weights=w) / 1.7

    keep = [np.delete(np.arange(4), c) for c in range(4)]
    without = np.array([plain(x[:, k], g[:, k], w[:, k]) for k in keep])
    bias = np.mean((1 - without) ** 2, axis=1)
    got, got_bias = virial(x, g, w, 1.7), virial_bias(x, g, w, 1.7)
    assert got.value == pytest.approx(plain(x, g, w))
    assert got.standard_error == pytest.approx(np.sqrt(3) * np.std(without, axis=0))
    assert got_bias.value == pytest.approx(np.mean((1 - plain(x, g, w)) ** 2))
    assert got_bias.standard_error == pytest.approx(np.sqrt(3) * np.std(bias))


def test_one_state_per_chain():
    x, g = gaussian(5, 1, 200)
    w = np.random.default_rng(6).uniform(size=200)
    assert virial(x[0], g[0], w).value == pytest.approx(virial(x, g, w[None]).value)


def test_a_single_chain_has_no_error():
    x, g = gaussian(7, 50, 1)
    assert np.isnan(virial(x, g).standard_error).all()
    assert np.isnan(virial_bias(x, g).standard_error)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: virial(x, x[:-1]), "g must have the shape of x"),
        (lambda x: virial(x[0, 0], x[0, 0]), r"x must have shape \(draws, chains, dim\)"),
        (lambda x: virial(x, x * np.nan), "g must be finite"),
        (lambda x: virial(x, x, np.ones(3)), r"weights must have shape \(5, 4\)"),
        (lambda x: virial_bias(x, x, temperature=0.0), "temperature must be positive and finite"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call(np.ones((5, 4, 2)))
