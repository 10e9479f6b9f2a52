"""`schuss.sample` as it is called: wishes, starts, seeds, interruptions and bad input."""

import os
import subprocess
import sys
import time

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from seeds import shifted

import schuss

from .targets import MEAN, SECOND, energy, logdensity, quietly, sigmas, value_and_grad

DRAWS = 50


@pytest.fixture(scope="module")
def plain():
    return quietly(draws=DRAWS)


# Wishes.


def test_draws(plain):
    assert plain.x.shape == plain.draws.shape == (4, DRAWS, 3)
    assert plain.stats.energy.shape == plain.stats.energy_error.shape == (4, DRAWS)
    np.testing.assert_allclose(
        plain.stats.energy, value_and_grad(plain.x.reshape(-1, 3))[0].reshape(4, -1), rtol=1e-10
    )
    np.testing.assert_allclose(plain.stats.gradient, value_and_grad(plain.x)[1], atol=1e-9)
    assert plain.stats.exact and not plain.stats.interrupted
    assert plain.stats.sampler == "auto" and plain.stats.engine == "jax"
    assert plain.weights is None and plain.name == "energy"
    assert 0.7 < np.nanmean(plain.stats.acceptance) <= 1
    assert list(plain.stats.gradients) == ["burn-in", "adapting"]
    assert all(count > 0 for count in plain.stats.gradients.values())
    assert [row["gradients"] for row in plain.stats.history] == sorted(
        row["gradients"] for row in plain.stats.history
    )


@pytest.mark.parametrize("seed", [0, 1])
def test_a_rotated_gaussian_is_known_after_few_gradients(seed):
    """By a metric that has its directions; scales alone take 20 times as many."""
    found = schuss.sample(schuss.targets.icg_rotated(), ess=200, seed=seed, progress=False)
    assert sum(found.stats.gradients.values()) < 6000 and found.verdict.converged


def test_a_thousand_draws_if_nothing_is_said():
    found = schuss.sample(energy=energy, init=np.zeros(3), progress=False)
    assert found.x.shape == (4, 1000, 3) and found.verdict.converged


@pytest.mark.parametrize("wanted", [200, 3000])
def test_effective_sample_size(wanted):
    """What was asked for, by the verdict's own count, to the difference between the two."""
    found = quietly(ess=wanted)
    assert found.verdict.numbers["ess"] > 0.8 * wanted
    assert found.verdict.converged and found.stats.exact


def test_gradients():
    found = quietly(gradients=20_000)
    assert 20_000 <= sum(found.stats.gradients.values()) < 20_000 + 4 * 256 + 1
    assert found.stats.exact


@pytest.mark.parametrize("wanted", [1, 50, 400])
def test_few_gradients_give_what_there_is(wanted):
    found = quietly(gradients=wanted)
    assert wanted <= sum(found.stats.gradients.values()) < wanted + 200
    assert found.x.shape[1] >= 4 and np.isfinite(found.x).all()
    assert not found.verdict.converged
    unsettled = "before its parameters had settled" in str(found.verdict)
    assert unsettled == found.stats.cut_short == (wanted < 400)


def test_seconds(plain):
    begun = time.perf_counter()
    found = quietly(seconds=1.0)
    assert 0.5 <= time.perf_counter() - begun < 4
    assert 0.3 <= sum(found.stats.seconds.values()) < 4
    assert found.x.shape[1] > DRAWS


def test_a_time_counts_what_comes_after_the_draws():
    """The end is rehearsed once, and its time kept free."""
    seen = []
    quietly(seconds=1.0, callback=lambda view: seen.append(view.clock.ending * 1e6))
    assert seen[0] == 0 < seen[-1]


def test_thin(plain):
    """Every third state: those of a run that keeps all of them, as nothing else depends on it."""
    every, third = quietly(draws=90, thin=1), quietly(draws=30, thin=3)
    assert third.stats.thin == 3
    np.testing.assert_array_equal(third.x, every.x[:, 2::3])


