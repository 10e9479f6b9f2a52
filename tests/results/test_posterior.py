"""What a run gives back: its shapes, its errors, and ArviZ's form of it."""

import warnings

import numpy as np
import pytest

from results.runs import SCHOOLS, autoregression, gaussian, posterior
from schuss.results import Moments, Posterior, Stats
from schuss.results.arviz import systematic


def converted(post, **given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return post.to_arviz(**given)


def test_arviz():
    post = posterior(x=autoregression(0, 4, 400, 6, 0.3))
    data = converted(post)
    assert np.array_equal(data.posterior["tau"].values, post["tau"])
    assert data.posterior["theta"].dims == ("chain", "draw", "school")
    assert list(data.posterior["school"].values) == SCHOOLS
    assert np.array_equal(data.sample_stats["lp"].values, -post.stats.energy)
    for name in ("energy_error", "acceptance_rate", "diverging"):
        assert data.sample_stats[name].shape == (4, 400)
    attributes = data.posterior.attrs
    assert attributes["seed"] == 7 and attributes["sampler"] == "ESH"
    assert attributes["converged"] == 1 and attributes["verdict"].startswith("Converged")


def test_steps_diverge_in_arviz_as_they_do_in_the_run():
    error = np.zeros((4, 400))
    error[0, :3] = np.inf, 1500.0, np.nan
    error[1, 0] = 900.0
    found = converted(posterior(energy_error=error)).sample_stats["diverging"].values
    assert found[0, :3].all() and found.sum() == 3


def test_arviz_goes_to_disk_and_back(tmp_path):
    pytest.importorskip("h5netcdf")
    import arviz

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        converted(posterior()).to_netcdf(str(tmp_path / "run.nc"))
        back = arviz.from_netcdf(str(tmp_path / "run.nc"))
    assert back.posterior.attrs["seed"] == 7


def test_arviz_without_weights_would_be_wrong():
    """Weighted draws come out as plain ones whose averages are the weighted averages."""
    x = autoregression(1, 4, 2000, 2, 0.2)
    weights = np.exp(x[:, :, 0])
    post = Posterior(stats=Stats(energy=gaussian(x)), draws=x, x=x, weights=weights)
    data = converted(post)
    # E[x e^x]/E[e^x] = 1; the error of the mean is .02, the bound 5 times that.
    assert float(data.posterior["x"].values[..., 0].mean()) == pytest.approx(1, abs=0.1)
    assert data.posterior.attrs["resampled"] == 1
    plain = converted(post, resample=False)
    assert np.array_equal(plain.posterior["x"].values, x)
    assert np.array_equal(plain.sample_stats["weight"].values, weights)
    with pytest.raises(ValueError, match="no weights"):
        posterior().to_arviz(resample=True)


def test_systematic_counts():
    """Every draw comes n wᵢ/Σw times, rounded up or down."""
    weights = np.random.default_rng(2).exponential(size=(3, 50))
    weights[0, :10] = 0
    weights[2] = 0
    chosen = systematic(weights)
    for c in range(2):
        counts = np.bincount(chosen[c], minlength=50)
        assert np.all(np.abs(counts - 50 * weights[c] / weights[c].sum()) < 1)
    assert np.array_equal(chosen[2], np.arange(50))
    assert np.all(np.diff(chosen, axis=1) >= 0)


def test_plain_arrays():
    x = autoregression(3, 4, 100, 6)
    post = Posterior(stats=Stats(energy=gaussian(x)), draws=x.reshape(4, 100, 2, 3), x=x)
    assert post["x"].shape == (4, 100, 2, 3)
    assert post.summary().names[-1] == "x[1, 2]"
    assert converted(post).posterior["x"].shape == (4, 100, 2, 3)


def test_repr_is_short():
    text = repr(posterior())
    assert "4 chains, 400 draws each, 6 dimensions" in text and "theta [4]" in text
    assert len(text) < 400


def test_interruption_and_divergences_are_told():
    given = {"interrupted": True, "reached": "400 of 5000 draws a chain"}
    text = str(posterior(divergences=3, **given).verdict)
    assert text.startswith("Interrupted after 400 of 5000 draws a chain. Converged: worst R-hat")
    assert "note: the run was interrupted after 400 of 5000 draws a chain; these are" in text
    assert "3 steps diverged" in text
    apart = autoregression(0, 4, 400, 6) + np.arange(4)[:, None, None]
    text = str(posterior(x=apart, **given).verdict)
    assert text.startswith("Interrupted after 400 of 5000 draws a chain. NOT converged")


@pytest.mark.parametrize(("count", "times"), [(1, "once"), (60, "60 times")])
def test_restarts_are_counted_as_such(count, times):
    """A chain may begin again more than once: 60 in a run of four."""
    text = str(posterior(restarted=count).verdict)
    assert f"in burn-in, {times} a chain that was far off or hardly moved began again" in text


def test_bad_input():
    x = autoregression(4, 4, 50, 2)
    stats = Stats(energy=gaussian(x))
    with pytest.raises(ValueError, match="draws or moments"):
        Posterior(stats=stats)
    with pytest.raises(ValueError, match="x must be given"):
        Posterior(stats=stats, draws=x)
    with pytest.raises(ValueError, match="theta must begin"):
        Posterior(stats=stats, draws={"theta": x[:, :40]}, x=x)
    with pytest.raises(ValueError, match="energy must begin"):
        Posterior(stats=Stats(energy=gaussian(x).T), draws=x, x=x)
    with pytest.raises(ValueError, match="weights must begin"):
        Posterior(stats=stats, draws=x, x=x, weights=np.ones(4))
    with pytest.raises(KeyError, match="there are x"):
        Posterior(stats=stats, draws=x, x=x)["y"]
    moments = Moments(x.mean(axis=1), x.var(axis=1), np.full(4, 50.0))
    with pytest.raises(ValueError, match="only moments"):
        Posterior(stats=stats, moments=moments).to_arviz()
