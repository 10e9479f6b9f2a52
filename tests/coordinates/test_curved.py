"""Curved ridges against their formula written out."""

import numpy as np
import pytest

from schuss.coordinates import Curved

DIM = 6
ORDER = (4, 0, 3, 1, 5, 2)
"""Each may follow those before it."""


def random_frame():
    rng = np.random.default_rng(0)
    earlier = np.argsort(ORDER)[:, None] > np.argsort(ORDER)
    follow, curve = 0.3 * rng.standard_normal((2, DIM, DIM)) * earlier
    return Curved(rng.standard_normal(DIM), follow, curve, np.zeros(DIM - 1))


def test_formula():
    frame = random_frame()
    z = np.random.default_rng(1).standard_normal((7, DIM))
    x = np.zeros_like(z)
    for j in ORDER:
        h = x - frame.origin
        x[:, j] = z[:, j] + (frame.follow[j] * h + frame.curve[j] * h**2).sum(axis=1)
    np.testing.assert_allclose(frame.forward(np, z), x, rtol=1e-12)


@pytest.mark.parametrize("generations", [1, 3])
def test_more_generations_than_there_are_change_nothing(generations):
    curve = np.zeros((3, 3))
    curve[1, 0] = 2.0
    frame = Curved(np.array([1.0, 0, 0]), 0 * curve, curve, np.zeros(generations))
    z = np.array([[3.0, 0.5, -1.0]])
    np.testing.assert_array_equal(frame.forward(np, z), [[3.0, 8.5, -1.0]])
    np.testing.assert_array_equal(frame.pull(np, z, np.ones((1, 3))), [[9.0, 1.0, 1.0]])