def test_moments_only():
    """Of all states, not only of those that are held; the same numbers as from all draws."""
    kept = quietly(draws=1500, thin=2, keep="moments")
    assert kept.draws is None and kept.x is None
    every = quietly(draws=3000, thin=1)
    n = kept.moments.total
    assert np.all(n >= 3000)
    np.testing.assert_allclose(kept.moments.mean, every.x.mean(axis=1), atol=0.15)
    np.testing.assert_allclose(kept.moments.variance, every.x.var(axis=1), rtol=0.4)
    assert np.abs(kept.moments.mean.mean(axis=0) - MEAN).max() < 0.1
    assert kept.moments.ess.min() > 400 and "moments" in str(kept.verdict)


# Starts and functions.


def test_functions_of_all_kinds_agree(plain):
    """The same seed with log p in place of −E, and by NumPy's own loop."""
    same = quietly(logdensity=logdensity, draws=DRAWS)
    np.testing.assert_array_equal(same.x, plain.x)
    own = quietly(value_and_grad=value_and_grad, gradients=4000)
    assert own.stats.engine == "numpy" and own.x.shape[2] == 3


def test_starts_of_all_kinds():
    for init in (
        np.full(3, 0.5),
        [0.5, 0, -1],
        np.random.default_rng(0).standard_normal((4, 3)),
        lambda rng, chains: rng.standard_normal((chains, 3)),
        lambda rng: rng.standard_normal(3),
    ):
        found = quietly(init=init, gradients=2000)
        assert found.x.shape[::2] == (4, 3)


def test_nests_come_back_by_name():
    def split(p):
        return logdensity(jnp.concatenate([p["a"][None], p["b"]["c"]]))

    found = quietly(logdensity=split, init={"a": 0.0, "b": {"c": np.zeros(2)}}, gradients=16_000)
    assert found["a"].shape == found.x.shape[:2] and found["b.c"].shape == (*found.x.shape[:2], 2)
    np.testing.assert_array_equal(found["a"], found.x[..., 0])
    assert np.abs(found.x.mean(axis=(0, 1)) - MEAN).max() < 0.3


def test_images_come_back_as_images():
    found = quietly(
        value_and_grad=lambda x: ((x**2).sum(axis=(1, 2)) / 2, x),
        init=np.zeros((4, 2, 3)),
        gradients=2000,
    )
    assert found.draws.shape == (*found.x.shape[:2], 2, 3)


class Net(torch.nn.Module):
    """The same energy as a module."""

    def __init__(self):
        super().__init__()
        self.shapes = torch.nn.Parameter(torch.tensor([0.7, 1.0, 2.0], dtype=torch.float64))

    def forward(self, x):
        return (torch.exp(x) - self.shapes * x).sum(-1, keepdim=True)


def test_torch():
    """A module, left in training mode and with gradients of its own as it was."""
    net = Net().train()
    found = quietly(energy=net, init=torch.zeros(3, dtype=torch.float64), gradients=6000)
    assert found.stats.engine == "torch" and found.stats.exact
    assert isinstance(found.x, np.ndarray)
    assert net.training and net.shapes.requires_grad and net.shapes.grad is None
    assert np.abs(found.x.mean(axis=(0, 1)) - MEAN).max() < 0.6
    again = quietly(energy=net, init=torch.zeros(3, dtype=torch.float64), gradients=6000)
    np.testing.assert_array_equal(again.x, found.x)


def test_single_precision():
    found = quietly(init=np.zeros(3, np.float32), draws=1000)
    assert found.verdict.converged
    assert np.abs(found.x.mean(axis=(0, 1)) - MEAN).max() < 0.25
    # The energies were made in 32 bits.
    exact = value_and_grad(found.x.reshape(-1, 3))[0].reshape(found.stats.energy.shape)
    gap = np.abs(found.stats.energy - exact)
    assert 1e-9 < gap.max() < 1e-4


# Few dimensions, few chains.


