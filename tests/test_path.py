"""What a path says of itself, where the plain case isn't the only one."""

import numpy as np
import pytest
import torch
from seeds import shifted

import schuss
from schuss import ESH, HMC, ULA, Noise, Sampler, Unscaled


def quartic(x):
    return np.sum(x**4, axis=-1) / 4, x**3


def bowl(x):
    return np.sum(x**2, axis=-1) / 2, x


@pytest.mark.parametrize("kappa", [1.0, 2.0, 6.0])
def test_ergodic_samples_for_any_kappa(kappa):
    """E[E] = ½ in d = 2; chains of 400 steps differ by .4 or so: 5 sigma of 500 of them."""
    init = np.random.default_rng(shifted(0)).standard_normal((500, 2))
    sampler = ESH(step_size=0.1, kappa=kappa, refresh=3.0)
    path = schuss.trajectory(value_and_grad=quartic, init=init, sampler=sampler, steps=400)
    energy = quartic(path.ergodic_sample(20_000))[0]
    assert abs(energy.mean() - 0.5) < 5 * 0.4 / 500**0.5


@pytest.mark.parametrize("sampler", [HMC(), ULA(), ESH(adjust="endpoint"), ESH(adjust="orbit")])
def test_ergodic_samples_belong_to_the_flow(sampler):
    path = schuss.trajectory(value_and_grad=bowl, init=np.ones((3, 2)), sampler=sampler, steps=20)
    with pytest.raises(ValueError, match=r"^ergodic sampling belongs to the un-adjusted ESH flow"):
        path.ergodic_sample(5)
    newton = schuss.trajectory(
        value_and_grad=bowl, init=np.ones((3, 2)), sampler=Unscaled(), steps=20
    )
    assert newton.ergodic_sample(5).shape == (5, 2)


def wall(x):
    energy, g = bowl(x)
    return np.where(x[:, 0] > 1, np.nan, energy), g


def test_the_clock_of_a_frozen_chain_stands():
    init = np.random.default_rng(0).uniform(-0.5, 0.5, (50, 2))
    path = schuss.trajectory(value_and_grad=wall, init=init, steps=2000, seed=1)
    assert path.frozen.any()
    drawn = path.ergodic_sample(2000)
    last = path.x[-1, path.frozen]
    stuck = np.any(np.all(drawn[:, None] == last[None], axis=-1), axis=1)
    assert stuck.mean() < 0.02


def test_nothing_but_frozen_chains():
    path = schuss.trajectory(
        value_and_grad=wall, init=[[0.99, 0.0]], velocity=[[1.0, 0.0]], steps=5
    )
    assert path.frozen.all()
    with pytest.raises(ValueError, match=r"^every chain was frozen before a state counted"):
        path.mean()
    with pytest.raises(ValueError, match=r"^every chain was frozen in its first step"):
        path.ergodic_sample(3)


@pytest.mark.parametrize("exact", [True, False])
def test_jarzynski_in_one_dimension(exact):
    """From N(0, 1) to itself: Z/Z₀ = 1, to 5 standard errors of 4000 chains."""
    x0 = np.random.default_rng(shifted(0)).standard_normal((4000, 1))
    path = schuss.trajectory(value_and_grad=bowl, init=x0, sampler=ESH(step_size=0.05), steps=20)
    weights = np.exp(path.jarzynski(x0[:, 0] ** 2 / 2, exact=exact)[-1])
    assert abs(weights.mean() - 1) < 5 * weights.std() / 4000**0.5 + 0.005


@pytest.mark.parametrize("kappa", [2.0, 6.0])
def test_jarzynski_for_any_kappa(kappa):
    """From N(0, I₃) to E = 2|x|²: Z/Z₀ = 1/8, by the paper's form at a small step."""
    x0 = np.random.default_rng(1).standard_normal((20_000, 3))
    path = schuss.trajectory(
        value_and_grad=lambda x: (2 * np.sum(x**2, axis=-1), 4 * x),
        init=x0,
        sampler=ESH(step_size=0.02, kappa=kappa),
        steps=40,
    )
    weights = np.exp(path.jarzynski(np.sum(x0**2, axis=-1) / 2, exact=False)[-1])
    assert abs(weights.mean() - 0.125) < 5 * weights.std() / 20_000**0.5 + 1e-3


