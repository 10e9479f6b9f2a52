"""Negatives are the sampler's samples, with the right energy error and Jarzynski weights."""

import math

import pytest
import torch
from torch import nn

import schuss
from schuss.core.collect import collecting
from schuss.ebm.negatives import Drawer, Scaled
from schuss.problem import launch, pose

START = torch.randn(6, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


class Well(nn.Module):
    """½ Σ x²/s², whose normaliser is known."""

    def __init__(self, sd):
        super().__init__()
        self.sd = nn.Parameter(torch.tensor(sd, dtype=torch.float64), requires_grad=False)

    def forward(self, x):
        return 0.5 * ((x / self.sd) ** 2).reshape(len(x), -1).sum(1)


def drawer(net, sampler=None, steps=10, keep="last", scale=1.0):
    sampler = schuss.ESH(step_size=0.1) if sampler is None else sampler
    return Drawer(
        net, sampler, steps=steps, keep=keep, energy_scale=scale, compile=False, gradient_dtype=None
    )


@pytest.mark.parametrize("keep", ["last", "reservoir"])
@pytest.mark.parametrize(
    "sampler",
    [schuss.ESH(0.1), schuss.ESH(0.1, refresh=1.0), schuss.ULA(0.1), schuss.HMC(0.1, 2)],
    ids=["ESH", "ESH with noise", "ULA", "HMC"],
)
def test_the_same_as_the_sampler(sampler, keep):
    """Step by step what `Sampler` does with the same seed."""
    net, seed = Well([0.5, 1.0, 2.0]), 123
    problem = pose(energy=Scaled(3.0, net), init=START, engine="torch")
    job, state, _ = launch(problem, sampler, seed, speed=False, weighted=keep != "last")
    kept = problem.engine.collect(job, state, None, 0, 10, collecting(keep))[2]
    want = kept.collected.x if keep == "reservoir" else kept.last
    draw = drawer(net, sampler, keep=keep, scale=3.0)
    for _ in range(2):
        torch.testing.assert_close(draw(START, seed).x, want, rtol=0, atol=0)
    assert not torch.equal(draw(START, seed + 1).x, want)


def test_energy_error_is_the_drift_of_the_hamiltonian():
    net, seed = Well([0.5, 1.0, 2.0]), 5
    made = drawer(net)(START, seed)
    path = schuss.trajectory(
        energy=Scaled(1.0, net), init=START, sampler=schuss.ESH(0.1), steps=10, seed=seed
    )
    drift = torch.as_tensor(path.hamiltonian[-1] - path.hamiltonian[0])
    torch.testing.assert_close(made.x, torch.as_tensor(path.x[-1]), rtol=0, atol=1e-12)
    torch.testing.assert_close(made.energy_error, drift, rtol=0, atol=1e-10)
    g = made.x / torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64) ** 2
    torch.testing.assert_close(made.delta, 0.1 * g.norm(dim=1) / 3, rtol=0, atol=1e-12)
    assert not made.frozen.any()


@pytest.mark.parametrize("step", [0.1, 0.8])
def test_jarzynski_weights_give_the_normaliser(step):
    """⟨w⟩ = Z/Z₀ at any step size: 5 sigma of 40 000 chains from N(0, I) to N(0, s²)."""
    sd, n = [0.6, 0.8, 0.7], 40_000
    x = torch.randn(n, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    made = drawer(Well(sd), schuss.ESH(step), steps=5)(x, 7)
    w = torch.exp(0.5 * (x * x).sum(1) + made.log_weights)
    error = float(w.std()) / math.sqrt(n)
    assert error < 0.02 * math.prod(sd)
    assert abs(float(w.mean()) - math.prod(sd)) < 5 * error


def test_chains_that_freeze_are_told():
    class Cliff(Well):
        def forward(self, x):
            energy = super().forward(x)
            return torch.where(x[:, 0] > 0.5, math.inf, energy)

    x = torch.zeros(20, 3, dtype=torch.float64)
    x[:, 0] = 0.45
    made = drawer(Cliff([1.0, 1.0, 1.0]))(x, 0)
    assert made.x.isfinite().all() and 0 < int(made.frozen.sum()) < 20


def test_other_samplers_tell_no_energy_error():
    made = drawer(Well([1.0, 1.0, 1.0]), schuss.ULA(0.1))(START, 0)
    assert made.energy_error.isnan().all() and made.log_weights is None


def test_bad_input():
    with pytest.raises(ValueError, match="keep must be one of"):
        drawer(Well([1.0]), keep="moments")
    with pytest.raises(ValueError, match="steps must be a whole number of at least 5, got 2"):
        drawer(Well([1.0]), schuss.HMC(0.1, 5), steps=2, keep="reservoir")


@pytest.mark.slow
def test_a_compiled_start_is_the_eager_one():
    """Compiled from the first gradient on: the same negatives, to rounding."""
    net = Well([0.5, 1.0, 2.0])
    options = {"steps": 4, "keep": "reservoir", "energy_scale": 2.0, "gradient_dtype": None}
    fast, slow = (Drawer(net, schuss.ESH(0.1), compile=c, **options) for c in (True, False))
    for seed in (1, 2):
        one, two = fast(START, seed), slow(START, seed)
        torch.testing.assert_close(one.x, two.x, rtol=0, atol=1e-12)
        torch.testing.assert_close(one.log_weights, two.log_weights, rtol=0, atol=1e-12)


@pytest.mark.slow
def test_compiled_steps_of_several_sizes_while_weights_get_gradients():
    """A net has no gradients before its first iteration; another size was compiled before."""
    for size in (3, 5):
        net = Well([0.5, 1.0, 2.0])
        parameter = torch.nn.Parameter(torch.ones((), dtype=torch.float64))
        net.register_parameter("factor", parameter)
        start = torch.ones(size, 3, dtype=torch.float64)
        options = {"steps": 4, "keep": "last", "energy_scale": 2.0, "gradient_dtype": None}
        fast, slow = (Drawer(net, schuss.ESH(0.1), compile=c, **options) for c in (True, False))
        for seed in (1, 2):
            torch.testing.assert_close(fast(start, seed).x, slow(start, seed).x)
            (net.factor * net(start).sum()).backward()


@pytest.mark.slow
def test_compiled_steps_take_other_conditions_and_other_fixed_coordinates():
    """Compiled once, called with new ones: the numbers of eager steps."""

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(3, 2)

        def forward(self, x, y):
            return (self.layer(x).gather(1, y[:, None])[:, 0] ** 2).requires_grad_()

    torch.manual_seed(0)
    net = Net().eval().requires_grad_(False)
    mask = torch.tensor([False, True, False])
    options = {"steps": 6, "keep": "reservoir", "energy_scale": 3.0, "gradient_dtype": None}
    eager, compiled = (
        Drawer(net, schuss.ESH(0.1), compile=how, fixed=mask, **options) for how in (False, True)
    )
    for seed in range(3):
        x, y = torch.randn(8, 3), torch.randint(2, (8,))
        found = [drawer(x, seed, y) for drawer in (eager, compiled)]
        for one in found:
            assert torch.equal(one.x[:, 1], x[:, 1]) and (one.x[:, 0] != x[:, 0]).all()
        torch.testing.assert_close(found[0].x, found[1].x, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(found[0].delta, found[1].delta, rtol=1e-3, atol=1e-5)
