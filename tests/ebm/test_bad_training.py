"""A Trainer refuses what can't be trained: the argument, what was wrong with it, the remedy."""

import re

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import schuss
from schuss import ebm

from .runs import data, small_net, trainer


def refuse(message, error=ValueError):
    return pytest.raises(error, match="^" + re.escape(message) + "$")


@pytest.mark.parametrize("width", [2, 3])
def test_energy_of_the_wrong_shape(width):
    with refuse(
        f"energy returned shape (10, {width}) for a batch of 10 chains; return one energy per "
        "chain, shape (10,) or (10, 1)"
    ):
        trainer(nn.Linear(2, width)).fit(1)


def test_nothing_to_train():
    with refuse(
        "net has no parameter that requires gradients, so there is nothing to train; call "
        "net.requires_grad_(True)"
    ):
        trainer(small_net().requires_grad_(False))
    with refuse("net must be a torch.nn.Module, got function", TypeError):
        trainer(lambda x: x)


def test_data_outside_of_the_box():
    with refuse(
        "data must lie in [-1, 1], where the chains are, but reaches from 0 to 255; rescale it, or "
        "widen the box of the buffer or the sampler"
    ):
        trainer(examples=torch.tensor([[0.0, 255.0]]))
    trainer(
        examples=torch.tensor([[0.0, 255.0]]), buffer=ebm.ReplayBuffer(20, (2,), start="normal")
    )
    with refuse(
        "data must lie in [-2, 2], where the chains are, but reaches from 0 to 3; rescale it, or "
        "widen the box of the buffer or the sampler"
    ):
        trainer(
            examples=torch.tensor([[0.0, 3.0]]),
            buffer=None,
            sampler=schuss.ESH(0.1, box=(-2.0, 2.0)),
        )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_data_at_the_edge_of_the_box(dtype):
    """1.1 in float32 lies above 1.1."""
    edge = torch.tensor([[1.1, -1.1], [0.0, 1.1]], dtype=dtype)
    for given in (
        {"buffer": None, "sampler": schuss.ESH(0.1, box=(-1.1, 1.1))},
        {"buffer": ebm.ReplayBuffer(20, (2,), lower=-1.1, upper=1.1)},
    ):
        assert len(trainer(small_net().to(dtype), edge, **given).fit(2)) == 2


def test_batch_larger_than_the_buffer():
    with refuse(
        "batch must be at most the buffer's size 32, got 33; take a larger buffer or a smaller "
        "batch"
    ):
        trainer(batch=33)


def test_other_devices():
    meta = data().to("meta")
    with refuse("data is on meta but net is on cpu; move one of them, e.g. data.to('cpu')"):
        trainer(examples=meta)
    buffer = ebm.ReplayBuffer(32, (2,))
    buffer.device = torch.device("meta")
    with refuse("buffer is on meta but net is on cpu; pass device='cpu' to the buffer"):
        trainer(buffer=buffer)
    net = nn.Sequential(small_net(), nn.Linear(1, 1, device="meta"))
    with refuse(
        "net's parameters are on several devices, cpu, meta; move it to one, e.g. net.to('cpu')"
    ):
        trainer(net)


def test_data_that_is_none():
    with refuse(
        "data must be a torch tensor, got ndarray; convert it with torch.as_tensor", TypeError
    ):
        trainer(examples=data().numpy())
    items = TensorDataset(data(), torch.zeros(60))
    for given, place in ((items, "data"), (DataLoader(items, batch_size=10), "data.dataset")):
        remedy = f"torch.stack([torch.as_tensor(x) for x, *_ in {place}])"
        with refuse(
            f"data must be a torch tensor, got {type(given).__name__}; make one of all its items, "
            f"e.g. {remedy}",
            TypeError,
        ):
            trainer(examples=given)
        stacked = eval(remedy, {"torch": torch, "data": given})
        assert torch.equal(stacked, data())
    with refuse("data must have shape (n, *shape), got (5,)"):
        trainer(examples=torch.zeros(5))
    with refuse(
        "data has dtype torch.uint8 but net has torch.float32; convert it, e.g. x.to(torch.float32)"
    ):
        trainer(examples=data().to(torch.uint8))
    with refuse("buffer holds chains of shape (3,) but data has (2,); make them the same"):
        trainer(buffer=ebm.ReplayBuffer(32, (3,)))
    with refuse(
        "data must be a tensor, a pair of data and labels, or a function, got 3 parts; join them, "
        "e.g. with torch.stack"
    ):
        trainer(examples=(data(), data(), data()))
    with refuse("flip=True is for images, but data has the shape (2,)"):
        trainer(flip=True)