def test_acceptance_is_of_decisions():
    path = schuss.trajectory(
        value_and_grad=quartic, init=np.ones((20, 3)), sampler=HMC(0.8, steps=5), steps=100
    )
    assert np.array_equal(np.isfinite(path.acceptance), path.complete)
    np.testing.assert_allclose(path.acceptance_rate, path.acceptance[4::5].mean(axis=0))
    flow = schuss.trajectory(value_and_grad=quartic, init=np.ones((20, 3)), steps=5)
    assert np.isnan(flow.acceptance_rate).all()


@pytest.mark.parametrize("keep", ["reservoir", "moments"])
def test_less_than_one_transition(keep):
    persistent = ESH(0.1, adjust="persistent", refresh=4.0)
    for sampler, least in (
        (ESH(adjust="orbit", steps=20), 19),
        (HMC(steps=5), 5),
        (persistent, 21),
    ):
        with pytest.raises(ValueError, match=f"^steps must be at least {least}, the length of"):
            Sampler(sampler, steps=least - 1, keep=keep)
        Sampler(sampler, steps=least, keep=keep)


def test_a_persistent_proposal_is_decided_within_its_looks():
    """Long memories in a box of slopes: lookaheads go on for as long as they may."""
    sampler = ESH(1.2, refresh=40.0, adjust="persistent")
    init = np.random.default_rng(0).standard_normal((500, 3))
    found = Sampler(sampler, steps=17, keep="moments").run(value_and_grad=quartic, init=init)
    assert np.isfinite(found.moments.log_total).all()
    first = schuss.trajectory(value_and_grad=quartic, init=init, sampler=sampler, steps=16)
    assert not first.complete[:16].any(axis=0).all(), "this density decides too early to tell"


def test_weights_by_time_add_up_to_the_time():
    """Σ e^(log w) = d ∫ dt up to ε²; the clock of a path is made from r alone, by trapezoids."""
    init = np.random.default_rng(0).standard_normal((20, 2))
    sampler = ESH(step_size=0.01, weight="time")
    path = schuss.trajectory(value_and_grad=quartic, init=init, sampler=sampler, steps=300)
    assert np.ptp(path.r[-1]) > 1
    total = np.exp(path.log_weight).sum(axis=0)
    np.testing.assert_allclose(total, 2 * path.time[-1], rtol=5e-3)


@pytest.mark.parametrize("weight", ["speed", "time"])
def test_weights_by_speed_count_every_chain_the_same(weight):
    """r begins at 0 in each: E[x⁴] = 1 in d = 3 to 5 errors of 200 chains, .04 each."""
    init = 1.5 * np.random.default_rng(0).standard_normal((200, 3))
    path = schuss.trajectory(
        value_and_grad=quartic, init=init, sampler=ESH(0.1, weight=weight), steps=2000
    )
    np.testing.assert_allclose(path.weights.sum(axis=0), 1 / 200)
    assert np.abs(path.mean(path.x[1:] ** 4) - 1).max() < 0.1


def test_before_the_first_transition_no_state_has_weight():
    sampler = ESH(0.3, adjust="orbit", steps=9)
    path = schuss.trajectory(value_and_grad=bowl, init=np.ones((3, 2)), sampler=sampler, steps=7)
    with pytest.raises(ValueError, match=r"^no state has weight: no transition was completed"):
        path.mean()


def test_a_path_is_told_in_a_line_and_its_means_begin_after_the_start():
    path = schuss.trajectory(value_and_grad=quartic, init=np.ones((8, 2)), steps=100)
    assert repr(path).startswith("Path: 101 states of 8 chains in 2 dimensions, 100 gradients each")
    with pytest.raises(ValueError, match=r"got shape \(101, 8, 2\); the start has no weight"):
        path.mean(path.x)


def test_functions_may_reuse_their_arrays_and_their_argument():
    energy, gradient = np.empty(50), np.empty((50, 3))

    def reusing(x):
        np.power(x, 3, out=gradient)
        x **= 4
        np.sum(x, axis=-1, out=energy)
        np.divide(energy, 4, out=energy)
        return energy, gradient

    init = np.random.default_rng(0).standard_normal((50, 3))
    given = {"init": init, "sampler": HMC(0.8, steps=3), "steps": 60}
    kept = init.copy()
    fresh, reused = (schuss.trajectory(value_and_grad=f, **given) for f in (quartic, reusing))
    np.testing.assert_array_equal(fresh.x, reused.x)
    np.testing.assert_array_equal(init, kept)
    with pytest.raises(TypeError, match=r"^value_and_grad must return two arrays"):
        schuss.trajectory(value_and_grad=lambda x: x.sum(axis=1), init=init)


