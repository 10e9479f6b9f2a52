"""The energy scale: how many units of the sampler's energy one of the network's output is."""

import torch

from schuss.algorithms import ESH, ULA, Algorithm
from schuss.arguments import positive

TURN = 0.1
"""A step's turn δ = ε|g|/κ with an untrained network, where ESH was seen to train well."""


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
        (g,) = torch.autograd.grad(net(x).sum(), x)
    size = float(g.reshape(len(x), -1).norm(dim=1).mean())
    if not 0 < size < float("inf"):
        raise ValueError(
            f"energy_scale='auto' found gradients of size {size:g} at the start; pass a number"
        )
    kappa = x[0].numel() if sampler.kappa is None else sampler.kappa
    return TURN * kappa / (float(sampler.step_size) * size)


def check_turn(turn: float, most: float, scale: float) -> None:
    """Refuse a scale at which the first steps of training turn by more than `most`."""
    if turn > most:
        better = float(f"{scale * TURN / turn:.2g}")
        raise ValueError(
            f"energy_scale is too large for this net: a sampler step turns by δ = {turn:.3g} "
            f"in the first iteration; pass energy_scale={better:g} or 'auto'"
        )
