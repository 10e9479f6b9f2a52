"""ESS and R-hat against ArviZ's public functions and against processes with a known answer."""

import math
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
from seeds import shifted

from schuss.diagnostics import ess, rhat
from schuss.diagnostics.ess import _weighted_median, _weighted_ranks


def autoregression(seed, draws, chains, dim, rho):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(draws, chains, dim))
    for t in range(1, draws):
        x[t] = rho * x[t - 1] + math.sqrt(1 - rho**2) * x[t]
    return x


def from_arviz(name, x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import arviz

        data = arviz.convert_to_dataset({"x": np.moveaxis(x, 1, 0)})
        return getattr(arviz, name)(data)["x"].values


@pytest.mark.parametrize("draws", [4, 5, 100, 101])
@pytest.mark.parametrize("function", [ess, rhat])
def test_equals_arviz(function, draws):
    x = autoregression(0, draws, 4, 3, 0.6) * [1, 2, 3]
    expected = from_arviz(function.__name__, x)
    assert function(x) == pytest.approx(expected, rel=1e-12)
    assert function(x, np.full((draws, 4), 7.0)) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("function", [ess, rhat])
def test_equal_weights_equal_arviz_with_ties(function):
    x = np.round(autoregression(1, 60, 3, 2, 0.5), 1)
    expected = from_arviz(function.__name__, x)
    assert function(x, np.ones((60, 3))) == pytest.approx(expected, rel=1e-9)


def test_autoregression():
    """ESS/n = (1 − ρ)/(1 + ρ) = 1/9. The spread over seeds is 3.4 %, the bound 5 times that."""
    x = autoregression(2, 20_000, 4, 3, 0.8)
    assert ess(x) / 80_000 == pytest.approx(np.full(3, 1 / 9), rel=0.17)


def test_weights_independent_of_the_draws():
    """(Σw)²/Σw² = n e^{−σ²} for log-normal weights, independent draws; spread 2.2 %, bound 5 ×."""
    rng = np.random.default_rng(3)
    x, weights = rng.normal(size=(10_000, 4, 2)), np.exp(0.8 * rng.normal(size=(10_000, 4)))
    assert ess(x, weights) / 40_000 == pytest.approx(np.full(2, math.exp(-0.64)), rel=0.11)


def test_importance_sampling_of_a_gaussian():
    """Proposal N(0, s²), target N(0, 1): ESS/n = E[w]²/E[w² x²] = p^{3/2}/s with p = 2 − 1/s².

    Above 1 at s = 1.3 and below at s = .9, where the weight ESS alone, √p/s, has .91 and .97.
    Spreads over seeds .7 and 1.3 %, bound over 5 times.
    """
    rng = np.random.default_rng(shifted(4))
    for s in (1.3, 0.9):
        x = s * rng.normal(size=(20_000, 4, 1))
        weights = np.exp(-(x[:, :, 0] ** 2) * (1 - 1 / s**2) / 2)
        p = 2 - 1 / s**2
        assert ess(x, weights)[0] / 80_000 == pytest.approx(p**1.5 / s, rel=0.08)


def test_weights_and_autocorrelation_together():
    """Independent log-normal weights on an autoregression: n/ESS = e^{σ²} + 2ρ/(1 − ρ).

    Spread over seeds 2.3 %, bound 5 times.
    """
    x = autoregression(5, 20_000, 4, 2, 0.7)
    weights = np.exp(np.random.default_rng(6).normal(size=(20_000, 4)))
    expected = 1 / (math.e + 2 * 0.7 / 0.3)
    assert ess(x, weights) / 80_000 == pytest.approx(np.full(2, expected), rel=0.115)


def test_weighted_ess_predicts_the_error():
    """Variance of the ratio estimate over 400 repetitions against Var(x)/ESS.

    A variance from 400 is good to 7 %; the bound is 5 times that. Without the weights, ESS would be
    2.7 times larger.
    """
    rng = np.random.default_rng(7)
    x = rng.normal(size=(200, 400, 1))
    weights = np.exp(rng.normal(size=(200, 400)))
    estimates = np.sum(weights * x[:, :, 0], axis=0) / np.sum(weights, axis=0)
    predicted = 400 / ess(x, weights)[0]
    assert np.var(estimates) == pytest.approx(predicted, rel=0.35)


def test_weights_are_up_to_a_constant():
    x = autoregression(8, 50, 3, 2, 0.5)
    weights = np.exp(np.random.default_rng(9).normal(size=(50, 3)))
    for function in (ess, rhat):
        for constant in (1e-200, 1e306):
            got = function(x, constant * weights)
            assert got == pytest.approx(function(x, weights), rel=1e-10)


def test_a_weight_of_three_ranks_like_three_draws():
    """Scores of the mid-ranks (r − ½)/N among the repeated draws, with the offsets for n draws."""
    from scipy.special import ndtri
    from scipy.stats import rankdata

    rng = np.random.default_rng(17)
    column, w = np.round(rng.normal(size=30), 1), rng.integers(0, 4, size=30)
    ranks = rankdata(np.repeat(column, w))
    middle = dict(zip(np.repeat(column, w), (ranks - 0.5) / len(ranks), strict=True))
    got = _weighted_ranks(column, w.astype(float))
    for value, score, weight in zip(column, got, w, strict=True):
        if weight:
            assert score == pytest.approx(ndtri((30 * middle[value] + 1 / 8) / 30.25), abs=1e-12)


def test_weighted_median():
    """Uniform draws with density 2x have median √½; .01 is 5 times the error of 1e5 draws."""
    x = np.random.default_rng(18).uniform(size=100_000)
    assert _weighted_median(x, x) == pytest.approx(math.sqrt(0.5), abs=0.01)
    assert _weighted_median(x[:50], (x[:50] > 0.3) * 2.0) == np.median(x[:50][x[:50] > 0.3])


def test_zero_weights_remove_draws():
    """Chains far away that weigh nothing don't spoil R-hat, and ESS counts the others."""
    x = np.random.default_rng(10).normal(size=(2000, 4, 1))
    x[:, 3] += 50
    weights = np.ones((2000, 4))
    weights[:, 3] = 0
    assert rhat(x)[0] > 1.3
    assert rhat(x, weights)[0] < 1.01
    assert ess(x, weights)[0] == pytest.approx(6000, rel=0.1)


def test_rhat_sees_chains_that_disagree():
    x = np.random.default_rng(11).normal(size=(500, 4, 3))
    x[:, 0, 1] += 2
    x[:, 0, 2] *= 5
    weights = np.exp(0.3 * np.random.default_rng(12).normal(size=(500, 4)))
    for values in (rhat(x), rhat(x, weights)):
        assert values[0] < 1.02
        assert values[1] > 1.1
        assert values[2] > 1.1


def test_single_chain_is_cut_in_two():
    x = np.random.default_rng(13).normal(size=(400, 1, 1))
    assert rhat(x) == pytest.approx(rhat(np.concatenate([x[:200], x[200:]], axis=1)))
    trend = x + np.linspace(0, 5, 400)[:, None, None]
    assert rhat(trend)[0] > 1.3
    assert rhat(trend, np.ones((400, 1)))[0] == pytest.approx(rhat(trend)[0])


def test_what_never_moves_is_the_worst():
    x = np.random.default_rng(14).normal(size=(50, 3, 3))
    x[:, :, 1] = 1.5
    x[:, :, 2] = x[0, :, 2]
    weights = np.random.default_rng(15).uniform(size=(50, 3))
    for w in (None, weights):
        assert ess(x, w)[1] == 0
        assert rhat(x, w)[1] == np.inf
        assert rhat(x, w)[2] > 1.3


def test_import_is_lazy_and_silent(tmp_path):
    """ArviZ warns once a day, when its cache holds no stamp."""
    code = (
        "import sys, numpy as np; from schuss.diagnostics import ess;"
        "assert 'arviz' not in sys.modules;"
        "print(ess(np.random.default_rng(0).normal(size=(50, 2, 1))))"
    )
    env = os.environ | {"XDG_CACHE_HOME": str(tmp_path)}
    command = [sys.executable, "-W", "error::FutureWarning", "-c", code]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr


X = np.random.default_rng(16).normal(size=(10, 2, 1))


@pytest.mark.parametrize("function", [ess, rhat])
@pytest.mark.parametrize(
    ("x", "weights", "message"),
    [
        (X[:, :, 0], None, r"x must have shape \(draws, chains, dim\) and entries, got \(10, 2\)"),
        (X[:, :, :0], None, "x must have shape"),
        (X[:3], None, "x needs at least 4 draws, got 3"),
        (X * np.nan, None, "x must be finite, got 20 non-finite entries"),
        (X, np.ones(10), r"weights must have shape \(10, 2\), got \(10,\)"),
        (X, -np.ones((10, 2)), "weights must be finite, non-negative and not all zero"),
        (X, np.zeros((10, 2)), "weights must be finite, non-negative and not all zero"),
    ],
)
def test_bad_input(function, x, weights, message):
    with pytest.raises(ValueError, match=message):
        function(x, weights)


def test_short_single_chain():
    with pytest.raises(ValueError, match="each half of the single chain in x needs at least 4"):
        rhat(X[:7, :1])
