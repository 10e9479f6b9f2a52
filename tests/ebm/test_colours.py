"""Chains that start as noise around a colour: of the colours of the data, also after a load."""

import pytest
import torch
from torch import nn

import schuss
from schuss import ebm
from schuss.ebm.saved import samples

from .images import stripes

SHAPE = (3, 4, 4)
MEAN = torch.tensor([0.5, -0.5, 0.0])
ROOT = torch.tensor([[0.3, 0.0, 0.0], [0.2, 0.1, 0.0], [0.0, -0.2, 0.05]])
"""Colours are MEAN + ROOT z."""


def images(n=2000, shape=SHAPE, scale=1.0):
    source = torch.Generator().manual_seed(0)
    colour = MEAN + torch.randn(n, 3, generator=source) @ ROOT.T
    colour = colour[:, : shape[0], None, None]
    # Pixels whose mean is that colour exactly.
    pixels = 0.1 * torch.randn(n, *shape, generator=source)
    return scale * (colour + pixels - pixels.mean((2, 3), keepdim=True))


def run(examples, shape=SHAPE, seed=0, **options):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(shape[0] * 16, 1))
    limit = float(options.pop("limit", 3.0))
    buffer = ebm.ReplayBuffer(
        500, shape, start="colour", reinit=0.2, lower=-limit, upper=limit, seed=seed
    )
    settings = {"buffer": buffer, "sampler": schuss.ESH(0.1), "steps": 2, "batch": 10, "every": 2}
    return ebm.Trainer(net, examples, energy_scale=1.0, iterations=4, **(settings | options))


def check_starts(x, scale=1.0, limit=3.0):
    """Half of a colour and half of noise of sd `limit`; clipped at two sd, which takes 5 %.

    Means and covariances are those of NumPy to 4 standard errors of 4000 starts and the clipping.
    """
    seen = x.mean((2, 3))
    colour = MEAN * scale / 2
    cov = ROOT @ ROOT.T * scale**2 / 4 + torch.eye(3) * limit**2 / 4 / 16
    torch.testing.assert_close(seen.mean(0), colour, rtol=0.06, atol=0.06 * limit)
    torch.testing.assert_close(torch.cov(seen.T), cov, rtol=0.2, atol=0.006 * limit**2)


@pytest.mark.parametrize("given", ["tensor", "function"])
@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_chains_start_from_the_colours_of_the_data(given, scale):
    """In the buffer and from noise; CIFAR-10's have none of this mean."""
    limit = 4 * scale
    examples = images(scale=scale).clamp(-limit, limit)
    data = examples if given == "tensor" else lambda n, generator: examples[:n]
    trainer = run(data, limit=limit)
    check_starts(trainer.from_noise(4000, rounds=0), scale, limit)
    check_starts(torch.cat([trainer.buffer.fresh(4000, torch.Generator())]), scale, limit)
    assert trainer.buffer.x.mean((0, 2, 3))[0] > 0.15 * scale
    assert trainer.buffer.x.mean((0, 2, 3))[1] < -0.15 * scale


def test_chains_of_ones_own_stay():
    """Only a buffer that is as it began begins anew."""
    buffer = ebm.ReplayBuffer(20, SHAPE, start="colour", lower=-3.0, upper=3.0)
    own = torch.zeros(20, *SHAPE)
    buffer.x = own.clone()
    trainer = run(images().clamp(-3, 3), buffer=buffer)
    assert torch.equal(trainer.buffer.x, own)


def test_grey_images_have_a_brightness():
    x = images(shape=(1, 4, 4)).clamp(-3, 3)
    start = run(x, shape=(1, 4, 4)).from_noise(4000, rounds=0)
    assert abs(float(start.mean()) - 0.25) < 0.1


def test_a_resumed_run_starts_from_the_colours_it_was_saved_with(tmp_path):
    """Data given as a function may be others by then."""
    examples = images().clamp(-3, 3)
    first = run(lambda n, generator: examples[:n], folder=tmp_path)
    first.fit(2)
    first.save()
    want = first.from_noise(5, rounds=0)
    again = run(lambda n, generator: -examples[:n])
    assert not torch.equal(again.from_noise(5, rounds=0), want)
    again.resume(tmp_path)
    assert torch.equal(again.from_noise(5, rounds=0), want)


CONFIG = {
    "data": {"name": "cifar10"},
    "net": {"name": "conv", "features": 2},
    "sampler": {"name": "ESH", "step_size": 0.1},
    "buffer": {"size": 20, "start": "colour"},
    "train": {"batch": 4, "steps": 2, "iterations": 2, "energy_scale": 1.0},
}


def test_samples_of_a_saved_net_start_from_its_colours(tmp_path, monkeypatch):
    """`schuss ebm sample` has no data at hand: red images were trained on, red is the start."""
    red = stripes(size=32)
    for part in (red.train, red.test):
        part[:] = part // 8
        part[:, 0] = 250
    monkeypatch.setattr("schuss.ebm.data.cifar10", lambda path: red)
    trainer = ebm.config.build(CONFIG, data=tmp_path, folder=tmp_path)
    trainer.fit()
    seen = samples(tmp_path, "noise", 50, gradients=1).mean((0, 2, 3))
    assert seen[0] > 0.2 and seen[1] < -0.2 and seen[2] < -0.2
