"""Compiled steps of PyTorch: the numbers of eager ones, and one compilation for each loop."""

import functools

import pytest
import torch
from torch import nn

import schuss
from schuss import ESH, HMC, MALA, ULA, NoseHoover, Unscaled
from schuss.engines.torch import compiled_once

# torch's own compiler imports a module that torch itself deprecates.

BOX = (-1.5, [1.2, 1.7])
KERNELS = {
    "flow": ESH(0.3),
    "speed": ESH(0.3, weight="speed", integrator="minimal-norm"),
    "time": ESH(0.3, weight="time"),
    "refresh": ESH(0.3, refresh=3.0, integrator="long-step"),
    "fourth-order": ESH(0.5, integrator="fourth-order"),
    "box": ESH(0.3, kappa=1.0, box=BOX, metric=[0.5, 2.0]),
    "noisy box": ESH(0.3, refresh=3.0, box=BOX),
    "steps": ESH([0.1, 0.2, 0.3, 0.4]),
    "endpoint": ESH(0.8, adjust="endpoint", steps=3),
    "orbit": ESH(0.8, adjust="orbit", steps=4),
    "persistent": ESH(0.8, adjust="persistent", refresh=3.0),
    "ula": ULA(0.3),
    "mala": MALA(0.8),
    "hmc": HMC(0.5, steps=3),
    "nose-hoover": NoseHoover(0.1),
    "unscaled": Unscaled(0.1, q=0.5),
    "newton": Unscaled(0.1, q=0.0),
}
QUICK = ("flow", "orbit", "persistent", "ula", "mala", "nose-hoover")
"""Kernels whose states differ."""

KEEP = ("last", "reservoir", "moments")
START = torch.tensor([[0.3, -0.2], [1.0, 0.7], [-1.1, 0.4], [-0.5, -0.9]])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Linear(2, 4), nn.SiLU(), nn.Linear(4, 1))

    def forward(self, x):
        return self.layers(x) + x.square().sum(-1, keepdim=True)


def bowl(x):
    return (x * x).sum(-1) - torch.cos(x[:, 0])


NET = Net()


@pytest.fixture
def graphs(monkeypatch):
    """Compile with TorchDynamo alone, whose guards are those of any backend: what was captured."""
    captured = []

    def backend(graph, inputs):
        captured.append(graph)
        return graph.forward

    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend=backend))
    compiled_once.cache_clear()
    yield captured
    compiled_once.cache_clear()


def kept(run):
    return run.last, run.x, *(run.moments or ())


def agree(name, energy, start, keeps=KEEP):
    """Paths and samples, compiled and eager; tolerances are some roundings of twenty steps."""
    sampler, close = KERNELS[name], {torch.float32: 2e-4, torch.float64: 1e-11}[start.dtype]
    count = 0
    for keep in keeps:
        if keep == "last" and name == "persistent":
            continue
        made = [
            schuss.Sampler(sampler, steps=20, keep=keep, seed=3, compile=c).run(energy, start)
            for c in (True, False)
        ]
        count += 1
        for got, want in zip(*map(kept, made), strict=True):
            torch.testing.assert_close(got, want, rtol=close, atol=close)
    options = {"energy": energy, "init": start, "sampler": sampler, "steps": 20, "seed": 3}
    got, want = (schuss.trajectory(compile=c, **options) for c in (True, False))
    for field in ("x", "u", "r", "energy", "log_weight", "energy_error", "acceptance"):
        pair = (torch.as_tensor(getattr(path, field)) for path in (got, want))
        torch.testing.assert_close(*pair, rtol=close, atol=close, equal_nan=True, msg=field)
    return count + 1


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (name not in QUICK)) for name in KERNELS],
)
def test_a_loop_is_captured_once(graphs, name):
    """A state whose parts are one tensor at the start, and apart later, would be another input."""
    loops = agree(name, NET, START, ("moments",))
    assert len(graphs) == loops


def test_starts_of_any_layout(graphs):
    """A view that isn't contiguous, and a single chain."""
    columns = START.T.contiguous().T
    assert not columns.is_contiguous()
    for start in (columns, START[:1]):
        graphs.clear()
        loops = agree("mala", NET, start, ("reservoir",))
        assert len(graphs) == loops


@pytest.mark.parametrize("energy", [NET, bowl], ids=["net", "function"])
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name != "mala")) for name in KERNELS]
)
def test_compiled_and_eager_agree(name, energy):
    start = START.double() if energy is bowl else START
    agree(name, energy, start, KEEP if name == "flow" else ("reservoir",))
