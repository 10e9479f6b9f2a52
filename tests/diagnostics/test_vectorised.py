"""Many columns at once against ArviZ one by one, and against the weighted forms written for one."""

import math
import warnings

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from schuss.diagnostics import ess, rhat, vectorised
from schuss.diagnostics.vectorised import mid_ranks


def autoregression(seed, draws, chains, dim, rho):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(draws, chains, dim))
    for t in range(1, draws):
        x[t] = rho * x[t - 1] + math.sqrt(1 - rho**2) * x[t]
    return x


def from_arviz(name, x, method):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import arviz

        columns = [np.ascontiguousarray(x[:, :, i].T) for i in range(x.shape[2])]
        return np.array([getattr(arviz, name)(column, method=method) for column in columns])


SAME = {
    "fast_ess": ("ess", "mean"),
    "fast_rhat": ("rhat", "split"),
    "rank_ess": ("ess", "bulk"),
    "rank_rhat": ("rhat", "rank"),
}


@pytest.mark.parametrize("name", SAME)
@pytest.mark.parametrize("rho", [-0.9, 0.0, 0.5, 0.97])
def test_equals_arviz_at_every_short_length(name, rho):
    """Geyer's rule has its own end at every length from 4 to 14 draws, and at an odd one."""
    for draws in (*range(4, 15), 101, 400):
        x = autoregression(draws, draws, 3, 8, rho) * 10.0 ** np.arange(-4, 4)
        expected = from_arviz(SAME[name][0], x, SAME[name][1])
        assert getattr(vectorised, name)(x) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("name", SAME)
def test_equals_arviz_with_ties(name):
    """Repeated states, as rejections leave them."""
    x = np.round(np.repeat(autoregression(1, 150, 4, 5, 0.5), 2, axis=0), 1) + 3
    expected = from_arviz(SAME[name][0], x, SAME[name][1])
    assert getattr(vectorised, name)(x) == pytest.approx(expected, rel=1e-8)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    draws=st.integers(4, 60),
    chains=st.integers(2, 5),
    rho=st.floats(-0.99, 0.99),
    shift=st.floats(0, 3),
)
def test_equals_arviz_anywhere(seed, draws, chains, rho, shift):
    x = autoregression(seed, draws, chains, 2, rho)
    x[:, 0] += shift
    for name, (function, method) in SAME.items():
        expected = from_arviz(function, x, method)
        assert getattr(vectorised, name)(x) == pytest.approx(expected, rel=1e-8)


def test_blocks_change_nothing(monkeypatch):
    x = autoregression(2, 60, 2, 7, 0.3)
    weights = np.random.default_rng(3).exponential(size=(60, 2))
    whole = [vectorised.rank_ess(x, w) for w in (None, weights)]
    monkeypatch.setattr(vectorised, "ENTRIES", 3 * 120)
    assert np.array_equal(whole, [vectorised.rank_ess(x, w) for w in (None, weights)])


@pytest.mark.parametrize("draws", [8, 9, 200])
def test_weights_as_column_by_column(draws):
    """Zero weights among them; the reference sorts, scores and weighs one column at a time."""
    rng = np.random.default_rng(4)
    x = autoregression(5, draws, 3, 6, 0.6)
    weights = rng.exponential(size=(draws, 3)) * (rng.random((draws, 3)) > 0.1)
    assert vectorised.rank_ess(x, weights) == pytest.approx(ess(x, weights), rel=1e-8)
    assert vectorised.rank_rhat(x, weights) == pytest.approx(rhat(x, weights), rel=1e-8)


def test_equal_weights_are_no_weights():
    x = np.round(autoregression(6, 61, 3, 4, 0.5), 1)
    for name in SAME:
        function = getattr(vectorised, name)
        assert function(x, np.full((61, 3), 7.0)) == pytest.approx(function(x), rel=1e-9)


@pytest.mark.parametrize("name", SAME)
def test_far_from_zero(name):
    """A shift by 2²⁰ of numbers that stay exact changes nothing; ArviZ loses eight digits here."""
    x = np.round(autoregression(12, 100, 4, 3, 0.5) * 1024) / 1024
    function = getattr(vectorised, name)
    assert function(x + 2.0**20) == pytest.approx(function(x), rel=1e-7)


def test_single_chain():
    x = autoregression(7, 100, 1, 3, 0.4)
    assert vectorised.rank_rhat(x) == pytest.approx(rhat(x), rel=1e-9)
    assert vectorised.fast_ess(x) == pytest.approx(from_arviz("ess", x, "mean"), rel=1e-9)
    with pytest.raises(ValueError, match="at least 8 draws"):
        vectorised.fast_rhat(x[:6])


def test_constant_columns():
    x = autoregression(8, 50, 4, 3, 0.4)
    x[:, :, 1] = 0.1
    x[:, :, 2] = np.arange(4)
    for name in ("fast_ess", "rank_ess"):
        values = getattr(vectorised, name)(x)
        assert values[1] == 0 and values[0] > 10
    for name in ("fast_rhat", "rank_rhat"):
        values = getattr(vectorised, name)(x)
        assert values[1] == np.inf and values[2] > 1e3 and values[0] < 1.2


