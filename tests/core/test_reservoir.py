"""Weighted reservoir sampling against stored streams."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2
from seeds import shifted

from schuss.core import reservoir
from schuss.core.collect import collecting
from schuss.core.kernel import Info

# −inf − (−inf) in the branch of a `where` that isn't taken.
pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")


def run(x, log_weights, uniforms) -> Any:
    """Feed a stream of (steps, chains, dim) into reservoirs."""
    kept = reservoir.init(np, np.full_like(x[0], -7))
    for place, weight, uniform in zip(x, log_weights, uniforms, strict=True):
        kept = reservoir.update(np, kept, place, weight, uniform)
    return kept


def test_log_sum():
    values = np.asarray([-np.inf, -1e4, -3.0, 0.0, 2.0, 1e4])
    p, q = np.meshgrid(values, values)
    np.testing.assert_array_equal(
        reservoir.log_sum(np, p, q) == -np.inf, (p == -np.inf) & (q == -np.inf)
    )
    np.testing.assert_allclose(reservoir.log_sum(np, p, q), np.logaddexp(p, q), rtol=1e-15)


@pytest.mark.parametrize("shift", [0.0, 1e4, -1e4])
def test_every_decision_is_the_plain_rule(shift):
    """State t is kept where U < w_t/Σ_{s≤t} w_s, computed here from the stored weights."""
    rng = np.random.default_rng(0)
    steps, chains = 30, 200
    log_weights = 3 * rng.standard_normal((steps, chains))
    log_weights[rng.random((steps, chains)) < 0.2] = -np.inf
    uniforms = rng.random((steps, chains))
    x = np.arange(steps * chains, dtype=float).reshape(steps, chains, 1)
    kept = run(x, log_weights + shift, uniforms)
    totals = np.cumsum(np.exp(log_weights), axis=0)
    taken = uniforms * totals < np.exp(log_weights)
    last = steps - 1 - np.argmax(taken[::-1], axis=0)
    assert taken.any(axis=0).all()
    np.testing.assert_array_equal(kept.x[:, 0], x[last, np.arange(chains), 0])
    np.testing.assert_allclose(kept.log_total - shift, np.log(totals[-1]), atol=1e-9)


def test_weightless_states_are_never_kept():
    x = np.arange(5.0)[:, None, None] * np.ones((5, 3, 2))
    nothing = run(x, np.full((5, 3), -np.inf), np.zeros((5, 3)) + 1e-300)
    np.testing.assert_array_equal(nothing.x, -7)
    np.testing.assert_array_equal(nothing.log_total, -np.inf)
    weights = np.full((5, 3), -np.inf)
    weights[2] = -1e4
    np.testing.assert_array_equal(run(x, weights, np.full((5, 3), 0.99)).x, 2)
    np.testing.assert_array_equal(run(x, weights, np.zeros((5, 3)) + 1e-300).x, 2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_selection_frequencies(dtype):
    """60 000 chains, one stream: chi-square over six states, error rate 1e-6."""
    chains = 60_000
    log_weights = np.asarray([0.0, 1.0, -np.inf, -2.0, 1.5, 0.3, 0.0], dtype) + dtype(100)
    rng = np.random.default_rng(shifted(1))
    x = np.broadcast_to(np.arange(7, dtype=dtype)[:, None, None], (7, chains, 1))
    uniforms = rng.random((7, chains), dtype)
    kept = run(x, np.broadcast_to(log_weights[:, None], (7, chains)), uniforms)
    assert kept.x.dtype == kept.log_total.dtype == dtype
    counts = np.bincount(kept.x[:, 0].astype(int), minlength=7)
    share = np.exp(log_weights.astype(float) - 100)
    expected = chains * share / share.sum()
    assert counts[2] == 0
    seen = expected > 0
    statistic = np.sum((counts[seen] - expected[seen]) ** 2 / expected[seen])
    assert statistic < chi2.isf(1e-6, seen.sum() - 1)


def test_of_windows_only_the_ends_are_kept_and_all_alike():
    """Whatever the weights inside: 20 000 chains, chi-square over four ends, error rate 1e-6."""
    chains, ends = 20_000, [2, 3, 6, 9]
    rng = np.random.default_rng(shifted(2))
    keep = collecting("reservoir", windowed=True)
    kept: Any = keep.init(np, np.zeros((chains, 1)))
    for t in range(11):
        info = Info(np.full(chains, 7.0 * t), None, None, np.full(chains, t in ends))
        kept = keep.update(np, kept, np.full((chains, 1), t), None, info, rng.random(chains))
    counts = np.bincount(kept.x[:, 0].astype(int), minlength=11)
    assert counts[ends].sum() == chains
    assert np.sum((counts[ends] - chains / 4) ** 2 / (chains / 4)) < chi2.isf(1e-6, 3)
