"""The paper's effective sample size against its definition, product by product."""

import sys

import numpy as np
import pytest

from schuss.diagnostics import paper_ess


def brute_force(x, mean, variance, second_moment, second_variance):
    draws, chains, dim = x.shape
    result = []
    for c in range(chains):
        smallest = np.inf
        for i in range(dim):
            for column in (
                (x[:, c, i] - mean[i]) / np.sqrt(variance[i]),
                (x[:, c, i] ** 2 - second_moment[i]) / np.sqrt(second_variance[i]),
            ):
                total = 0.0
                for s in range(1, draws - 1):
                    rho = np.mean(column[:-s] * column[s:])
                    if rho <= 0.05:
                        break
                    total += (1 - s / (draws - 1)) * rho
                smallest = min(smallest, draws / (1 + 2 * total))
        result.append(smallest / draws)
    return np.array(result)


def autoregression(rng, draws, chains, dim, rho):
    x = rng.normal(size=(draws, chains, dim))
    for t in range(1, draws):
        x[t] = rho * x[t - 1] + np.sqrt(1 - rho**2) * x[t]
    return x


@pytest.mark.parametrize(("draws", "rho"), [(4, 0.5), (101, 0.0), (200, 0.9), (200, 0.999)])
def test_equals_the_definition(draws, rho):
    rng = np.random.default_rng(0)
    scale = np.array([0.5, 1.0, 2.0])
    x = autoregression(rng, draws, 7, 3, rho) * scale + 0.3
    moments = (0.3 + 0 * scale, scale**2, scale**2 + 0.09, 2 * scale**4 + 4 * 0.09 * scale**2)
    assert paper_ess(x, *moments) == pytest.approx(brute_force(x, *moments), rel=1e-10)


def test_parts_of_the_chains_do_not_matter(monkeypatch):
    x = autoregression(np.random.default_rng(1), 50, 6, 2, 0.7)
    whole = paper_ess(x, 0.0, 1.0, 1.0, 2.0)
    monkeypatch.setattr(sys.modules["schuss.diagnostics.paper_ess"], "ENTRIES", 1)
    assert paper_ess(x, 0.0, 1.0, 1.0, 2.0) == pytest.approx(whole, rel=1e-12)


def test_stuck_chain_scores_one_over_its_distance():
    """A chain at 1 sd from the mean: every ρ = 1, Σ(1 − s/(T − 1)) = (T − 2)/2, ESS = T/(T − 1)."""
    x = np.ones((200, 3, 1))
    assert paper_ess(x, 0.0, 1.0, 1.0, 2.0) == pytest.approx(np.full(3, 1 / 199))


def test_per_gradient():
    x = np.random.default_rng(2).normal(size=(100, 4, 2))
    per_draw = paper_ess(x, 0.0, 1.0, 1.0, 2.0)
    per_gradient = paper_ess(x, 0.0, 1.0, 1.0, 2.0, gradients=600)
    assert per_gradient == pytest.approx(per_draw / 6)


X = np.zeros((10, 2, 3))


@pytest.mark.parametrize(
    ("args", "options", "message"),
    [
        ((X[0], 0, 1, 1, 2), {}, r"x must have shape \(draws, chains, dim\)"),
        ((X[:3], 0, 1, 1, 2), {}, "x needs at least 4 draws, got 3"),
        ((X + np.inf, 0, 1, 1, 2), {}, "x must be finite"),
        ((X, np.zeros(2), 1, 1, 2), {}, "mean must have 3 entries like x, got 2"),
        ((X, 0, 0.0, 1, 2), {}, "variance and second_variance must be positive"),
        ((X, 0, 1, 1, 2), {"gradients": 0}, "gradients must be positive and finite, got 0"),
    ],
)
def test_bad_input(args, options, message):
    with pytest.raises(ValueError, match=message):
        paper_ess(*args, **options)