def test_a_line():
    """A double well, whose mean is −.4825, to 5 standard errors of 16 chains (p = 1e-4)."""
    well = schuss.targets.double_well(1)
    found = schuss.sample(well, chains=16, ess=4000, progress=False)
    assert found.x.shape[2] == 1 and found.draws.shape == found.x.shape
    means = found.x[..., 0].mean(axis=1)
    error = means.std(ddof=1) / 4
    assert error < 0.06 and abs(means.mean() + 0.4825) < 5 * error
    np.testing.assert_allclose(
        found.stats.energy, well.energy(np, found.x.reshape(-1, 1)).reshape(16, -1), atol=1e-9
    )


def test_a_plane_with_modes_far_apart():
    """Eight modes on a circle, 5 sd from each other: every chain finds them all, evenly.

    Shares of 1000 draws that are worth hundreds: 1/8 to a third.
    """
    target = schuss.targets.toy_mog()
    found = schuss.sample(target, draws=1000, progress=False)
    assert found.x.shape == (4, 1000, 2)
    angle = np.arctan2(found.x[..., 1], found.x[..., 0]) % (2 * np.pi)
    exact = target.sample(np.random.default_rng(0), 4000)
    truth = np.arctan2(exact[:, 1], exact[:, 0]) % (2 * np.pi)
    edges = np.linspace(0, 2 * np.pi, 5)
    w = np.ones_like(angle) if found.weights is None else found.weights
    for chain in range(4):
        shares = np.histogram(angle[chain], edges, weights=w[chain])[0] / w[chain].sum()
        np.testing.assert_allclose(shares, np.histogram(truth, edges)[0] / 4000, atol=0.12)


def test_a_single_chain():
    """R-hat comes from its halves."""
    found = quietly(chains=1, draws=3000)
    assert found.x.shape == (1, 3000, 3)
    assert found.verdict.converged and found.verdict.numbers["rhat"] < 1.05


def test_unadjusted():
    found = quietly(draws=1000, exact=False)
    assert not found.stats.exact
    assert np.abs(found.x.mean(axis=(0, 1)) - MEAN).max() < 0.2
    assert np.abs((found.x**2).mean(axis=(0, 1)) / SECOND - 1).max() < 0.25


# Repetition.


def test_the_seed_decides_the_draws(plain):
    again, other = quietly(draws=DRAWS), quietly(draws=DRAWS, seed=1)
    np.testing.assert_array_equal(again.x, plain.x)
    np.testing.assert_array_equal(again.stats.energy, plain.stats.energy)
    assert not np.any(other.x == plain.x)
    for chain in range(1, 4):
        assert not np.any(plain.x[chain] == plain.x[0])
    big = quietly(gradients=600, seed=2**62 + 1)
    assert big.stats.seed == 2**62 + 1


@pytest.mark.parametrize("seed", [-1, 1.5, "one", None])
def test_seeds_are_whole_numbers(seed):
    with pytest.raises(ValueError, match=r"^seed must be a whole number"):
        quietly(seed=seed)
    with pytest.raises(ValueError, match=r"^seed must be a whole number"):
        quietly(seed=torch.Generator())


# Callbacks and Ctrl-C.


def stop_when(condition):
    def callback(view):
        if condition(view):
            raise KeyboardInterrupt

    return callback


@pytest.mark.parametrize("phase", ["adapting", "sampling"])
def test_an_interrupted_run_gives_what_it_has(phase, plain):
    found = quietly(draws=10**6, callback=stop_when(lambda v: v.phase == phase and v.ess > 80))
    assert found.stats.interrupted and found.x.shape[1] >= 4
    reached = f"{found.x.shape[1]} of 1000000 draws a chain"
    assert any(f"interrupted after {reached}" in note for note in found.verdict.notes)
    assert found.verdict.headline.startswith(f"Interrupted after {reached}. ")
    assert np.isfinite(found.x).all()


def test_interrupted_in_its_first_window():
    found = quietly(draws=100, callback=stop_when(lambda v: v.phase == "burn-in"))
    assert found.stats.interrupted and found.stats.cut_short and np.isfinite(found.x).all()


def test_a_callback_ends_the_run():
    found = quietly(draws=10**6, callback=lambda view: view.ess > 80)
    assert found.stats.interrupted is False and found.verdict.numbers["ess"] > 60


