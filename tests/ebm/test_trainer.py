"""The training loop learns, repeats itself, resumes exactly, and recovers from divergences."""

import logging
import math

import numpy as np
import pytest
import torch
from torch import nn

import schuss
from schuss import ebm
from schuss.ebm.divergence import cause
from schuss.ebm.history import STATISTICS
from schuss.ebm.objective import Objective
from schuss.ebm.penalty import Penalty
from schuss.ebm.scale import Turn

from .runs import data, small_net, trainer, weights


class Bowl(nn.Module):
    """E = Σ e^a x²/2: its one parameter should become the log of the data's precision."""

    def __init__(self, a):
        super().__init__()
        self.a = nn.Parameter(torch.tensor(a))

    def forward(self, x):
        return 0.5 * torch.exp(self.a) * x.square().sum(1)


def gaussian(sd):
    return lambda n, generator: sd * torch.randn(n, 3, generator=generator)


@pytest.mark.parametrize("start", ["normal", "function"])
def test_learns_a_variance_by_jarzynski(start):
    """e^(−a/2) is the data's sd 0.8 to three per cent, five times the noise of the average.

    Short chains without weights give 0.56, and weights without the energy of the start 0.92.
    """
    given = {"start": "normal"}
    if start == "function":
        given = {"start": gaussian(1.0), "reference": lambda x: 0.5 * x.square().sum(1)}
    learned = {}
    for weighting in ("jarzynski", None):
        if weighting is None:
            given.pop("reference", None)
        net = Bowl(0.0)
        run = trainer(
            net,
            gaussian(0.8),
            buffer=None,
            weighting=weighting,
            keep="last",
            sampler=schuss.ESH(0.3),
            steps=4,
            batch=400,
            optimiser="sgd",
            lr=0.3,
            data_noise=0.0,
            ema=0.98,
            iterations=150,
            every=50,
            **given,
        )
        history = run.fit()
        learned[weighting] = math.exp(-float(run.averaged.a) / 2)
        if weighting:
            assert (history.max_weight > 1 / 400).all() and history.max_weight.max() < 0.2
    assert learned["jarzynski"] == pytest.approx(0.8, rel=0.03)
    assert learned[None] != pytest.approx(0.8, rel=0.1)


def test_learns_where_the_data_are():
    """Persistent chains end where the data are, from all over the box; 5 sigma of 32 chains."""
    run = trainer(iterations=300, every=100, steps=10, energy_scale=5.0)
    history = run.fit()
    assert len(history) == 300 and history.gradients == 3000
    far = torch.rand(500, 2, generator=torch.Generator().manual_seed(1)) * 2 - 1
    near = run.batches.examples.x
    with torch.no_grad():
        assert float(run.net(far).mean() - run.net(near).mean()) * 5 > 1
    middle = run.buffer.x.mean(0) - torch.tensor([0.5, -0.3])
    assert float(middle.norm()) < 0.4


def test_what_is_told():
    history = trainer(data_noise=0.1).fit()
    for name in STATISTICS:
        assert getattr(history, name).shape == (12,)
    np.testing.assert_allclose(history.losses, history.gap, atol=1e-6)
    assert history.frozen.max() == 0 and np.isnan(history.accuracy).all()
    assert np.isfinite(history.energy_error).all() and (history.delta > 0).all()
    np.testing.assert_allclose(history.max_weight, 0.1, rtol=1e-6)
    assert history.images_per_second > 0 and history.rollbacks == ()
    assert "12 iterations, 36 gradients" in repr(history)


def test_the_gradient_norm_is_that_of_the_loss():
    run = trainer(ema=None, optimiser="sgd", lr=0.5)
    before = weights(run.net)
    history = run.fit(1)
    step = (weights(run.net) - before).norm() / 0.5
    assert history.grad_norm[0] == pytest.approx(float(step), rel=1e-5)
    clipped = trainer(ema=None, optimiser="sgd", lr=0.5, clip=1e-3)
    clipped.fit(1)
    assert float((weights(clipped.net) - before).norm() / 0.5) == pytest.approx(1e-3, rel=1e-3)


def test_learning_rate_falls_to_a_tenth():
    seen = []
    run = trainer(iterations=10, optimiser=lambda p: torch.optim.SGD(p, 1.0), lr_schedule="tail")
    step = run.optimiser.step
    run.optimiser.step = lambda: (seen.append(run.optimiser.param_groups[0]["lr"]), step())
    run.fit()
    want = [1.0] * 5 + [1 - 1.8 * (k / 10 - 0.5) for k in range(5, 10)]
    np.testing.assert_allclose(seen, want)
    assert ebm.schedule.SCHEDULES["tail"](1.0) == pytest.approx(0.1)


