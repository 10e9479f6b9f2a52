"""The run as one loop of windows: three engines, both kernels, temperatures, stops and resumes."""

import itertools
import warnings

import jax.numpy as jnp
import numpy as np
import pytest
import torch

import schuss
from schuss.sampling.checkpoint import flattened, rebuilt
from schuss.sampling.sample import sample
from schuss.sampling.stopping import LEAST_MAX, stopping_rule

from .targets import MEAN, SECOND, energy, sigmas, value_and_grad
from .test_resume import killed_at


def quietly(*args, **given):
    if not args and not {"energy", "logdensity", "value_and_grad"} & given.keys():
        given["energy"] = energy
    if not args:
        given.setdefault("init", np.zeros(3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", schuss.NotConverged)
        return sample(*args, **({"progress": False} | given))


def right(found, limit=5.0):
    """Means and second moments within so many standard errors, by ESS."""
    flat = found.x.reshape(-1, 3)
    ess = found.verdict.numbers["ess"]
    error = flat.std(axis=0) / ess**0.5
    assert (np.abs(flat.mean(axis=0) - MEAN) < limit * error).all()
    error = (flat**2).std(axis=0) / ess**0.5
    assert (np.abs((flat**2).mean(axis=0) - SECOND) < limit * error).all()


@pytest.mark.parametrize("kind", ["jax", "numpy", "torch", "float32", "unadjusted"])
def test_engines_and_kernels(kind):
    """Moments within five standard errors: 1 false alarm in a million for each number."""
    given = {
        "jax": {},
        "numpy": {"value_and_grad": value_and_grad},
        "torch": {
            "energy": lambda x: (torch.exp(x) - torch.tensor([0.7, 1.0, 2.0]) * x).sum(-1),
            "init": torch.zeros(3, dtype=torch.float64),
        },
        "float32": {"init": np.zeros(3, np.float32)},
        "unadjusted": {"exact": False},
    }[kind]
    found = quietly(ess=400, seed=1, **given)
    assert found.verdict.converged and found.stats.exact == (kind != "unadjusted")
    assert found.stats.engine == {"numpy": "numpy", "torch": "torch"}.get(kind, "jax")
    right(found)


def test_draws_are_as_many_as_asked_for():
    found = quietly(draws=200)
    assert found.x.shape == (4, 200, 3) and found.verdict.converged
    np.testing.assert_allclose(found.stats.energy, value_and_grad(found.x)[0], rtol=1e-9)
    np.testing.assert_allclose(found.stats.gradient, value_and_grad(found.x)[1], atol=1e-8)
    adapting = found.stats.adapting
    assert adapting.any() and not adapting.all()
    # Those of adaptation come first.
    assert (np.diff(adapting.astype(int), axis=1) <= 0).all()
    assert "adapting" in found.to_arviz()["sample_stats"]


def test_few_gradients_give_what_there_is():
    found = quietly(gradients=60)
    assert found.x.shape[1] >= 4 and not found.verdict.converged
    assert sum(found.stats.gradients.values()) < 1000


def test_a_budget_ends_a_run_that_cannot_converge():
    """Two modes far apart: each chain stays in its own."""

    def apart(x):
        return -jnp.logaddexp(-50 * jnp.sum((x - 9) ** 2), -50 * jnp.sum((x + 9) ** 2))

    start = 9.0 * np.array([[1, 1, 1], [-1, -1, -1]] * 2) + 0.1 * np.arange(12).reshape(4, 3)
    found = quietly(energy=apart, init=start, ess=100, max_gradients=20_000)
    assert not found.verdict.converged
    assert 20_000 <= sum(found.stats.gradients.values()) < 26_000


def test_budgets():
    assert stopping_rule().budget(4) == max(LEAST_MAX, 4_000_000)
    assert stopping_rule(ess=100).budget(4) == LEAST_MAX
    assert stopping_rule(gradients=500).budget(4) == 500
    assert stopping_rule(ess=100, max_gradients=7).budget(4) == 7
    with pytest.raises(ValueError, match="max_gradients must be a whole number"):
        stopping_rule(max_gradients=0)


def test_a_callback_stops_the_run():
    seen = []
    found = quietly(ess=1e6, callback=lambda view: seen.append(view.phase) or len(seen) == 5)
    assert len(seen) == 5 and seen[0] == "burn-in" and found.x.shape[1] > 4


def test_what_a_callback_raises_is_raised():
    with pytest.raises(ZeroDivisionError):
        quietly(callback=lambda view: 1 / 0)


def test_modes_in_the_plane():
    """At temperature 8 paths cross between the eight modes of the paper's mixture."""
    found = quietly(schuss.targets.mog(), ess=400, seed=1)
    truth = schuss.targets.mog().truth
    assert found.verdict.converged
    off, error = sigmas(found.x, truth.mean)
    assert (off < 6).all() and (error < 0.1).all()


def test_a_line():
    found = quietly(energy=lambda x: x[0] ** 4 / 4 - x[0] ** 2 + 0.3 * x[0], init=[0.0], ess=400)
    assert found.verdict.converged and found.x.shape[2] == 1
    assert abs(found.x.mean() + 0.4825) < 0.15  # three standard errors


@pytest.mark.slow
def test_a_metric_for_more_than_two_hundred_dimensions():
    """One wide direction among many: without low rank it would take some 30 times as many."""
    rng = np.random.default_rng(0)
    wide = rng.standard_normal(250)
    wide = jnp.asarray(wide / np.linalg.norm(wide))

    def narrow(x):
        return (jnp.sum(x**2) - (1 - 1e-4) * jnp.sum(wide * x) ** 2) / 2

    found = quietly(energy=narrow, init=np.zeros(250), ess=200, max_gradients=60_000)
    assert found.verdict.converged and found.stats.history[-1]["rank"] >= 1


# On disk.


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_killed_at_every_commit(tmp_path, monkeypatch, after):
    """Stopped before or after each commit, and resumed to the same draws."""
    few = {"value_and_grad": value_and_grad, "draws": 30}
    whole = quietly(**few)
    for moment in itertools.count():
        path = tmp_path / f"{moment}.zarr"
        if killed_at(monkeypatch, moment, path, after, **few, thin=None):
            break
        resumed = quietly(**few, checkpoint=path)
        np.testing.assert_array_equal(resumed.x, whole.x)
        assert resumed.stats.gradients == whole.stats.gradients
    assert moment >= 4


def test_a_state_comes_back_from_its_parts():
    states = []
    quietly(schuss.targets.funnel(5), ess=100, callback=lambda view: states.append(view.state))
    for skip, state in enumerate(states):
        rows, kept = flattened(state, 0)
        same = rebuilt(kept, rows)
        assert same._replace(blocks=()).counts == state.counts
        for one, other in zip(same.blocks, state.blocks, strict=True):
            for name in one._fields:
                np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
        assert skip >= 0


def test_a_record_that_is_not_known_is_refused():
    rows, kept = flattened(_first_state(), 0)
    kept["tree"]["record"] = "Popen"
    with pytest.raises(KeyError, match="Popen"):
        rebuilt(kept, rows)


def _first_state():
    states = []
    quietly(draws=20, callback=lambda view: states.append(view.state) or True)
    return states[0]
