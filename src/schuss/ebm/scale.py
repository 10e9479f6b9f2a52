"""The energy scale: how many units of the sampler's energy one of the network's output is."""

import math

import numpy as np
import torch

from schuss.algorithms import ESH, ULA, Algorithm
from schuss.arguments import positive
from schuss.engines.modules import check_tensor

TURN = 0.1
"""A step's turn δ = ε|g|/κ with an untrained network, where ESH was seen to train well."""

WIDTHS = 20
"""Steps across the data that are recommended where one would do."""


def energy_scale(given: float | str, net, sampler: Algorithm, x: torch.Tensor) -> float:
    """A number as it is; "auto" from the sampler: δ = 0.1 on average at x for ESH, 2/ε² for ULA.

    With 2/ε² a Langevin step moves by the network's own gradient (the paper's choice).
    """
    if given != "auto":
        positive("energy_scale", given)
        return float(given)
    if isinstance(sampler, ULA):
        return 2 / float(sampler.step_size) ** 2
    if not isinstance(sampler, ESH):
        raise ValueError("energy_scale='auto' is for ESH and ULA; pass a number")
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        energy = net(x)
        check_tensor(energy)
        (g,) = torch.autograd.grad(energy.sum(), x)
    size = float(g.reshape(len(x), -1).norm(dim=1).mean())
    if not 0 < size < float("inf"):
        raise ValueError(
            f"energy_scale='auto' found gradients of size {size:g} at the start; pass a number"
        )
    kappa = x[0].numel() if sampler.kappa is None else sampler.kappa
    return TURN * kappa / (float(sampler.step_size) * size)


def check_step(sampler: Algorithm, x: torch.Tensor) -> None:
    """Refuse steps that are longer than all of x, (n, *shape), is wide; ESH moves by ε in all."""
    x = x.flatten(1)
    metric = getattr(sampler, "metric", None)
    scale = 1.0 if metric is None else float(np.sqrt(np.mean(np.square(metric))))
    share = 1.0 if isinstance(sampler, ESH) else math.sqrt(x.shape[1])
    width = float((x.amax(0) - x.amin(0)).norm()) / (scale * share)
    longest = float(np.max(sampler.step_size))
    if longest > width > 0:
        raise ValueError(
            f"step_size must be smaller than the data and the starts of chains are wide, "
            f"{width:.2g}, got {longest:g}; pass e.g. step_size={width / WIDTHS:.1g}"
        )


def check_turn(turn: float, most: float, scale: float) -> None:
    """Refuse a scale at which the first steps of training turn by more than `most`."""
    if turn > most:
        better = float(f"{scale * TURN / turn:.2g}")
        raise ValueError(
            f"energy_scale is too large for this net: a sampler step turns by δ = {turn:.3g} "
            f"in the first iteration; pass energy_scale={better:g} or 'auto'"
        )
