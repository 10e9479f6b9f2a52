"""No map of any kind where coordinates need none."""

import math

import numpy as np
import pytest

from schuss.tuning import conditional, curvature, reparametrise


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("dim", [5, 20])
@pytest.mark.parametrize("maps", [conditional, reparametrise, curvature])
@pytest.mark.parametrize("kind", ["diagonal", "correlated", "heavy", "logistic"])
def test_nothing_where_there_is_nothing(maps, kind, dim, seed):
    """Gaussians, heavy tails, and a logistic regression with draws that are roughly from it.

    Draws are correlated in time like those of a chain, n/20 effective ones.
    """
    rng = np.random.default_rng([seed, dim])
    x = chain(rng, 800, dim)
    if kind == "diagonal":
        x = x * np.exp(rng.standard_normal(dim))
        g = x / np.var(x, axis=0)
    elif kind == "correlated":
        factor = rng.standard_normal((dim, dim)) + 0.2 * np.eye(dim)
        x, g = x @ factor.T, x @ np.linalg.inv(factor)
    elif kind == "heavy":
        x = x / np.sqrt(np.mean(np.stack([chain(rng, 800, dim) ** 2 for _ in range(4)]), axis=0))
        g = 5 * x / (4 + x**2)
    else:
        design = rng.standard_normal((60, dim))
        x = 0.5 * x
        g = x + (1 / (1 + np.exp(-x @ design.T)) - 0.5) @ design
    assert maps.fit(x, g, np.random.default_rng(0)) is None


def chain(rng, n, dim, rho=0.9):
    """An autoregressive process with standard normal marginals."""
    x = np.empty((n, dim))
    x[0] = rng.standard_normal(dim)
    for t in range(1, n):
        x[t] = rho * x[t - 1] + math.sqrt(1 - rho**2) * rng.standard_normal(dim)
    return x


@pytest.mark.parametrize("maps", [conditional, reparametrise, curvature])
@pytest.mark.parametrize("shape", [(20, 4), (500, 2)])
def test_too_little_to_go_by(maps, shape):
    x, g = np.random.default_rng(5).standard_normal((2, *shape))
    assert maps.fit(x, g, np.random.default_rng(0)) is None