def test_an_open_window_of_an_orbit_counts_for_nothing():
    """Windows of 6 points take 5 steps: of 23 the last 3 belong to none that is complete."""
    init = np.random.default_rng(0).standard_normal((20, 3))
    sampler = ESH(0.5, adjust="orbit", steps=6)
    path = schuss.trajectory(value_and_grad=quartic, init=init, sampler=sampler, steps=23)
    assert np.all(path.weights[-3:] == 0)
    windows = path.weights[:20].reshape(4, 5, 20).sum(axis=1)
    np.testing.assert_allclose(windows, 1 / 80)
    moments = Sampler(sampler, steps=23, keep="moments").run(value_and_grad=quartic, init=init)
    assert np.isfinite(moments.moments.mean).all()


def test_a_box_is_in_the_units_of_the_user_whatever_the_metric():
    """Without a force the path fills the box, and nothing beyond it."""
    upper, scale = np.array([1.0, 30.0, 0.2]), np.array([1.0, 10.0, 0.1])
    path = schuss.trajectory(
        value_and_grad=lambda x: (np.zeros(len(x)), np.zeros_like(x)),
        init=np.zeros((10, 3)),
        sampler=ESH(0.7, refresh=3.0, metric=scale, box=(-upper, upper)),
        steps=1000,
    )
    np.testing.assert_allclose(np.abs(path.x).max(axis=(0, 1)), upper, rtol=0.05)
    assert np.all(np.abs(path.x) <= upper)


@pytest.mark.parametrize("name", ["sampler", "algorithm"])
def test_what_is_no_algorithm_is_refused(name):
    def give(value):
        if name == "algorithm":
            return Sampler(value)
        return schuss.trajectory(value_and_grad=bowl, init=np.ones((3, 2)), sampler=value)

    with pytest.raises(TypeError, match=rf"^{name} must be an algorithm, got the class ESH; pass"):
        give(ESH)
    with pytest.raises(TypeError, match=rf"^{name} must be an algorithm such as schuss.ESH"):
        give("auto")


def test_a_model_is_followed_by_its_function():
    model = schuss.from_pytree(logdensity=lambda p: -(p["a"] ** 2).sum(), init={"a": np.zeros(2)})
    with pytest.raises(TypeError, match=r"here pass logdensity=model.logdensity and init=model.st"):
        schuss.trajectory(model)
    init = model.start(np.random.default_rng(0), 3)
    assert schuss.trajectory(logdensity=model.logdensity, init=init, steps=5).x.shape == (6, 3, 2)


def test_a_target_is_an_energy_to_a_sampler():
    target = schuss.targets.mog()
    x = target.start(np.random.default_rng(0), 5)
    for found in (Sampler(steps=3)(target, x), Sampler(steps=3)(target=target, init=x)):
        np.testing.assert_array_equal(found, Sampler(steps=3).run(target=target, init=x).x)


def test_long_seeds_are_seeds_of_their_own():
    """Engines hold 62 bits of them or 64."""
    seeds = (0, 7, 2**62, 2**64, 7 + 2**64, 2**127 + 7)
    for init in (np.ones((4, 3)), torch.ones(4, 3)):
        energy = (lambda x: (x**2).sum(-1)) if isinstance(init, torch.Tensor) else (lambda x: x @ x)
        given = {"energy": energy, "init": init, "sampler": ESH(refresh=1.0), "steps": 3}
        ends = [schuss.trajectory(**given, seed=seed).u[-1] for seed in seeds]
        for i in range(len(ends)):
            for j in range(i):
                assert not np.any(ends[i] == ends[j])


def test_injected_noise_in_one_dimension():
    noise = Noise(np.random.default_rng(0).standard_normal((5, 3, 2)), None)
    path = schuss.trajectory(
        value_and_grad=bowl, init=np.ones((3, 1)), sampler=ESH(refresh=1.0), steps=4, noise=noise
    )
    assert path.x.shape == (5, 3, 1)