def test_labels():
    with refuse(
        "labels need a net that is a JointEnergy or a function of (x, y); wrap a classifier in "
        "JointEnergy, or let forward take both"
    ):
        trainer(examples=(data(4), torch.zeros(4).long()))
    net = ebm.JointEnergy(nn.Linear(2, 3))
    with refuse("a JointEnergy is trained with labels; pass data=(x, y)"):
        trainer(net)
    with refuse("labels must be a tensor of whole numbers; convert them with .long()"):
        trainer(net, (data(4), torch.zeros(4)))
    with refuse("data has 4 rows but there are 5 labels"):
        trainer(net, (data(4), torch.zeros(5).long()))


def test_weighting():
    with refuse("weighting must be one of None, 'jarzynski', got 'ais'"):
        trainer(weighting="ais")
    with refuse("weighting='jarzynski' needs sampler=ESH(...) with adjust=None"):
        trainer(weighting="jarzynski", sampler=schuss.ULA(0.1), buffer=None, keep="last")
    with refuse("weighting='jarzynski' weighs last states; pass keep='last'"):
        trainer(weighting="jarzynski", buffer=None)
    with refuse(
        "weighting='jarzynski' needs the energy of the start; pass reference=, a function x → (n,) "
        "that is −log of the density which start draws from, or use start='uniform' or 'normal'"
    ):
        trainer(weighting="jarzynski", buffer=None, keep="last", start=lambda n, g: data(n))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"precision": "fp8"}, "precision must be one of None, 'bf16', got 'fp8'"),
        ({"optimiser": "lion"}, "optimiser must be one of 'adam', 'sgd', got 'lion'"),
        ({"lr": -1.0}, "lr must be positive and finite, got -1.0"),
        ({"lr_schedule": "cos"}, "lr_schedule must be one of 'constant', 'tail', got 'cos'"),
        ({"energy_scale": 0.0}, "energy_scale must be positive and finite, got 0.0"),
        ({"streams": 3}, "batch must be a multiple of streams 3, got 10"),
        ({"steps": 0}, "steps must be a whole number of at least 1, got 0"),
        ({"data_noise": -1.0}, "data_noise must be at least 0 and finite, got -1.0"),
        (
            {"gradient_penalty": -1.0},
            "gradient_penalty must be positive and finite, got -1.0",
        ),
    ],
)
def test_options(options, message):
    with refuse(message):
        trainer(**options)


def test_a_scale_that_is_far_too_large():
    """The first iteration tells, and what it recommends works."""
    run = trainer(energy_scale=1e4)
    with pytest.raises(ValueError, match="energy_scale is too large for this net") as error:
        run.fit(1)
    better = float(re.search(r"energy_scale=(\S+)", str(error.value))[1])
    assert trainer(energy_scale=better).fit(1).delta[0] < 1


def test_data_with_numbers_that_are_none():
    """Whatever the starts of the chains, and from functions too."""
    wrong = data()
    wrong[3, 1], wrong[3, 0], wrong[7, 0] = float("nan"), float("nan"), -float("inf")
    said = "contains 2 NaN and 1 infinite values, in 2 of its 60 rows; drop those, e.g. "
    remedy = "x[x.isfinite().flatten(1).all(1)]"
    for name, examples in (("data", wrong), ("data's result", lambda n, generator: wrong)):
        for given in ({}, {"buffer": None, "start": "normal"}):
            with refuse(f"{name} {said}{remedy}"):
                trainer(examples=examples, **given)
    left = eval(remedy, {"x": wrong})
    assert len(left) == 58 and len(trainer(examples=left).fit(1)) == 1


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers(wrong):
    net, x = small_net(), data(5)
    with torch.no_grad():
        net[2].weight[0, 1] = wrong
    said = (
        " has weights that are NaN or infinite in 1 of its 4 tensors, first in 2.weight; load or "
    )
    said += "build the network anew"
    with refuse("net" + said):
        trainer(net)
    with refuse("energy" + said):
        schuss.Sampler(schuss.ESH(0.1), steps=3)(net, x)
    with refuse("energy" + said):
        schuss.trajectory(energy=net, init=x, steps=3)
    with refuse("logdensity" + said):
        schuss.Sampler(schuss.ESH(0.1), steps=3).run(logdensity=lambda z: -net(z), init=x)
    with refuse("energy" + said):
        schuss.sample(energy=net, init=x, draws=10, progress=False)
    with refuse("energy" + said):
        schuss.evidence(energy=net, reference=schuss.Normal(dim=2), progress=False)


