"""Importance weights against plain sums and the delta method."""

import numpy as np
import pytest

from schuss.diagnostics import max_weight, normalise, ratio_jackknife, weight_ess, weighted_mean

INF = np.inf


def test_plain_sums_at_any_scale():
    logs = np.random.default_rng(0).normal(size=(20, 3))
    w = np.exp(logs)
    for shift in (0.0, 1e4, -1e4):
        assert weight_ess(logs + shift) == pytest.approx(w.sum(0) ** 2 / (w**2).sum(0), rel=1e-9)
        assert normalise(logs + shift) == pytest.approx(w / w.sum(0), rel=1e-9)
        assert max_weight(logs + shift) == pytest.approx(w.max(0) / w.sum(0), rel=1e-9)
    assert weight_ess(logs, axis=1) == pytest.approx(w.sum(1) ** 2 / (w**2).sum(1))
    assert weight_ess(logs, axis=None) == pytest.approx(w.sum() ** 2 / (w**2).sum())
    assert np.sum(normalise(logs, axis=None)) == pytest.approx(1)


def test_minus_infinity():
    logs = np.array([[0.0, -INF], [-INF, -INF], [0.0, -INF]])
    assert list(weight_ess(logs)) == [2, 0]
    assert list(max_weight(logs)) == [0.5, 0]
    assert list(normalise(logs)[:, 1]) == [0, 0, 0]
    means = weighted_mean([[1.0, 1.0], [np.nan, 1.0], [3.0, 1.0]], logs)
    assert means[0] == 2
    assert np.isnan(means[1])


def test_weighted_mean_keeps_further_axes():
    rng = np.random.default_rng(1)
    values, logs = rng.normal(size=(5, 4, 2)), rng.normal(size=(5, 4))
    w = np.exp(logs)
    by_axis = [np.average(values[:, c], axis=0, weights=w[:, c]) for c in range(4)]
    assert weighted_mean(values, logs) == pytest.approx(np.array(by_axis))
    everything = np.average(values, axis=(0, 1), weights=w)
    assert weighted_mean(values, logs, axis=None) == pytest.approx(everything)


def test_jackknife_equals_leaving_out_by_hand():
    rng = np.random.default_rng(2)
    values, logs = rng.normal(size=(6, 5, 2)), rng.normal(size=(6, 5))
    w = np.exp(logs)
    keep = [np.delete(np.arange(5), c) for c in range(5)]
    without = np.array([np.average(values[:, k], axis=(0, 1), weights=w[:, k]) for k in keep])
    error = np.sqrt(4 / 5 * np.sum((without - without.mean(0)) ** 2, axis=0))
    for got in (
        ratio_jackknife(values, w),
        ratio_jackknife(values, log_weights=logs - 1e3),
        ratio_jackknife(values.swapaxes(0, 1), w.T, axis=0),
    ):
        assert got.value == pytest.approx(np.average(values, axis=(0, 1), weights=w))
        assert got.standard_error == pytest.approx(error)


def test_jackknife_agrees_with_the_delta_method():
    """Equal to O(1/chains): residuals w(f − f̂) summed per chain, 5 % at 400 chains."""
    rng = np.random.default_rng(3)
    values, w = rng.normal(size=(10, 400)), np.exp(0.5 * rng.normal(size=(10, 400)))
    w = w * np.exp(0.3 * values)
    got = ratio_jackknife(values, w)
    residual = np.sum(w * (values - got.value), axis=0)
    delta = np.sqrt(400 * np.var(residual, ddof=1)) / np.sum(w)
    assert got.standard_error == pytest.approx(delta, rel=0.05)


def test_jackknife_error_is_the_spread_of_the_estimate():
    """Over 500 repetitions: a standard deviation from 500 is good to 3 %, the bound is 5 times."""
    rng = np.random.default_rng(4)
    found = []
    for _ in range(500):
        values = rng.normal(size=(3, 50))
        found.append(ratio_jackknife(values, np.exp(0.5 * values)))
    spread = np.std([e.value for e in found])
    rms = np.sqrt(np.mean([e.standard_error**2 for e in found]))
    assert rms == pytest.approx(spread, rel=0.16)


def test_jackknife_does_not_cancel_when_one_chain_dominates():
    values, w = np.array([1.0, 2.0, 4.0]), np.array([1e30, 1.0, 1.0])
    without = np.array([3.0, 1.0, 1.0])
    expected = np.sqrt(2 / 3 * np.sum((without - without.mean()) ** 2))
    assert ratio_jackknife(values, w).standard_error == pytest.approx(expected)


def test_jackknife_says_when_it_cannot_know():
    assert ratio_jackknife([1.0, 2.0], [1.0, 0.0]).standard_error == INF
    assert np.isnan(ratio_jackknife([[1.0], [2.0]], np.ones((2, 1))).standard_error)
    assert ratio_jackknife([1.0, np.nan, 3.0], [1.0, 0.0, 1.0]).value == 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: weight_ess([0.0, np.nan]), r"log_weights must be numbers below \+inf"),
        (lambda: normalise([0.0, INF]), r"log_weights must be numbers below \+inf"),
        (lambda: weight_ess([]), "log_weights must be numbers"),
        (lambda: weighted_mean([1.0, 2.0], [0.0]), "values must begin with the shape"),
        (lambda: ratio_jackknife([1.0]), "pass exactly one"),
        (lambda: ratio_jackknife([1.0], [1.0], log_weights=[0.0]), "pass exactly one"),
        (lambda: ratio_jackknife([1.0], [-1.0]), "weights must be finite and non-negative"),
        (lambda: ratio_jackknife(1.0, 1.0), "weights must have an axis for the chains"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
