"""Denoising score matching before contrastive divergence, on densities that are known."""

import math

import numpy as np
import pytest
import torch
from torch import nn

import schuss
from schuss import ebm

from .runs import data, small_net, trainer, weights
from .test_trainer import Bowl, Centred, gaussian

ANGLES = torch.arange(8) * (2 * math.pi / 8)
CENTRES, SD = torch.stack((ANGLES.cos(), ANGLES.sin()), dim=1), 0.15


def eight(n, generator):
    centres = CENTRES[torch.randint(8, (n,), generator=generator)]
    return centres + SD * torch.randn(n, 2, generator=generator)


def divergence(net, scale, noise):
    """KL of the density of data with noise from e^(−scale · net), by quadrature on [−2, 2]²."""
    line = torch.linspace(-2, 2, 121)
    x = torch.stack(torch.meshgrid(line, line, indexing="ij"), dim=-1).reshape(-1, 2)
    variance = SD**2 + noise**2
    square = (x[:, None] - CENTRES).square().sum(-1)
    p = torch.softmax(torch.logsumexp(-square / (2 * variance), dim=1).double(), dim=0)
    with torch.no_grad():
        log_q = torch.log_softmax(-scale * net(x).reshape(-1).double(), dim=0)
    return float((p * (p.clamp(min=1e-300).log() - log_q)).sum())


def test_learns_the_variance_of_noisy_data():
    """e^a is 1/(.8² + .5²), to three per cent; ten times the error of the averaged weights."""
    net = Bowl(0.0)
    run = trainer(
        net,
        gaussian(0.8),
        buffer=ebm.ReplayBuffer(400, (3,), start="normal"),
        warm_start=150,
        warm_noise=0.5,
        batch=400,
        optimiser="sgd",
        lr=0.5,
        data_noise=0.0,
        ema=0.98,
        iterations=150,
        every=50,
    )
    history = run.fit()
    assert math.exp(float(run.averaged.a)) == pytest.approx(1 / (0.64 + 0.25), rel=0.03)
    assert history.gradients == 0 and np.isnan(history.delta).all() and not history.rollbacks


@pytest.mark.slow
def test_eight_gaussians_are_learned_and_handed_over():
    """A thousand updates of matching are worth as many of contrastive divergence with 25 steps.

    An untrained net is at 1.4 from the noisy data, both kinds of training come to .14 to .18, and
    .26 from the data themselves after 500 more of contrastive divergence.
    """
    far, results = [], {}
    for warm in (1000, 0):
        torch.manual_seed(0)
        layers = nn.Linear(2, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 1)
        net = nn.Sequential(*layers)
        run = trainer(
            net,
            eight,
            buffer=ebm.ReplayBuffer(500, (2,), lower=-2.0, upper=2.0, reinit=0.02),
            sampler=schuss.ESH(0.1, box=(-2.0, 2.0)),
            steps=25,
            batch=100,
            lr=3e-3,
            energy_scale=1.0,
            data_noise=0.0,
            warm_start=warm,
            warm_noise=0.1,
            ema=0.99,
            iterations=2000,
            every=250,
        )
        far.append(divergence(run.averaged, 1.0, 0.1))
        run.fit(1000)
        results[warm] = [divergence(run.averaged, 1.0, 0.1)]
        run.fit(500)
        results[warm].append(divergence(run.averaged, 1.0, 0.0))
    assert results[1000][0] < 0.2 < 1.0 < min(far)
    assert results[1000][0] < 1.1 * results[0][0]
    assert results[1000][1] < 0.3


def test_a_run_that_is_handed_over_goes_on_where_it_stopped(tmp_path):
    """Stopped at the iteration of the handover, before it and after it."""

    def make(folder, **options):
        y = torch.arange(60) % 2
        buffer = ebm.ReplayBuffer(32, (2,), reinit=0.3)
        options |= {"warm_start": 6, "folder": folder, "save_every": 1}
        return trainer(Centred(), (data(), y), buffer=buffer, **options)

    whole = make(tmp_path / "whole")
    assert whole.fit().gradients == 6 * 3
    for stop in (6, 8):
        folder = tmp_path / str(stop)
        make(folder).fit(stop)
        part = make(folder).resume()
        np.testing.assert_array_equal(part.fit().losses, whole.history.losses)
        assert torch.equal(part.buffer.x, whole.buffer.x)
        assert torch.equal(weights(part.net), weights(whole.net))


def test_the_buffer_begins_at_noisy_data():
    run = trainer(warm_start=4, warm_noise=0.01, data_noise=0.0)
    run.fit(4)
    before = run.buffer.x.clone()
    run.batches.refill(0.01)
    nearest = torch.cdist(run.buffer.x, data()).min(1).values
    assert nearest.max() < 0.06 and torch.cdist(before, data()).min(1).values.max() > 0.2


def test_refused():
    for given, message in (
        ({"warm_start": -1}, "warm_start must be a whole number of at least 0, got -1"),
        ({"warm_start": 1, "warm_noise": 0.0}, "warm_noise must be positive and finite, got 0.0"),
        (
            {"warm_start": 1, "fixed": [True, False]},
            "warm_start doesn't go with fixed; leave one of them out",
        ),
    ):
        with pytest.raises(ValueError, match=f"^{message}$"):
            trainer(small_net(), **given)