def test_callbacks_see_the_run(plain):
    seen, drawn = [], []

    def callback(view):
        seen.append((view.phase, view.gradients, view.ess, view.rhat))
        drawn.append(view.posterior().x.shape)

    found = quietly(draws=1000, callback=callback)
    np.testing.assert_array_equal(found.x, quietly(draws=1000).x)
    phases = list(dict.fromkeys(phase for phase, *_ in seen))
    assert phases == ["burn-in", "adapting", "sampling"]
    gradients = [row[1] for row in seen]
    assert gradients == sorted(gradients)
    assert gradients[-1] == sum(found.stats.gradients.values())
    assert drawn and all(shape[::2] == (4, 3) for shape in drawn)


def test_what_a_callback_raises_reaches_the_caller():
    def callback(view):
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match=r"^mine$"):
        quietly(draws=10, callback=callback)


# Bad input.


def test_nothing_finite_anywhere():
    with pytest.raises(ValueError, match=r"^the energy or its gradient is not finite at the start"):
        quietly(init=np.full(3, np.nan))
    with pytest.raises(ValueError, match="not finite at the start of any chain"):
        quietly(value_and_grad=lambda x: (np.full(len(x), np.nan), x))
    with pytest.raises(ValueError, match="not finite at the start of any chain"):
        quietly(value_and_grad=lambda x: (x.sum(1), np.full_like(x, np.inf)))


def test_some_chains_start_where_nothing_is():
    """They begin with the others."""
    init = np.zeros((4, 3))
    init[1], init[2, 0] = np.nan, 2000.0
    found = quietly(init=init, draws=900)
    assert np.isfinite(found.x).all() and found.verdict.converged


def test_walls_and_holes_on_the_way():
    """No energy beyond x₁ = 1, gradients that aren't finite beyond x₂ = 1.5."""

    def walled(x):
        value, g = value_and_grad(x)
        value = np.where(x[:, 0] > 1, np.nan, value)
        return value, np.where(x[:, 1:2] > 1.5, np.inf, g)

    found = quietly(value_and_grad=walled, gradients=12_000)
    assert np.isfinite(found.x).all() and np.isfinite(found.stats.energy).all()
    assert found.x[..., 0].max() <= 1 and found.x[..., 1].max() <= 1.5
    assert found.stats.divergences > 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"init": np.zeros((2, 0))}, r"^init has shape \(2, 0\), which holds no position"),
        ({"init": np.zeros((4, 3), bool)}, "^init must be floating point, got dtype bool"),
        ({"init": np.zeros(3, np.float16)}, "^init has dtype float16, too coarse"),
        ({"init": 0.0}, r"^init must be a point \(dim,\), a batch"),
        ({"init": np.zeros((3, 3)), "chains": 4}, "^init holds 3 starts but chains=4"),
        ({"energy": lambda x: x, "init": np.zeros(3)}, r"^energy returned shape"),
        ({"logdensity": lambda x: x, "init": np.zeros(3)}, r"^logdensity returned shape"),
        ({"logdensity": lambda x: x["a"], "init": np.zeros(3)}, r"^logdensity works neither"),
        ({"draws": 10, "ess": 10}, "^pass one of draws, ess, seconds and gradients, got draws and"),
        ({"draws": 0}, "^draws must be a whole number of at least 4"),
        ({"thin": 0}, "^thin must be a whole number of at least 1"),
        ({"keep": "all"}, "^keep must be one of 'draws', 'moments'"),
        ({"engine": "numpy"}, "^engine='numpy' has no autodiff"),
        ({"ess": "400"}, "^ess must be positive and finite, got '400'"),
        ({"devices": 0}, "^devices must be a whole number of at least 1"),
        ({"devices": 9999}, "^devices=9999 are more than the [0-9]+ that JAX has here"),
        ({"chains": 0}, "^chains must be a whole number of at least 1"),
    ],
)
def test_bad_arguments(given, message):
    with pytest.raises(ValueError, match=message):
        quietly(**given)


def test_a_class_is_no_sampler():
    with pytest.raises(TypeError, match=r"got the class HMC; pass HMC\(…\)"):
        quietly(sampler=schuss.HMC)


