"""A small training run that tests share."""

import torch
from torch import nn

import schuss
from schuss import ebm


def data(n=60, seed=0):
    """Points around (0.5, −0.3), inside the box."""
    noise = torch.randn(n, 2, generator=torch.Generator().manual_seed(seed))
    return (torch.tensor([0.5, -0.3]) + 0.15 * noise).clamp(-1, 1)


def small_net(seed=0, width=8):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(2, width), nn.SiLU(), nn.Linear(width, 1))


def trainer(net=None, examples=None, **options):
    """A run of 12 iterations of 3 steps, looked at every 4."""
    net = small_net() if net is None else net
    if "buffer" not in options:
        options["buffer"] = ebm.ReplayBuffer(32, (2,), reinit=0.1)
    settings = {
        "sampler": schuss.ESH(step_size=0.2),
        "steps": 3,
        "batch": 10,
        "lr": 1e-2,
        "energy_scale": 1.0,
        "iterations": 12,
        "every": 4,
        "page": False,
    }
    return ebm.Trainer(net, data() if examples is None else examples, **(settings | options))


def weights(net):
    return torch.cat([p.detach().reshape(-1) for p in net.parameters()])