def test_generators_are_for_torch():
    with pytest.raises(ValueError, match=r"^seed must be a whole number with engine='numpy'"):
        schuss.trajectory(value_and_grad=bowl, init=np.ones((3, 2)), seed=torch.Generator())


def test_calls_with_a_generator_share_nothing():
    """In one dimension the added coordinate is drawn too: it must be another in every call."""
    sampler = Sampler(seed=torch.Generator().manual_seed(0), steps=3)
    first, second = (sampler(lambda x: x[:, 0] ** 2, torch.ones(4, 1)) for _ in range(2))
    assert not torch.any(first == second)


def test_paths_with_a_generator_share_nothing():
    """Targets draw their starts by it, too."""
    generator = torch.Generator().manual_seed(0)
    target = schuss.targets.mog()
    given = {"chains": 4, "steps": 3, "engine": "torch", "seed": generator}
    first, second = (schuss.trajectory(target, **given) for _ in range(2))
    assert not np.any(first.x[0] == second.x[0]) and not np.any(first.u[0] == second.u[0])


def test_metric_and_box_in_the_order_of_the_image():
    x = torch.zeros(3, 2, 2, 2).to(memory_format=torch.channels_last)
    x = x + 0.01 * torch.randn(3, 2, 2, 2, generator=torch.Generator().manual_seed(0))
    metric = np.stack([np.full((2, 2), 1e-3), np.ones((2, 2))])
    upper = np.stack([np.full((2, 2), 0.1), np.full((2, 2), 9.0)])
    for shape in ((2, 2, 2), (8,)):
        energy = lambda z: (z**2).sum((1, 2, 3)) * 1e-6  # noqa: E731
        scaled = ESH(0.5, metric=metric.reshape(shape))
        moved = schuss.trajectory(energy=energy, init=x, sampler=scaled, steps=10).x
        spread = np.abs(moved - moved[0]).max(axis=(0, 1, 3, 4))
        assert spread[0] < 0.01 and spread[1] > 1
        boxed = ESH(0.5, box=(-upper.reshape(shape), upper.reshape(shape)))
        held = schuss.trajectory(energy=energy, init=x, sampler=boxed, steps=50).x
        reach = np.abs(held).max(axis=(0, 1, 3, 4))
        assert reach[0] <= 0.1 + 1e-6 < 1 < reach[1]


NET = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1))


def of_a_global(x):
    return NET(x)


class Holder:
    def __init__(self):
        self.net = NET

    def __call__(self, x):
        return self.net(x)

    def energy(self, x):
        return self.net(x)


class Keeper:
    def __init__(self):
        self.nets, self.holder, self.data = {"energy": [NET]}, Holder(), list(range(10**6))

    def in_a_dict(self, x):
        return self.nets["energy"][0](x)

    def of_another(self, x):
        return self.holder.energy(x)


KEEPER, NETS = Keeper(), {"a": (NET,)}


@pytest.mark.parametrize(
    "energy",
    [
        of_a_global,
        lambda x: of_a_global(x),
        Holder(),
        Holder().energy,
        lambda x, net=NET: net(x),
        Keeper().in_a_dict,
        Keeper().of_another,
        lambda x: KEEPER.in_a_dict(x),
        lambda x: NETS["a"][0](x),
    ],
    ids=[
        "global",
        "function of a global",
        "object",
        "method",
        "default",
        "dict",
        "object in an object",
        "global object",
        "global dict",
    ],
)
def test_modules_are_found_wherever_they_are_held(energy):
    NET.train()
    before = NET[1].running_mean.clone()
    Sampler(steps=2)(energy, torch.randn(8, 2))
    assert torch.equal(NET[1].running_mean, before)
    assert NET.training and all(p.requires_grad for p in NET.parameters())


def test_inference_mode():
    with (
        torch.inference_mode(),
        pytest.raises(ValueError, match=r"^gradients can't be taken under"),
    ):
        Sampler(steps=2)(lambda x: (x * x).sum(-1), torch.ones(3, 2))


def test_half_precision_positions():
    with pytest.raises(ValueError, match=r"^init has dtype float16, too coarse"):
        schuss.trajectory(value_and_grad=bowl, init=np.ones((3, 2), np.float16))
