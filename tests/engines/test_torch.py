"""The PyTorch engine: modules are left as they were found, images aren't copied."""

import dataclasses
import functools

import numpy as np
import pytest
import torch
from torch import nn

import schuss
from schuss.engines.torch import Torch

START = torch.tensor(np.random.default_rng(0).standard_normal((6, 3)), dtype=torch.float32)
SAMPLER = schuss.ESH(0.3, refresh=3.0)


class Net(nn.Module):
    """A confining energy that returns (n,) or (n, 1), with dropout that training mode turns on."""

    def __init__(self, column=True, fails_after=None):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Linear(3, 16), nn.SiLU(), nn.Dropout(0.5), nn.Linear(16, 1))
        self.column, self.fails_after, self.calls = column, fails_after, 0

    def forward(self, x):
        self.calls += 1
        if self.fails_after is not None and self.calls > self.fails_after:
            raise RuntimeError("out of luck")
        energy = self.layers(x) + 0.5 * (x * x).sum(-1, keepdim=True)
        return energy if self.column else energy[:, 0]

    def energy(self, x):
        return self(x)


def sample(energy, init=START, **options):
    options = {"steps": 5, "seed": 1} | options
    return schuss.Sampler(SAMPLER, **options)(energy, init)


@dataclasses.dataclass(frozen=True)
class Scaled:
    scale: float
    net: nn.Module

    def __call__(self, x):
        return self.scale * self.net(x)


def closure(net):
    return lambda x: net(x)


def nested(net):
    inner = closure(net)
    return lambda x: inner(x)


def in_a_list(net):
    nets = [net]
    return lambda x: sum(part(x) for part in nets)


WRAPPINGS = {
    "module": lambda net: net,
    "closure": closure,
    "bound method": lambda net: net.energy,
    "partial": lambda net: functools.partial(lambda scale, part, x: scale * part(x), 1.0, net),
    "partial keyword": lambda net: functools.partial(lambda x, part: part(x), part=net),
    "partial of a closure": lambda net: functools.partial(closure(net)),
    "dataclass": lambda net: Scaled(1.0, net),
    "closure of a closure": nested,
    "dataclass of a closure": lambda net: Scaled(1.0, closure(net)),
    "list in a closure": in_a_list,
    "sequential": lambda net: nn.Sequential(net),
}

wrapped = pytest.mark.parametrize("wrap", WRAPPINGS.values(), ids=WRAPPINGS.keys())


def test_energies_of_both_shapes():
    torch.testing.assert_close(sample(Net(column=True)), sample(Net(column=False)), rtol=0, atol=0)


def train_some(net):
    """Training mode and gradients for parts of a module only, so that restoring it is a feat."""
    net.train()
    net.layers[0].eval()
    net.layers[0].weight.requires_grad_(False)
    flags = [p.requires_grad for p in net.parameters()]
    modes = [part.training for part in net.modules()]
    assert set(flags) == set(modes) == {True, False}
    return flags, modes


def assert_restored(net, before):
    flags, modes = before
    assert [p.requires_grad for p in net.parameters()] == flags
    assert [part.training for part in net.modules()] == modes
    assert all(p.grad is None for p in net.parameters())


@wrapped
def test_modules_are_evaluated_and_restored(wrap):
    """Dropout is off while sampling: two runs with the same seed agree with evaluation mode."""
    net = Net()
    want = sample(net.eval())
    before = train_some(net)
    torch.testing.assert_close(sample(wrap(net)), want, rtol=0, atol=1e-6)
    assert_restored(net, before)


@wrapped
@pytest.mark.parametrize("fails_after", [0, 3])
def test_modules_are_restored_after_an_exception(wrap, fails_after):
    net = Net(fails_after=fails_after)
    before = train_some(net)
    with pytest.raises(RuntimeError, match="out of luck"):
        sample(wrap(net))
    assert_restored(net, before)
    net.calls = 0
    with pytest.raises(RuntimeError, match="out of luck"):
        schuss.trajectory(energy=wrap(net), init=START, steps=5, engine="torch")
    assert_restored(net, before)


def test_logdensity_of_a_module():
    """Modules are found through the change of sign too, and through a closure below it."""

    def minus(net):
        return lambda x: -net(x)

    net = Net()
    want = sample(net.eval())
    for given in (minus(net), Scaled(-1.0, net)):
        before = train_some(net)
        sampler = schuss.Sampler(SAMPLER, steps=5, seed=1)
        got = sampler.run(init=START, logdensity=given).x
        torch.testing.assert_close(got, want, rtol=0, atol=1e-6)
        assert_restored(net, before)


