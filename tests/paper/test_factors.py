"""The factor model: its gradient by differences, and its truth by a Gaussian approximation."""

import numpy as np

from schuss.paper import factors
from schuss.paper.item import Settings

from .running import run


def test_the_gradient_is_that_of_the_energy():
    x, weights, noise = factors.model(3)
    value_and_grad = factors.posterior(x, weights, noise)
    z = np.random.default_rng(0).standard_normal((3, factors.FACTORS))
    _, gradient = value_and_grad(z)
    for k in range(factors.FACTORS):
        nudge = 1e-5 * np.eye(factors.FACTORS)[k]
        slope = (value_and_grad(z + nudge)[0] - value_and_grad(z - nudge)[0]) / 2e-5
        np.testing.assert_allclose(gradient[:, k], slope, rtol=1e-5, atol=1e-5)


def test_moments_of_one_image_are_weighted_means():
    class Path:
        x = np.asarray([[[9.0]], [[1.0]], [[3.0]]])[..., [0] * factors.FACTORS]
        energy = np.asarray([[0.0], [0.0], [factors.FACTORS * np.log(3)]])

    mean, square = factors._moments(Path, 1, weighted=True)[:, 0, 0]
    # The second half: 1 with weight 1, 3 with weight e^(−log 3).
    np.testing.assert_allclose((mean, square), (1.5, 3.0))


def test_small():
    found = run(factors.ITEM, Settings(quick=True))
    assert set(found["rows"]) == set(factors.KINDS)
    assert "nan" not in factors.ITEM.tell(found)