def test_the_same_seed_gives_the_same_numbers():
    one, two = trainer(seed=1), trainer(seed=1)
    np.testing.assert_array_equal(one.fit().losses, two.fit().losses)
    assert torch.equal(weights(one.net), weights(two.net))
    assert not np.array_equal(trainer(seed=2).fit().losses, one.history.losses)


def test_pieces_are_the_same_as_the_whole():
    whole, pieces = trainer(), trainer()
    whole.fit()
    for count in (1, 3, 5):
        pieces.fit(count)
    np.testing.assert_array_equal(pieces.fit().losses, whole.history.losses)
    assert pieces.iteration == 12 and len(pieces.fit()) == 12


def test_the_net_is_left_in_its_mode():
    net = small_net().eval()
    seen = []

    def look(module, _):
        if module is net:
            seen.append(module.training)

    net.register_forward_pre_hook(look)
    trainer(net).fit(2)
    assert seen == [True, True] and not net.training


def test_time_is_limited():
    run = trainer(iterations=10**6, every=2)
    assert len(run.fit(minutes=1e-3)) < 10**5


def test_joint_model():
    torch.manual_seed(0)
    x = torch.rand(90, 1, 8, 8) * 0.2 - 0.6
    y = torch.arange(90) % 3
    for k in range(3):
        x[y == k, :, 2 * k : 2 * k + 3] += 1.0
    net = ebm.JointEnergy(ebm.ResidualClassifier(3, 1, 4, blocks=1))
    run = trainer(
        net,
        (x, y),
        buffer=ebm.ReplayBuffer(40, (1, 8, 8)),
        energy_scale=10.0,
        iterations=80,
        lr=3e-3,
    )
    history = run.fit()
    assert history.accuracy[-10:].mean() > 0.9
    assert run.from_noise(3).shape == (3, 1, 8, 8)


@pytest.mark.parametrize("precision", [None, "bf16"])
def test_images_in_either_precision(precision):
    torch.manual_seed(0)
    images = torch.rand(30, 1, 8, 8) * 2 - 1
    buffer = ebm.ReplayBuffer(20, (1, 8, 8))
    net = ebm.ConvEnergy(4, 1, 8)
    history = trainer(
        net, images, buffer=buffer, precision=precision, flip=True, energy_scale="auto"
    ).fit()
    assert np.isfinite(history.losses).all()
    assert history.delta[0] == pytest.approx(0.1, rel=0.5)


@pytest.mark.parametrize(
    ("sampler", "length", "turn"),
    [
        (schuss.ESH(0.2), 2, 0.1),
        (schuss.ESH(0.2, kappa=1.0), 1, 0.1),
        (schuss.HMC(0.1, 2), math.sqrt(2), 0.1),
        (schuss.ULA(0.1), math.sqrt(2), 2 / 3),
        (schuss.MALA(0.1), math.sqrt(2), 2 / 3),
    ],
)
def test_the_scale_is_chosen_by_the_turn_of_a_step(sampler, length, turn):
    """ε scale |w| / length is the turn for an energy w·x."""
    net = nn.Linear(2, 1)
    run = trainer(net, sampler=sampler, energy_scale="auto")
    slope = float(net.weight.detach().norm())
    assert run.energy_scale == pytest.approx(turn * length / (sampler.step_size * slope), rel=1e-5)
    assert run.fit(1).delta[0] == pytest.approx(turn, rel=1e-5)


class Slope(nn.Module):
    """A slope that grows as long as chains lag behind the data."""

    def __init__(self):
        super().__init__()
        self.slope = nn.Parameter(torch.tensor(0.1))

    def forward(self, x):
        return self.slope * x[:, 0]


def test_the_loss_bounds_the_slope():
    """f = a x₁ with data to the left: nothing but the penalty ends the growth of |a|.

    In units of the sampler it loses Δ d δ/ε and costs D d/ε (δ − .3)², with Δ the distance along
    x₁ of the data from the chains, which are taken where they begin: least at δ = .3 + Δ/(2D).
    """
    free, bound = (
        trainer(
            Slope(),
            data() - 0.3,
            sampler=schuss.ESH(0.05),
            energy_scale="auto",
            gradient_penalty=weight,
            limits=ebm.Limits(delta=math.inf),
            iterations=200,
            every=100,
            lr=0.05,
            steps=1,
            buffer=None,
            start=lambda n, generator: torch.ones(n, 2),
        )
        for weight in (0.0, 1.0)
    )
    assert free.fit().delta[-1] > 5
    share = 0.8 / math.hypot(0.8, 1.6)
    assert bound.fit().delta[-50:].mean() == pytest.approx(0.3 + share / 2, rel=0.05)