def test_moments_of_draws_from_before_all_was_frozen():
    found = quietly(ess=210, keep="moments")
    assert np.isfinite(found.moments.mean).all() and found.verdict.converged


def test_one_chain_cannot_tell_of_other_modes():
    found = quietly(chains=1, draws=3000)
    assert found.verdict.converged and "one chain can't tell" in found.verdict.notes[-1]


@pytest.mark.parametrize("given", [{"exact": "yes"}, {"callback": 3}])
def test_settings_of_another_kind_are_refused(given):
    with pytest.raises((TypeError, ValueError), match=f"^{next(iter(given))} must be"):
        quietly(**given)


def test_a_large_effective_sample_of_moments_ends():
    """More than the draws that are held without such a wish."""
    found = quietly(keep="moments", ess=6000)
    assert found.verdict.numbers["ess"] >= 6000
    assert sum(found.stats.gradients.values()) < 300_000


def test_walls_are_no_fault():
    """An exponential density, quantiles to 5 standard errors at an effective sample of 1000."""
    found = schuss.sample(
        logdensity=lambda x: jnp.where(x[0] > 0, -x[0], -jnp.inf), init=np.ones(1), progress=False
    )
    assert found.verdict.converged, found.verdict
    for p in (0.05, 0.5, 0.95):
        below = np.mean(found.x < -np.log(1 - p))
        assert below == pytest.approx(p, abs=5 * (p * (1 - p) / 1000) ** 0.5)


def test_devices_belong_to_jax():
    with pytest.raises(ValueError, match=r"^devices is for engine='jax', got engine='numpy'"):
        quietly(value_and_grad=value_and_grad, devices=2)


# Densities that can't be sampled.


@pytest.mark.parametrize("place", [np.zeros(3), np.random.default_rng(5).normal(size=(4, 1))])
@pytest.mark.parametrize(
    "wrong", [lambda x: jnp.sum(x * x) / 2, lambda x: jnp.sum(x), lambda x: jnp.log1p(x @ x)]
)
def test_energies_that_fall_without_end_are_refused(wrong, place):
    """As those with a wrong sign do."""
    with pytest.raises(ValueError, match=r"falls without end.* Check the sign"):
        schuss.sample(logdensity=wrong, init=place, draws=40, progress=False)


def test_a_direction_left_free_is_flagged():
    with pytest.warns(schuss.NotConverged, match="may be improper"):
        schuss.sample(
            logdensity=lambda x: -jnp.sum(x[:2] ** 2) / 2,
            init=np.zeros(3),
            draws=40,
            progress=False,
        )


ROWS = np.random.default_rng(0).normal(size=(20, 3))


def test_classes_that_a_plane_parts_are_told_of():
    """Without a prior the likelihood is level far out, with gradients whose squares vanish.

    Whether chains are still on their way out or wander on the plateau is a matter of rounding.
    """

    def logp(b):
        line = ROWS @ b
        return jnp.sum((ROWS[:, 0] > 0) * line - jnp.logaddexp(0, line))

    with pytest.warns(schuss.NotConverged, match="may be improper.* every prior is proper"):
        found = schuss.sample(logdensity=logp, init=np.zeros(3), draws=100, progress=False)
    assert not any("hardly moved" in reason.what for reason in found.verdict.reasons)


def without_noise(p):
    """Data without noise: the likelihood grows without bound until the floats end."""
    y = ROWS @ np.array([1.0, -2.0, 0.5])
    misfit = jnp.sum((y - ROWS @ p["beta"]) ** 2) * jnp.exp(-2 * p["log_sigma"])
    return -20 * p["log_sigma"] - misfit / 2 - jnp.sum(p["beta"] ** 2) / 200


def without_end(x):
    """All trials succeeded, and a flat prior on the logit."""
    return 10 * x[0] - 10 * jnp.logaddexp(0, x[0])


