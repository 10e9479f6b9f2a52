"""Funnels are seen from their mouths; what only looks like one from afar isn't.

Each case is ten seeds of exact draws: a check that failed once in ten runs would be seen with
probability 0.65 in each case.
"""

import numpy as np
import pytest

from schuss import targets
from schuss.results.checks.evidence import Evidence
from schuss.results.checks.necks import necks

CHAINS, DRAWS = 4, 250


def found(x, g, ess=100.0, charted=False):
    dim = x.shape[-1]
    names = tuple(f"x[{i}]" for i in range(dim))
    x, g = (np.reshape(part, (DRAWS, CHAINS, dim)) for part in (x, g))
    energy = np.zeros((DRAWS, CHAINS))
    evidence = Evidence(x, energy, g, None, names, tuple(range(CHAINS)), 1.0, None, charted)
    return necks(evidence, np.full(dim, ess)).reasons


def mouth(rng):
    """A funnel of which only the wide half, y < 0, was seen."""
    target = targets.funnel(8)
    x = target.sample(rng, 8 * DRAWS * CHAINS)
    return target, x[x[:, 0] < 0][: DRAWS * CHAINS]


def correlated(rng):
    scale = np.linalg.qr(rng.standard_normal((10, 10)))[0] * np.logspace(-2, 1, 10)
    x = rng.standard_normal((DRAWS * CHAINS, 10)) @ scale.T
    return x, np.linalg.solve(scale @ scale.T, x.T).T


def heavy(rng, freedom=4, dim=10):
    """A multivariate t: all widths vary together, and no coordinate sets them."""
    x = rng.standard_normal((DRAWS * CHAINS, dim))
    x = x / np.sqrt(rng.chisquare(freedom, (DRAWS * CHAINS, 1)) / freedom)
    return x, (freedom + dim) * x / (freedom + (x**2).sum(axis=-1, keepdims=True))


def slight(rng):
    """Widths e^(0.15 y)."""
    y, z = rng.standard_normal((DRAWS * CHAINS, 1)), rng.standard_normal((DRAWS * CHAINS, 9))
    x = z * np.exp(0.15 * y)
    g = x * np.exp(-0.3 * y)
    return np.hstack([y, x]), np.hstack([y + 9 * 0.15 - 0.15 * (z**2).sum(1, keepdims=True), g])


@pytest.mark.parametrize("seed", range(10))
def test_the_mouth_of_a_funnel_tells_of_its_neck(seed):
    target, x = mouth(np.random.default_rng(seed))
    (reason,) = found(x, target.gradient(np, x))
    assert reason.what.startswith("x[0] sets the widths of x[1], x[2]")
    assert "non-centred" in reason.remedy
    assert not found(x, target.gradient(np, x), charted=True)


def test_independent_draws_know_the_neck():
    target, x = mouth(np.random.default_rng(0))
    assert not found(x, target.gradient(np, x), ess=0.9 * DRAWS * CHAINS)


@pytest.mark.parametrize("draws", [correlated, heavy, slight])
@pytest.mark.parametrize("seed", range(10))
def test_others_are_no_funnels(draws, seed):
    assert not found(*draws(np.random.default_rng(seed)))


def test_without_gradients_nothing_is_said():
    x = np.random.default_rng(0).standard_normal((DRAWS, CHAINS, 3))
    names = ("a", "b", "c")
    evidence = Evidence(x, x[..., 0], None, None, names, tuple(range(CHAINS)), 1.0, None)
    assert necks(evidence, np.ones(3)) == ([], {}, [])