def test_batch_norm():
    net = nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4), nn.SiLU(), nn.Linear(4, 1))
    with refuse(
        "net has batch norm in 1, with which an energy depends on the other images of its batch, "
        "and is another one in training than in sampling; use GroupNorm, or no normalisation"
    ):
        trainer(net)


class Attention(nn.Module):
    """A layer whose fast kernel has no second derivative in PyTorch."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1, 4)

    def forward(self, x):
        z = self.layer(x[..., None])[:, None]
        return nn.functional.scaled_dot_product_attention(z, z, z).sum((1, 2, 3))


def test_a_layer_without_a_second_derivative():
    with pytest.raises(ValueError, match=r"^gradient_penalty needs second derivatives.*penalty=0$"):
        trainer(Attention(), energy_scale="auto").fit(1)
    assert len(trainer(Attention(), gradient_penalty=0.0, energy_scale="auto").fit(1)) == 1


class Silent(nn.Module):
    """A network whose last line lacks its return."""

    def __init__(self, result=None):
        super().__init__()
        self.layer, self.result = nn.Linear(2, 1), result

    def forward(self, x):
        self.layer(x)
        return self.result


@pytest.mark.parametrize("given", [Silent(), lambda x: None], ids=["net", "function"])
@pytest.mark.parametrize("compiled", [False, True])
def test_energies_without_a_return(given, compiled):
    said = "energy must return a tensor, one energy per chain, got None; let it end in a return"
    with refuse(said, TypeError):
        schuss.Sampler(schuss.ESH(0.1), steps=3, engine="torch", compile=compiled)(given, data(5))
    with refuse(said, TypeError):
        schuss.trajectory(energy=given, init=data(5), steps=3, engine="torch", compile=compiled)


@pytest.mark.parametrize("options", [{}, {"energy_scale": "auto"}], ids=["number", "auto"])
def test_training_without_a_return(options):
    with refuse(
        "energy must return a tensor, one energy per chain, got None; let it end in a return",
        TypeError,
    ):
        trainer(Silent(), **options).fit(1)
    with refuse(
        "energy must return a tensor, one energy per chain, got tuple; return that tensor alone",
        TypeError,
    ):
        trainer(Silent((data(1),)), **options).fit(1)


@pytest.mark.parametrize("make", [schuss.ESH, schuss.ULA, schuss.NoseHoover])
@pytest.mark.parametrize("options", [{}, {"energy_scale": 2e4}], ids=["small", "large"])
def test_a_step_that_is_far_too_long(make, options):
    """It is the step that is named, whatever the scale, and what is recommended works."""
    with pytest.raises(ValueError, match=r"^step_size must be smaller than the data") as error:
        trainer(sampler=make(100.0), **options)
    better = float(re.search(r"pass e.g. step_size=(\S+)$", str(error.value))[1])
    assert 0.01 < better < 1
    assert len(trainer(sampler=make(better)).fit(1)) == 1


@pytest.mark.parametrize("sampler", [schuss.ESH(0.1, box=(3, -3))])
def test_a_box_upside_down(sampler):
    said = "box must have its lower corner below its upper one everywhere, got 3 and -3 in "
    said += "coordinate 0; pass box=(lower, upper)"
    with refuse(said):
        trainer(sampler=sampler)
    with refuse(said):
        schuss.Sampler(sampler, steps=3)(small_net(), data(5))
    with refuse("lower must be below upper, got 3.0 and -3.0; exchange them"):
        ebm.ReplayBuffer(10, (2,), lower=3.0, upper=-3.0)
