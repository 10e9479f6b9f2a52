"""The table against NumPy and ArviZ, and what it prints."""

import warnings

import numpy as np
import pytest

from results.runs import SCHOOLS, autoregression, gaussian, posterior
from schuss.results import Moments, Posterior, Stats
from schuss.results.naming import flat_names
from schuss.results.summary import COLUMNS, element_names


def test_numbers_against_arviz():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import arviz

        post = posterior()
        expected = arviz.summary(post.to_arviz(), round_to="none")
    table = post.summary().to_frame()
    assert list(table.index) == list(expected.index)
    for ours, theirs in (
        ("mean", "mean"),
        ("sd", "sd"),
        ("ess", "ess_bulk"),
        ("rhat", "r_hat"),
        ("mcse", "mcse_mean"),
    ):
        assert table[ours].to_numpy() == pytest.approx(expected[theirs].to_numpy(), rel=1e-6)
    mu = post["mu"].reshape(-1)
    assert post.summary()["mu"]["5%"] == pytest.approx(np.quantile(mu, 0.05))
    assert post.summary()["mu"]["50%"] == pytest.approx(np.median(mu))


def test_weights():
    """Whole weights are repetitions: mean, sd and quantiles as of the repeated draws."""
    x = autoregression(1, 2, 300, 2)
    weights = np.random.default_rng(1).integers(0, 4, size=(2, 300))
    post = Posterior(stats=Stats(energy=gaussian(x)), draws=x, x=x, weights=weights * 0.1)
    again = np.repeat(x.reshape(-1, 2), weights.reshape(-1), axis=0)
    rows = post.summary().values
    assert rows[:, 0] == pytest.approx(again.mean(axis=0), rel=1e-9)
    assert rows[:, 1] == pytest.approx(again.std(axis=0), rel=5e-3)
    assert pytest.approx(np.quantile(again, [0.05, 0.5, 0.95], axis=0), abs=0.03) == rows[:, 2:5].T


def test_text():
    text = str(posterior().summary())
    lines = text.splitlines()
    assert lines[0].startswith("Converged")
    assert f"theta[{SCHOOLS[0]}]" in text and "rhat" in text and "mcse" in text
    assert len({len(line) for line in lines[-7:]}) == 1
    assert "-0.00 " not in text


def test_long_tables_show_the_head_and_the_worst():
    x = autoregression(2, 4, 200, 120)
    x[0, :, 77] += 3
    summary = Posterior(stats=Stats(energy=gaussian(x)), draws=x, x=x).summary()
    text = str(summary)
    assert len(text.splitlines()) < 40 and "NOT converged" in text
    assert "x[0]" in text and "x[77]" in text and "100 more" in text and "x[50]" not in text
    assert summary.worst(1) == [77] and len(summary) == 120 == len(summary.to_frame())


def test_html_is_escaped():
    text = posterior()._summary._repr_html_()
    assert "<b>" not in text and "&lt;b&gt;" in text


def test_row_by_name():
    summary = posterior().summary()
    assert set(summary["mu"]) == set(COLUMNS)
    with pytest.raises(KeyError, match="'nu'"):
        summary["nu"]


def test_odd_columns():
    """Never varying, not finite, huge and tiny ones are shown and spoil nothing."""
    x = autoregression(3, 4, 200, 3)
    draws = {
        "fixed": np.full((4, 200), 2.5),
        "broken": np.where(x[:, :, 0] > 2, np.nan, x[:, :, 0]),
        "huge": 1e12 * x[:, :, 1],
        "tiny": 1e-12 * x[:, :, 2],
        "count": np.arange(800).reshape(4, 200) % 7,
        "empty": np.empty((4, 200, 0)),
    }
    summary = Posterior(stats=Stats(energy=gaussian(x)), draws=draws, x=x).summary()
    assert summary["fixed"]["sd"] == 0 and summary["fixed"]["mcse"] == 0
    assert np.isnan(summary["broken"]["mean"]) and summary["tiny"]["ess"] > 100
    assert summary["count"]["mean"] == pytest.approx(3, abs=0.02)
    assert "e+12" in str(summary) and "e-12" in str(summary) and len(summary) == 5


def test_frozen_chains_stay_out():
    x = autoregression(4, 4, 300, 6)
    x[1, 10:] = 300
    summary = posterior(x=x, frozen=np.array([False, True, False, False])).summary()
    assert abs(summary["mu"]["mean"]) < 1 and "left out of the table: [1]" in str(summary)


def test_moments():
    x = autoregression(5)
    total = np.full(4, 1000.0)
    moments = Moments(x.mean(axis=1), x.var(axis=1), total, np.full(3, 900.0))
    post = Posterior(stats=Stats(energy=np.empty((4, 0))), moments=moments)
    assert post.summary().values[:, 0] == pytest.approx(x.mean(axis=(0, 1)))
    assert post.summary().values[:, 1] == pytest.approx(x.std(axis=(0, 1)))
    assert "x[2]" in str(post.summary()) and "moments" in repr(post)


def test_element_names():
    assert element_names("a", ()) == ["a"]
    assert element_names("a", (2, 2)) == ["a[0, 0]", "a[0, 1]", "a[1, 0]", "a[1, 1]"]
    assert element_names("a", (2,), ["k"], {"k": ["u", "v"]}) == ["a[u]", "a[v]"]
    assert element_names("a", (2,), ["k"], {"k": ["u"]}) == ["a[0]", "a[1]"]


def test_flat_coordinates_are_recognised():
    """By the order of their draws, whatever rising or falling map lies between."""
    x = autoregression(6, 4, 100, 5)
    draws = {
        "sum": x.sum(axis=-1),
        "scale": np.exp(x[:, :, 3]),
        "share": 1 / (1 + np.exp(x[:, :, 0])),
        "pair": x[:, :, [4, 1]],
        "log_scale": x[:, :, 3],
    }
    names = flat_names(x, draws, {"pair": ["k"]}, {"k": ["u", "v"]})
    assert names == ("share", "pair[v]", "unconstrained[2]", "scale", "pair[u]")


def test_the_verdict_speaks_in_names():
    x = autoregression(7, 4, 400, 6)
    x[2, :, 1] += 3
    assert "about tau" in str(posterior(x=x).verdict)