def reasons(logp, seed):
    """Why this run isn't trusted."""
    noisy = logp is without_noise
    init = {"beta": np.zeros(3), "log_sigma": np.zeros(())} if noisy else np.zeros(1)
    wish = {"gradients": 200_000 if noisy else 50_000}
    with pytest.warns(schuss.NotConverged):
        found = schuss.sample(logdensity=logp, init=init, **wish, seed=seed, progress=False)
    return str(found.verdict)


IMPROPER = pytest.mark.parametrize("logp", [without_noise, without_end])


@IMPROPER
def test_a_density_that_grows_without_end_is_never_trusted(logp):
    assert reasons(logp, shifted(0))


# One of the seeds fits a metric with a direction of no width.
@pytest.mark.filterwarnings("ignore:divide by zero encountered in log1p:RuntimeWarning")
@pytest.mark.slow
@IMPROPER
def test_a_density_that_grows_without_end_is_mostly_named(logp):
    """As improper, or at the ends of floats. At a rate of .8 fewer than 4 of 8 are once in 100."""
    names = "may be improper", "where neighbours in float64 are"
    told = [reasons(logp, shifted(seed)) for seed in range(8)]
    assert sum(any(name in words for name in names) for words in told) >= 4


def test_work_from_a_far_start_is_that_of_every_density():
    """(x − x₀)·∇E/d from 40 deviations away: mean 1, sd 10, so that the upper quartile is 7.7."""
    found = schuss.sample(schuss.targets.isotropic(4), init=np.full((4, 4), 20.0), progress=False)
    assert found.stats.outward == pytest.approx(7.7, abs=3.0)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_start_beside_a_needle_is_no_flight(seed):
    """Starts around the mode are 10⁵ widths of the narrow direction away from it."""

    def logp(x):
        return -jnp.sum((x / jnp.array([1e6, 1.0, 1e-6])) ** 2) / 2

    found = schuss.sample(logdensity=logp, init=np.zeros(3), seed=seed, progress=False)
    assert found.verdict.converged


@pytest.mark.parametrize("seed", [0, 1])
def test_a_scale_without_a_proper_prior_is_told_of(seed):
    """p(τ) ∝ 1/τ for groups: all of the mass is at τ = 0, and coordinates are found that go there.

    Chains turn back where floats end, agree with each other and mix.
    """

    def logp(p):
        spread = jnp.sum(p["theta"] ** 2) * jnp.exp(-2 * p["log_tau"]) / 2 + 8 * p["log_tau"]
        return -spread - jnp.sum((p["theta"] - jnp.arange(8) / 4) ** 2) / 2

    init = {"theta": np.zeros(8), "log_tau": np.zeros(())}
    with pytest.warns(schuss.NotConverged, match="density may be improper"):
        schuss.sample(logdensity=logp, init=init, gradients=50_000, seed=seed, progress=False)


# Devices.

SCRIPT = """
import sys, warnings
import numpy as np
import jax
import schuss
sys.path.insert(0, sys.argv[1])
from tests.sampling.targets import quietly
devices = None if sys.argv[3] == "all" else int(sys.argv[3])
short = quietly(gradients=1200, chains=8, devices=devices)
long = quietly(draws=500, chains=8, devices=devices)
np.savez(sys.argv[2], short=short.x, long=long.x, devices=len(jax.devices()))
"""


@pytest.mark.slow
@pytest.mark.parametrize("devices", ["all", "4"])
def test_eight_devices_give_the_numbers_of_one(tmp_path, devices):
    """As long as rounding, which depends on the shape of a shard, hasn't been enlarged by the flow.

    After that the numbers are others of the same law: means to 8 standard errors of 8 chains,
    p = 1e-4.
    """
    root = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
    out = tmp_path / "eight.npz"
    flags = "--xla_force_host_platform_device_count=8"
    subprocess.run(
        [sys.executable, "-c", SCRIPT, root, str(out), devices],
        check=True,
        env=os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
        timeout=600,
    )
    found = np.load(out)
    assert found["devices"] == 8
    one = quietly(gradients=1200, chains=8)
    np.testing.assert_allclose(found["short"], one.x, rtol=0, atol=1e-6)
    away, error = sigmas(found["long"], MEAN)
    assert np.all(away < 8) and np.all(error < 0.15)