@pytest.mark.parametrize("wrap", [WRAPPINGS["module"], closure], ids=["module", "closure"])
@pytest.mark.parametrize("old", [False, True], ids=["parametrisation", "hook"])
@pytest.mark.filterwarnings("ignore:.*spectral_norm.*is deprecated")
def test_spectral_norm_is_left_alone(wrap, old):
    """Its power iteration would go on in training mode: buffers are the same before and after."""
    normed = nn.utils.spectral_norm if old else nn.utils.parametrizations.spectral_norm
    torch.manual_seed(0)
    net = nn.Sequential(normed(nn.Linear(3, 16)), nn.SiLU(), normed(nn.Linear(16, 1)))
    net.train()
    with torch.no_grad():
        net(START)
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    first = sample(wrap(net))
    torch.testing.assert_close(sample(wrap(net)), first, rtol=0, atol=0)
    after = net.state_dict()
    assert set(after) == set(before) and len(before) > 4
    for name, tensor in before.items():
        torch.testing.assert_close(after[name], tensor, rtol=0, atol=0, msg=name)
    assert net.training
    net(START)
    assert any(not torch.equal(net.state_dict()[name], before[name]) for name in before)


def test_normed_weights_are_computed_once_a_run():
    net = nn.utils.parametrizations.spectral_norm(nn.Linear(3, 1))
    calls = []
    net.parametrizations.weight[0].register_forward_hook(lambda *given: calls.append(1))
    sample(net, steps=20)
    assert 1 <= len(calls) <= 3


def test_sampling_follows_the_optimiser():
    """What is cached for a run is forgotten after it: new weights give new samples."""
    torch.manual_seed(0)
    net = nn.utils.parametrizations.spectral_norm(nn.Linear(3, 1))
    head = nn.Sequential(net, nn.Softplus())
    first = sample(head)
    with torch.no_grad():
        net.bias.add_(1.0)
        net.parametrizations.weight.original.mul_(-1.0)
    assert not torch.equal(sample(head), first)


def test_parameters_get_no_gradient_and_the_start_none_either():
    net = Net()
    init = START.clone().requires_grad_()
    out = sample(net, init)
    assert not out.requires_grad and init.grad is None and init.requires_grad
    assert all(p.grad is None and p.requires_grad for p in net.parameters())
    torch.testing.assert_close(init.detach(), START, rtol=0, atol=0)


def test_sampling_under_no_grad_and_inside_autograd():
    with torch.no_grad():
        first = sample(Net())
        assert not torch.is_grad_enabled()
    torch.testing.assert_close(sample(Net()), first, rtol=0, atol=0)
    assert torch.is_grad_enabled()


def test_generator_as_seed():
    def two(seed):
        sampler = schuss.Sampler(SAMPLER, steps=5, seed=torch.Generator().manual_seed(seed))
        net = Net()
        return sampler(net, START), sampler(net, START)

    (a, b), (c, d), (e, _) = two(3), two(3), two(4)
    torch.testing.assert_close((a, b), (c, d), rtol=0, atol=0)
    assert not torch.equal(a, b) and not torch.equal(a, e)
    path = schuss.trajectory(
        energy=Net(), init=START, sampler=SAMPLER, steps=5, seed=torch.Generator().manual_seed(3)
    )
    np.testing.assert_allclose(path.x[-1], a.numpy(), rtol=0, atol=1e-6)


def test_the_global_generator_is_left_alone():
    torch.manual_seed(5)
    want = torch.rand(3)
    torch.manual_seed(5)
    sample(lambda x: (x * x).sum(-1))
    torch.testing.assert_close(torch.rand(3), want, rtol=0, atol=0)


def test_half_precision_inside_the_energy_only():
    """bfloat16 has 8 bits: near the float32 path, not on it; and the state is float32 still."""
    seen = []
    net = Net()
    handle = net.layers[0].register_forward_hook(lambda m, inputs, out: seen.append(out.dtype))
    got = sample(net, gradient_dtype=torch.bfloat16)
    handle.remove()
    assert set(seen) == {torch.bfloat16}
    assert got.dtype == torch.float32
    want = sample(net)
    assert 0 < float((got - want).abs().max()) < 0.05
    # The layers alone return bfloat16.
    path = schuss.trajectory(
        energy=net.layers, init=START, sampler=SAMPLER, steps=5, gradient_dtype=torch.bfloat16
    )
    for field in ("x", "u", "r", "energy"):
        assert getattr(path, field).dtype == np.float32, field


IMAGES = torch.randn(2, 3, 4, 5, generator=torch.Generator().manual_seed(0))
WEIGHTS = torch.arange(1.0, 61.0).reshape(3, 4, 5) / 30


def image_energy(x):
    return (x * x * WEIGHTS).sum((1, 2, 3)) / 2


