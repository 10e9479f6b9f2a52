"""A fixed algorithm through the same call, on a Gaussian."""

import numpy as np
import pytest

import schuss

from .targets import quietly

ALGORITHMS = {
    "hmc": schuss.HMC(0.8, steps=3),
    "mala": schuss.MALA(0.9),
    "esh": schuss.ESH(0.3, refresh=3.0),
    "esh-kappa": schuss.ESH(0.3, kappa=2.0, refresh=3.0),
    "persistent": schuss.ESH(1.0, kappa=2.0, adjust="persistent", refresh=3.0),
    "endpoint": schuss.ESH(0.8, adjust="endpoint", steps=4),
    "orbit": schuss.ESH(0.8, adjust="orbit", steps=5),
    "ula": schuss.ULA(0.4),
}
EXACT = ("hmc", "mala", "persistent", "endpoint", "orbit")


def gaussian(x):
    return (x * x).sum(axis=-1) / 2, x


def run(name, **given):
    """On the NumPy engine; 64 chains, so that means have a standard error from their scatter."""
    start = np.random.default_rng(0).standard_normal((given.pop("chains", 64), 3))
    given = {"value_and_grad": gaussian, "init": start, "draws": 200} | given
    return quietly(sampler=ALGORITHMS[name], **given)


def weights(found):
    return np.ones(found.x.shape[:2]) if found.weights is None else found.weights


@pytest.mark.parametrize("name", ALGORITHMS)
def test_right_on_a_gaussian(name):
    """E[E] = 3/2 within 5 standard errors, p = 2e-5 by 64 chains; ULA by its own variance."""
    found = run(name)
    assert found.x.shape == (64, 200, 3) == found.draws.shape
    w, energy = weights(found), found.stats.energy
    np.testing.assert_allclose(energy, gaussian(found.x)[0], atol=1e-12)
    truth = 1.5 / (1 - 0.4**2 / 4) if name == "ula" else 1.5
    mean = np.sum(w * energy) / w.sum()
    scatter = np.sum(w * (energy - mean), axis=1)
    error = np.sqrt(np.sum(scatter**2)) / w.sum()
    assert error < 0.05 and abs(mean - truth) < 5 * error + (0.02 if "esh" in name else 0)
    assert found.stats.exact == (name in EXACT)
    assert (found.stats.acceptance is not None) == (name in EXACT and name != "orbit")
    assert found.stats.sampler == repr(ALGORITHMS[name])
    assert not found.stats.frozen.any()
    assert (found.weights is not None) == (name in ("esh", "persistent", "orbit"))


@pytest.mark.parametrize("name", ["hmc", "endpoint", "ula", "esh-kappa"])
def test_thin_counts_transitions(name):
    """Transitions 252, 254, … 512 of a run that keeps 251 to 1250, each the end of a proposal."""
    every, second = run(name, draws=1000, chains=4), run(name, draws=200, chains=4, thin=2)
    assert second.weights is None
    assert second.stats.thin == 2 * every.stats.thin
    np.testing.assert_array_equal(second.x[:, -131:], every.x[:, 1:262:2])


@pytest.mark.parametrize("name", ["hmc", "esh"])
def test_wishes(name):
    found = run(name, chains=4, draws=None, gradients=8000)
    assert 8000 <= found.stats.gradients["sampling"] < 8000 + 4 * 10
    found = run(name, chains=4, draws=None, ess=300)
    assert found.verdict.numbers["ess"] > 0.5 * 300
    found = run(name, chains=4, draws=None, seconds=0.2)
    assert found.stats.seconds["sampling"] >= 0.2
    assert run(name, chains=4, draws=7).x.shape == (4, 7, 3)


def test_moments_only():
    every, kept = run("esh", chains=4), run("esh", chains=4, keep="moments")
    assert kept.draws is None and kept.x is None
    w = weights(every)
    mean = np.einsum("cn,cni->ci", w, every.x) / w.sum(axis=1)[:, None]
    np.testing.assert_allclose(kept.moments.mean, mean)
    np.testing.assert_allclose(kept.moments.total, w.sum(axis=1))
    square = np.einsum("cn,cni->ci", w, every.x**2) / w.sum(axis=1)[:, None]
    np.testing.assert_allclose(kept.moments.variance, square - mean**2)


def test_the_seed_decides():
    one, same, other = (run("hmc", chains=4, draws=20, seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.x, same.x)
    assert not np.any(other.x == one.x)


def test_bad_starts_are_refused():
    init = np.zeros((4, 3))
    init[1, 2] = np.nan
    with pytest.raises(ValueError, match="not finite at the start of 1 of 4 chains"):
        run("hmc", init=init)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_what_nothing_corrects_is_not_exact(name):
    given = {"chains": 4, "draws": 8, "exact": True}
    if name in EXACT:
        assert run(name, **given).stats.exact
        return
    told = r"^exact=True contradicts sampler=(ULA|ESH)\(step_size=.*; leave exact out, or use"
    with pytest.raises(ValueError, match=told):
        run(name, **given)
    for loose in (None, False):
        assert not run(name, **given | {"exact": loose}).stats.exact


def test_a_metric_and_a_target_in_jax():
    target = schuss.targets.gaussian(np.array([0.01, 1.0, 4.0]))
    sampler = schuss.ESH(0.5, refresh=3.0, metric=np.sqrt([0.01, 1.0, 4.0]))
    found = quietly(target, sampler=sampler, draws=2000, chains=16)
    w = weights(found)[..., None]
    variance = np.sum(w * found.x**2, axis=(0, 1)) / np.sum(w)
    np.testing.assert_allclose(variance, [0.01, 1.0, 4.0], rtol=0.15)


def test_orbits_cannot_be_thinned():
    with pytest.raises(ValueError, match=r"^thin can't be given with adjust='orbit'"):
        run("orbit", thin=3)
