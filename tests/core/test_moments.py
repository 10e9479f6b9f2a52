"""Weighted moments of a stream against NumPy on the stored stream."""

from typing import Any

import numpy as np
import pytest

from schuss.core import moments
from schuss.core.collect import collecting
from schuss.core.kernel import Draw, Info

# −inf − (−inf) in the branch of a `where` that isn't taken.
pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")


def run(x, energy, log_weights) -> Any:
    kept = moments.init(np, x[0])
    for row in zip(x, energy, log_weights, strict=True):
        kept = moments.update(np, kept, *row)
    return kept


def stream(steps=60, chains=7, dim=3, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((steps, chains, dim)) * [1.0, 5.0, 0.1] + [0.0, 3.0, -8.0]
    log_weights = 2 * rng.standard_normal((steps, chains))
    return x, rng.standard_normal((steps, chains)), log_weights


def direct(x, energy, log_weights):
    """Weighted mean and variance of x, mean of E, Σw and Σw², chain by chain, weights as given."""
    w = np.exp(log_weights)
    share = w / w.sum(axis=0)
    mean = np.sum(share[..., None] * x, axis=0)
    variance = np.sum(share[..., None] * (x - mean) ** 2, axis=0)
    return mean, variance, np.sum(share * energy, axis=0), w.sum(axis=0), np.sum(w * w, axis=0)


@pytest.mark.parametrize("shift", [0.0, 1e4, -1e4])
@pytest.mark.parametrize("dead", [0.0, 0.5])
def test_stream(shift, dead):
    """With huge weights, tiny ones, and none at all (the first states of a chain included)."""
    x, energy, log_weights = stream()
    lost = np.random.default_rng(1).random(log_weights.shape) < dead
    lost[:3, 0] = dead > 0
    log_weights = np.where(lost, -np.inf, log_weights)
    kept = run(x, energy, log_weights + shift)
    mean, variance, average, total, squares = direct(x, energy, log_weights)
    np.testing.assert_allclose(kept.mean, mean, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(kept.variance, variance, rtol=1e-10)
    np.testing.assert_allclose(kept.energy, average, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(kept.log_total - shift, np.log(total), atol=1e-8)
    np.testing.assert_allclose(kept.log_squares - 2 * shift, np.log(squares), atol=1e-8)


def test_nothing_seen():
    x, energy, _ = stream()
    kept = run(x, energy, np.full(energy.shape, -np.inf))
    np.testing.assert_array_equal(kept.mean, 0)
    np.testing.assert_array_equal(kept.variance, 0)
    np.testing.assert_array_equal(kept.log_total, -np.inf)


def test_a_weightless_state_leaves_no_trace():
    x, energy, log_weights = stream(steps=10)
    kept = run(x, energy, log_weights)
    more = moments.update(np, kept, x[0] + 1e30, energy[0] - 1e30, np.full(7, -np.inf))
    for before, after in zip(kept, more, strict=True):
        np.testing.assert_array_equal(after, before)


def test_float32_with_a_large_mean():
    """Mean 1e4, sd .1, 2000 states: the variance to 2 %, where E[x²] − E[x]² has no digit."""
    rng = np.random.default_rng(2)
    x = (1e4 + 0.1 * rng.standard_normal((2000, 4, 2))).astype(np.float32)
    energy = np.zeros((2000, 4), np.float32)
    log_weights = (0.3 * rng.standard_normal((2000, 4)) + 50).astype(np.float32)
    kept = run(x, energy, log_weights)
    assert all(part.dtype == np.float32 for part in kept)
    mean, variance, *_ = direct(x.astype(float), energy, log_weights.astype(float))
    np.testing.assert_allclose(kept.variance, variance, rtol=0.02)
    np.testing.assert_allclose(kept.mean, mean, atol=0.02)


def test_merged_streams_are_one():
    x, energy, log_weights = stream()
    whole = run(x, energy, log_weights)
    halves = [run(x[part], energy[part], log_weights[part]) for part in (slice(25), slice(25, 60))]
    merged: Any = moments.merge(np, *halves)
    for ours, theirs in zip(merged, whole, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-12)


def test_windows_count_the_same_whatever_their_weights():
    """Windows of random lengths, each with its own constant; the open one doesn't count yet."""
    x, energy, log_weights = stream()
    rng = np.random.default_rng(3)
    complete = rng.random(energy.shape) < 0.2
    complete[5] = True
    complete[-1] = False
    keep = collecting("moments", windowed=True)
    kept: Any = keep.init(np, x[0])
    for t in range(len(x)):
        info = Info(log_weights[t], None, None, complete[t])
        kept = keep.update(np, kept, x[t], Draw(x[t], energy[t]), info, None)

    for chain in range(x.shape[1]):
        ends = np.flatnonzero(complete[:, chain]) + 1
        shares = []
        for begin, end in zip([0, *ends[:-1]], ends, strict=True):
            w = np.exp(log_weights[begin:end, chain])
            shares.append(w / w.sum())
        share = np.concatenate(shares) / len(ends)
        seen = x[: ends[-1], chain]
        mean = share @ seen
        np.testing.assert_allclose(kept.done.mean[chain], mean, rtol=1e-10)
        np.testing.assert_allclose(
            kept.done.variance[chain], share @ (seen - mean) ** 2, rtol=1e-10
        )
        np.testing.assert_allclose(kept.done.energy[chain], share @ energy[: ends[-1], chain])
        np.testing.assert_allclose(kept.done.log_total[chain], np.log(len(ends)), rtol=1e-10)
        squares = np.sum((share * len(ends)) ** 2)
        np.testing.assert_allclose(kept.done.log_squares[chain], np.log(squares), atol=1e-10)