def test_channels_last_images_are_views():
    x = IMAGES.to(memory_format=torch.channels_last)
    engine = Torch()
    flat, restore = engine.flatten(x)
    assert flat.shape == (2, 60) and flat.data_ptr() == x.data_ptr()
    back = restore(flat)
    assert back.data_ptr() == x.data_ptr() and torch.equal(back, x)
    assert back.is_contiguous(memory_format=torch.channels_last)
    seen = []

    def energy(y):
        seen.append(y.is_contiguous(memory_format=torch.channels_last))
        return image_energy(y)

    out = sample(energy, x)
    assert out.shape == x.shape and out.is_contiguous(memory_format=torch.channels_last)
    assert all(seen)


def test_contiguous_images_are_views():
    flat, restore = Torch().flatten(IMAGES)
    assert flat.data_ptr() == IMAGES.data_ptr() == restore(flat).data_ptr()
    out = sample(image_energy, IMAGES)
    assert out.shape == IMAGES.shape and out.is_contiguous()


def test_layouts_sample_alike():
    """The deterministic flow doesn't see how an image lies in memory."""
    velocity = torch.randn(2, 60, generator=torch.Generator().manual_seed(1))
    as_image = velocity.view(2, 4, 5, 3).permute(0, 3, 1, 2)
    given = {"energy": image_energy, "steps": 10, "sampler": schuss.ESH(0.3)}
    last = schuss.trajectory(
        init=IMAGES.to(memory_format=torch.channels_last), velocity=velocity, **given
    )
    first = schuss.trajectory(init=IMAGES, velocity=as_image.reshape(2, 60), **given)
    np.testing.assert_allclose(last.x, first.x, rtol=0, atol=1e-5)


def test_the_start_is_never_written_to():
    for init in (IMAGES.clone(), IMAGES.clone().to(memory_format=torch.channels_last)):
        sample(image_energy, init)
        assert torch.equal(init, IMAGES)


def test_unhashable_callables():
    @dataclasses.dataclass
    class Model:
        weights: torch.Tensor

        def __call__(self, x):
            return (x * x * self.weights).sum(-1)

    assert sample(Model(torch.ones(3))).shape == START.shape


def cliff(x):
    """A bowl whose energy alone breaks on its way down, with a gradient as if nothing were."""
    energy = (x * x).sum(-1) / 2
    broken = (x[:, 0] > 1) & (x[:, 0] < 1.5)
    return energy + torch.where(broken, torch.inf, 0.0).to(x.dtype)


@pytest.mark.parametrize("keep", ["last", "reservoir", "moments"])
@pytest.mark.parametrize(
    "sampler", [schuss.ESH(0.2), SAMPLER, schuss.ULA(0.2)], ids=["esh", "noise", "ula"]
)
@pytest.mark.parametrize("breaks", [False, True], ids=["sound", "broken"])
def test_steps_without_guards_are_those_with(monkeypatch, breaks, sampler, keep):
    """Bit for bit, and a sound run is made only once. A guard may be needed in between only."""
    calls = []

    def counted(x):
        calls.append(len(x))
        return cliff(x) if breaks else (x * x).sum(-1) / 2

    init = torch.cat([0.1 * START, torch.tensor([[1.6, 0.0, 0.0]]).repeat(8, 1)])

    def run():
        calls.clear()
        made = schuss.Sampler(sampler, steps=30, keep=keep, seed=1).run(energy=counted, init=init)
        return made, len(calls)

    made, count = run()
    monkeypatch.setattr("schuss.engines.torch._trusting", lambda *given: None)
    want, careful = run()
    assert bool(want.frozen.any()) == breaks
    assert count == careful + 30 * breaks
    parts = ["x", "last", "frozen"] if keep != "moments" else ["last", "frozen", *range(5)]
    for part in parts:
        pair = (
            run_.moments[part] if isinstance(part, int) else getattr(run_, part)
            for run_ in (made, want)
        )
        got, expected = map(np.asarray, pair)
        np.testing.assert_array_equal(got, expected, err_msg=str(part))


def test_guards_are_evaluated_again_after_an_exception(monkeypatch):
    """At once, also while the exception is still held."""
    seen = []

    def walk(advance, job, source, state, gathered, steps, collection, blank=None):
        yield state, gathered
        seen.append(torch._dynamo.eval_frame._stance.skip_guard_eval_unsafe)
        raise RuntimeError("in the second step")

    monkeypatch.setattr("schuss.engines.torch._walk", walk)
    sampler = schuss.Sampler(schuss.ESH(0.2), steps=3, compile=True)
    with pytest.raises(RuntimeError, match="in the second step") as held:
        sampler.run(energy=lambda x: (x * x).sum(-1), init=START)
    assert seen == [True] and held.value is not None
    assert not torch._dynamo.eval_frame._stance.skip_guard_eval_unsafe