def test_the_penalty_is_its_formula():
    """By hand for E = Σ e^a x²/2, whose gradient is e^a x."""
    net, turn = Bowl(0.5), Turn(0.2)
    x, negatives = torch.tensor([[1.0, 0.0, 0.0], [0.0, 3.0, 4.0]]), torch.zeros(2, 3)
    objective = Objective(net, penalty=Penalty(7.0, turn, 3.0))
    with_penalty = objective(x, None, negatives, None, 2.0).loss.item()
    without = Objective(net)(x, None, negatives, None, 2.0).loss.item()
    delta = [2 * 0.2 * math.exp(0.5) * size for size in (1, 5, 0, 0)]
    hinge = sum(max(0, each - 0.3) ** 2 for each in delta) / 4
    assert with_penalty - without == pytest.approx(7 * 3 / (2 * 0.2) * hinge, rel=1e-5)


def test_a_net_that_nothing_bounds_is_reported(caplog):
    with caplog.at_level(logging.WARNING, "schuss.ebm"):
        trainer(energy_scale="auto")
        buffer = ebm.ReplayBuffer(20, (1, 8, 8))
        x = torch.zeros(30, 1, 8, 8)
        trainer(ebm.ConvEnergy(2, 1, 8), x, buffer=buffer)
        assert not caplog.text
        trainer()
    assert "nothing bounds the slope of net" in caplog.text


# Divergence.


def poisoned_at(run, iteration, value=math.nan, times=1, layer=0):
    """Spoil a weight before an iteration, so often."""
    left, draw = [times], run.batches.draw

    def spoil(now, attempt):
        if now == iteration and left[0]:
            left[0] -= 1
            with torch.no_grad():
                run.net[layer].weight[0, 0] = value
            run._still.update()
        return draw(now, attempt)

    run.batches.draw = spoil


def test_nan_in_the_weights_is_rolled_back(caplog):
    run = trainer()
    poisoned_at(run, 6)
    with caplog.at_level(logging.WARNING, "schuss.ebm"):
        history = run.fit()
    (rollback,) = history.rollbacks
    assert (rollback.iteration, rollback.back_to) == (7, 4)
    assert "the loss is nan" in rollback.cause
    assert "weights that are not finite in 0.weight" in rollback.cause
    assert "iteration 7: training diverged" in caplog.text
    assert "back to iteration 4, retry 1 of 3" in caplog.text
    assert len(history) == 12 and np.isfinite(history.losses).all()
    assert weights(run.net).isfinite().all() and run.buffer.x.isfinite().all()
    assert all(v.isfinite().all() for s in run.optimiser.state.values() for v in s.values())
    assert weights(run.averaged).isfinite().all()
    calm = trainer().fit()
    np.testing.assert_array_equal(history.losses[:4], calm.losses[:4])
    assert not np.array_equal(history.losses[4:], calm.losses[4:])


def test_nan_between_two_calls_is_rolled_back():
    run = trainer()
    run.fit(5)
    good = weights(run.net)
    with torch.no_grad():
        run.net[2].bias[0] = math.nan
    state = run.recovery.last
    assert state[0] == 5 and torch.equal(state[1]["net.0.weight"].reshape(-1), good[:16])
    history = run.fit()
    assert history.rollbacks[0].back_to == 5 and np.isfinite(history.losses).all()


def test_a_divergence_that_stays_is_an_error():
    run = trainer(retries=2)
    before = run.buffer.x.clone()
    poisoned_at(run, 6, times=10)
    with pytest.raises(ebm.DivergenceError, match=r"training diverged 3 times.*iteration 7.*nan"):
        run.fit()
    assert weights(run.net).isfinite().all() and len(run.recovery.rollbacks) == 3
    assert [rollback.back_to for rollback in run.recovery.rollbacks] == [4, 0, 0]
    assert run.iteration == 0 and torch.equal(run.buffer.x, before) and run.buffer.draws == 0


def test_finite_explosions_are_seen():
    """f at 10⁶ with every chain finite."""
    run = trainer()
    poisoned_at(run, 6, value=1e6, layer=2)
    (rollback,) = run.fit().rollbacks
    assert rollback.iteration == 7 and "δ = " in rollback.cause
    run = trainer(sampler=schuss.ULA(1e-8))
    poisoned_at(run, 6, value=1e6, layer=2)
    (rollback,) = run.fit().rollbacks
    assert rollback.iteration == 7 and "|E₊ − E₋| is " in rollback.cause


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("losses", math.inf, "the loss is inf"),
        ("losses", math.nan, "the loss is nan"),
        ("frozen", 0.75, "75 % of the chains met a non-finite energy or gradient"),
        ("grad_norm", 1e8, "the gradient norm is 1e+08"),
        ("grad_norm", math.nan, "the gradient norm is nan"),
        ("energy_data", 2e4, "|E₊ − E₋| is 20000"),
        ("delta", 6.5, "a sampler step turns by δ = 6.5"),
    ],
)
def test_causes(name, value, shown):
    rows = np.zeros((5, len(STATISTICS)))
    assert cause(rows, ebm.Limits()) is None
    rows[3, STATISTICS.index(name)] = value
    rows[4, STATISTICS.index("losses")] = math.nan
    assert cause(rows, ebm.Limits()) == (3, shown)


