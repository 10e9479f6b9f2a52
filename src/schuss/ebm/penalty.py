"""A gradient penalty that keeps the slope of a network where its sampler can follow it.

    weight · D/(c · scale) · mean max(0, δ − δ₀)²        δ = c |∇(scale · f)|

over data and negatives, where δ is the turn of a sampler's step and δ₀ its limit (scale.py), c =
ε/κ or ε/√d, and D the distance from where chains start to the data. Along it an energy with turns δ
falls by at most δ D/c, so that the loss's least value over δ lies at or below δ₀ + 1/(2 weight),
for every net, sampler and scale.

The penalty acts on slopes that are too large alone, as in Petzka, Fischer and Lukovnikov (2018, On
the regularization of Wasserstein GANs); the two-sided form is that of Gulrajani et al. (2017,
Improved training of Wasserstein GANs), and Mescheder, Geiger and Nowozin (2018, Which training
methods for GANs do actually converge?) penalise at data and negatives. Energies were trained with a
penalty on |∇f|² by Kumar et al. (2019, Maximum entropy generators for energy-based models) and
Grathwohl et al. (2021, No MCMC for me). Here the limit is in units of the sampler's step.
"""

import dataclasses

import torch

from schuss.ebm.scale import Turn

WEIGHT = 1.0
"""Turns stay below their limit + 1/2."""


@dataclasses.dataclass(frozen=True)
class Penalty:
    """The penalty of a batch; `distance` is D, in the coordinates of the sampler's metric."""

    weight: float
    turn: Turn
    distance: float

    def __call__(self, scale: float, energy: torch.Tensor, parts: tuple) -> torch.Tensor:
        """From the sum of the network's energies at all of `parts`, each (n, *shape)."""
        gradients = torch.autograd.grad(energy, parts, create_graph=True)
        delta = torch.cat([scale * self.turn(g) for g in gradients])
        fall = self.distance / (self.turn.factor * scale)
        return self.weight * fall * torch.relu(delta - self.turn.limit).square().mean()


def explain(error: RuntimeError) -> None:
    """Explain PyTorch's error where a layer has no second derivative."""
    if "derivative" in str(error) or "double backward" in str(error):
        raise ValueError(
            "gradient_penalty needs second derivatives, which a layer of net doesn't have "
            f"({error}); use another form of that layer, or pass gradient_penalty=0"
        ) from error
