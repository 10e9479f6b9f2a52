"""The energy scale, and the turn of a sampler's step, by which it is chosen.

The sampler sees scale · f, where f is what the network returns. Its step turns the velocity by

    δ = ε |∇(scale · f)| / κ     (ESH)        δ = ε |∇(scale · f)| / √d     (the others),

the length of a kick over that of the velocity: 1 · κ, or that of a standard normal.

ESH keeps its velocity from step to step and is moved by small turns. Langevin dynamics has a new
one in each step and is moved by its drift alone, which is δ/2 of the noise; at turns as small as
those of ESH its chains lag behind (MNIST). At δ = 2 they are equal: Nijkamp et al. (2020, On the
anatomy of MCMC-based maximum likelihood learning of energy-based models) balance the two.
"""

import dataclasses
import math
from typing import Any

import numpy as np
import torch

from schuss.algorithms import ESH, MALA, ULA, Algorithm
from schuss.arguments import positive
from schuss.engines.modules import check_tensor

LIMIT, LANGEVIN_LIMIT = 0.3, 2.0
"""δ beyond which the loss has a penalty."""

FIRST = 1 / 3
"""Of these, δ with an untrained network."""

WIDTHS = 20
"""Steps across the data that are recommended where one would do."""


@dataclasses.dataclass(frozen=True)
class Turn:
    """δ at unit scale of gradients (n, *shape): `factor` times their length in the metric.

    `free` is a mask of the coordinates that move, or None for all.
    """

    factor: float
    metric: Any = None
    free: Any = None
    limit: float = LIMIT

    @classmethod
    def of(cls, sampler: Algorithm, x: torch.Tensor, fixed=None) -> "Turn":
        """Of a sampler's steps from positions like x (n, *shape), but for fixed coordinates."""
        free = None if fixed is None else ~fixed.flatten()
        dim, metric = x[0].numel(), getattr(sampler, "metric", None)
        dim = dim if free is None else int(free.sum())
        kappa = getattr(sampler, "kappa", None)
        length = (dim if kappa is None else kappa) if isinstance(sampler, ESH) else math.sqrt(dim)
        if metric is not None:
            metric = torch.as_tensor(np.asarray(metric), dtype=x.dtype, device=x.device).flatten()
        limit = LANGEVIN_LIMIT if isinstance(sampler, ULA | MALA) else LIMIT
        return cls(float(np.mean(sampler.step_size)) / length, metric, free, limit)

    def distance(self, a: torch.Tensor, b: torch.Tensor) -> float:
        """Root mean square of the distance of a's positions from b's, in the metric."""
        apart = (a - b).flatten(1)
        apart = apart if self.free is None else self.free * apart
        apart = apart if self.metric is None else apart / self.metric
        return float(apart.square().sum(dim=1).mean().sqrt())

    def __call__(self, g: torch.Tensor) -> torch.Tensor:
        """δ of each, (n,)."""
        g = g.flatten(1)
        g = g if self.free is None else self.free * g
        g = g if self.metric is None else self.metric * g
        return self.factor * torch.linalg.vector_norm(g, dim=1)


def energy_scale(given: float | str, net, turn: Turn, x: torch.Tensor, *y) -> float:
    """A number as it is; "auto" makes δ a third of its limit on average at x, given y if any."""
    if given != "auto":
        positive("energy_scale", given)
        return float(given)
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        energy = net(x, *y)
        check_tensor(energy)
        (g,) = torch.autograd.grad(energy.sum(), x)
    size = float(turn(g).mean())
    if not 0 < size < float("inf"):
        raise ValueError(
            "energy_scale='auto' found gradients of size "
            f"{float(g.flatten(1).norm(dim=1).mean()):g} at the start; pass a number"
        )
    return FIRST * turn.limit / size


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
        better = float(f"{scale * FIRST * LIMIT / turn:.2g}")
        raise ValueError(
            f"energy_scale is too large for this net: a sampler step turns by δ = {turn:.3g} "
            f"in the first iteration; pass energy_scale={better:g} or 'auto'"
        )