def test_unknown_energy_errors_are_no_cause():
    rows = np.zeros((2, len(STATISTICS)))
    for name in ("energy_error", "delta", "accuracy"):
        rows[:, STATISTICS.index(name)] = math.nan
    assert cause(rows, ebm.Limits()) is None


def test_one_part_as_two():
    """Two streams have their own data, chains and noise."""
    run = trainer(streams=2)
    run.fit()
    one, two = run.batches.buffers
    assert not torch.equal(one.x, two.x) and len(one.x) == 32


# Conditions and fixed coordinates.


class Centred(nn.Module):
    """E = |x − c_y|²/2 · 25: its centres should become the means of the classes."""

    def __init__(self):
        super().__init__()
        self.centres = nn.Parameter(torch.zeros(2, 2))

    def forward(self, x, y):
        return 12.5 * (x - self.centres[y]).square().sum(1)


@pytest.mark.parametrize("buffered", [True, False])
def test_learns_a_density_given_a_class(buffered):
    """The means of two classes, within a fifth of their distance."""
    generator = torch.Generator().manual_seed(0)
    y = torch.randint(2, (400,), generator=generator)
    means = torch.tensor([[-0.4, 0.2], [0.4, -0.2]])
    x = (means[y] + 0.15 * torch.randn(400, 2, generator=generator)).clamp(-1, 1)
    options = {"iterations": 150, "lr": 0.02, "every": 50, "steps": 10, "data_noise": 0.0}
    options |= {} if buffered else {"buffer": None}
    net = Centred()
    run = trainer(net, (x, y), **options)
    run.fit()
    assert (net.centres.detach() - means).abs().max() < 0.15
    for wanted in (y[:100], None):
        drawn = run.from_noise(100, y=wanted)
        assert drawn.shape == (100, 2)
    drawn, wanted = run.from_noise(100, y=y[:100], rounds=20), y[:100]
    apart = drawn[wanted == 1].mean(0) - drawn[wanted == 0].mean(0)
    assert (apart - (means[1] - means[0])).abs().max() < 0.3
    if buffered:
        assert run.buffer.y.unique().tolist() == [0, 1]
        assert float(run.buffer.x[run.buffer.y == 0, 0].mean()) < -0.1


def test_a_conditional_run_goes_on_where_it_stopped(tmp_path):
    def make(folder):
        y = torch.arange(60) % 2
        buffer = ebm.ReplayBuffer(32, (2,), reinit=0.3)
        torch.manual_seed(0)
        return trainer(Centred(), (data(), y), buffer=buffer, folder=folder, save_every=4)

    whole = make(tmp_path / "whole")
    whole.fit()
    make(tmp_path / "part").fit(4)
    part = make(tmp_path / "part").resume()
    part.fit()
    np.testing.assert_array_equal(part.history.losses, whole.history.losses)
    assert torch.equal(part.buffer.y, whole.buffer.y)


@pytest.mark.parametrize("buffered", [True, False])
def test_fixed_coordinates_are_those_of_data(buffered):
    options = {} if buffered else {"buffer": None}
    x = torch.stack([torch.tensor([-0.5, 0.1, 0.7]).repeat(20), data()[:, 0]], dim=1)
    mask = torch.tensor([True, False])
    run = trainer(examples=x, fixed=mask, data_noise=0.0, energy_scale="auto", **options)
    batch = run.batches.draw(0, 0)
    assert set(batch.negatives[:, 0].tolist()) <= set(x[:, 0].tolist())
    assert len(run.fit(3)) == 3
    if buffered:
        assert set(run.buffer.x[:, 0].tolist()) <= set(x[:, 0].tolist())
    wanted = torch.full((5, 2), 0.3)
    filled = run.from_noise(5, fixed=[False, True], init=wanted)
    assert (filled[:, 1] == 0.3).all() and (filled[:, 0] != 0.3).all()
    with pytest.raises(ValueError, match=r"^fixed needs init of shape \(4, 2\), which has the"):
        run.from_noise(4, fixed=[False, True])


def test_classes_of_a_joint_model_are_sampled():
    torch.manual_seed(0)
    x, y = torch.rand(30, 1, 8, 8), torch.arange(30) % 3
    net = ebm.JointEnergy(ebm.ResidualClassifier(3, 1, 4, blocks=1), scale=2.0)
    run = trainer(net, (x, y), buffer=ebm.ReplayBuffer(20, (1, 8, 8)))
    assert run.from_noise(6, y=y[:6]).shape == (6, 1, 8, 8)
    logits = net.logits(x)
    assert torch.equal(net(x, y), -2 * logits[torch.arange(30), y])