def test_one_pass_is_two():
    x = autoregression(9, 80, 3, 4, 0.5)
    assert np.array_equal(vectorised.ess_and_rhat(x).ess, vectorised.fast_ess(x))
    assert np.array_equal(vectorised.ess_and_rhat(x).rhat, vectorised.fast_rhat(x))
    both = vectorised.rank_ess_and_rhat(x)
    assert np.array_equal(both.ess, vectorised.rank_ess(x))
    assert np.array_equal(both.rhat, vectorised.rank_rhat(x))
    assert np.all(vectorised.rank_ess_and_rhat(x, fold=False).rhat <= both.rhat)


@pytest.mark.parametrize("draws", [9, 80])
@pytest.mark.parametrize("digits", [1, 12])
def test_strict_is_the_smaller_of_both(draws, digits):
    """Also of squares, which are sorted by what sorted the numbers, with ties and without."""
    x = np.round(autoregression(13, draws, 3, 11, 0.5), digits)
    weights = np.random.default_rng(14).exponential(size=(draws, 3))
    centre = x.mean(axis=(0, 1))
    for w in (None, weights):
        found = vectorised.strict_ess_and_rhat(x, w, centre=centre)
        for k, part in enumerate((x, (x - centre) ** 2)):
            rows = slice(11 * k, 11 * k + 11)
            both = vectorised.rank_ess_and_rhat(part, w, fold=False)
            ess_ = np.minimum(both.ess, vectorised.fast_ess(part, w))
            np.testing.assert_allclose(found.ess[rows], ess_, rtol=1e-12)
            np.testing.assert_allclose(found.rhat[rows], both.rhat, rtol=1e-12)
        alone = vectorised.strict_ess_and_rhat(x, w)
        assert np.array_equal(alone.ess, found.ess[:11])


@pytest.mark.parametrize("chains", [1, 7])
def test_blocks_cut_chains_apart(monkeypatch, chains):
    """Sizes at which a column is read and transformed a few chains at a time."""
    x = autoregression(15, 61, chains, 19, 0.4)
    whole = vectorised.ess_and_rhat(x)
    for entries in (10, 130, 61 * 8 * 2, 61 * 7 * 3):
        monkeypatch.setattr(vectorised, "ENTRIES", entries)
        found = vectorised.ess_and_rhat(x)
        np.testing.assert_allclose(found.ess, whole.ess, rtol=1e-12)
        np.testing.assert_allclose(found.rhat, whole.rhat, rtol=1e-12)


@pytest.mark.parametrize("order", ["C", "F"])
def test_however_draws_lie_in_memory(order):
    x = autoregression(16, 200, 5, 3, 0.4) + 50
    other = np.asarray(np.moveaxis(x, 0, 1), order=order)
    found = vectorised.ess_and_rhat(np.moveaxis(other, 0, 1))
    assert np.array_equal(found.ess, vectorised.ess_and_rhat(x).ess)


def test_nested_rhat_by_hand():
    """The definition, written as loops."""
    rng = np.random.default_rng(10)
    x = rng.normal(size=(5, 12, 2)) + np.repeat(rng.normal(size=3), 4)[:, None]
    for i in range(2):
        superchains = [x[:, 4 * k : 4 * k + 4, i] for k in range(3)]
        between = np.var([s.mean() for s in superchains], ddof=1)
        within = np.mean(
            [
                np.var(s.mean(axis=0), ddof=1) + np.mean([np.var(c, ddof=1) for c in s.T])
                for s in superchains
            ]
        )
        assert vectorised.nested_rhat(x, 3)[i] == pytest.approx(math.sqrt(1 + between / within))


def test_nested_rhat_of_one_draw_each():
    """512 chains with one draw each: √(1 + 1/M) when mixed, seen at once when not."""
    rng = np.random.default_rng(11)
    x = rng.normal(size=(1, 512, 1))
    # B/W = 1/128 with a relative spread of √(2/3): the bound is 5 of them.
    assert vectorised.nested_rhat(x, 4)[0] == pytest.approx(1, abs=0.02)
    assert vectorised.nested_rhat(x + np.repeat(np.arange(4), 128)[:, None], 4)[0] > 1.3


@pytest.mark.parametrize("groups", [0, 1, 5, 12])
def test_nested_rhat_refuses(groups):
    with pytest.raises(ValueError, match="groups must cut the 12 chains"):
        vectorised.nested_rhat(np.zeros((3, 12, 1)), groups)


def test_bad_input():
    with pytest.raises(ValueError, match="at least 4 draws"):
        vectorised.fast_ess(np.zeros((3, 2, 1)))
    with pytest.raises(ValueError, match="finite"):
        vectorised.fast_ess(np.full((8, 2, 1), np.nan))
    with pytest.raises(ValueError, match="weights must have shape"):
        vectorised.rank_ess(np.zeros((8, 2, 1)), np.ones((2, 8)))


def test_mid_ranks_are_those_of_scipy():
    x = np.random.default_rng(7).integers(0, 9, (5, 12)) / 4
    np.testing.assert_array_equal(mid_ranks(x), scipy.stats.rankdata(x, axis=None).reshape(x.shape))
