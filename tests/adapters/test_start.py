"""Draws of a prior in the unconstrained variables, where some values lie at infinity."""

import numpy as np
import pytest

from schuss.adapters.start import finite


def test_values_on_a_bound_are_drawn_again():
    def draw(rng, n):
        x = rng.standard_normal((n, 2))
        return np.where(x > 1, np.inf, x)

    x = finite(draw)(np.random.default_rng(0), 1000)
    assert x.shape == (1000, 2) and np.isfinite(x).all()
    with pytest.raises(ValueError, match="keep falling on the bounds"):
        finite(lambda rng, n: np.full((n, 2), -np.inf))(np.random.default_rng(0), 3)


def test_values_outside_the_support_are_an_error():
    with pytest.raises(ValueError, match="outside the support"):
        finite(lambda rng, n: np.full((n, 2), np.nan))(np.random.default_rng(0), 3)
