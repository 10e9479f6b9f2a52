"""The loss of one batch as a module, so that DistributedDataParallel can wrap all of it."""

from typing import NamedTuple

import torch
from torch import nn

from schuss.ebm.joint import JointEnergy
from schuss.ebm.losses import weighted_loss
from schuss.ebm.penalty import Penalty
from schuss.engines.engine import per_chain


class Outcome(NamedTuple):
    """The loss, and the mean energies that it compares."""

    loss: torch.Tensor
    energy_data: torch.Tensor
    energy_negative: torch.Tensor
    accuracy: torch.Tensor


class Objective(nn.Module):
    """Contrastive divergence, or JEM's joint loss where there are labels; with its penalty."""

    def __init__(
        self,
        net,
        *,
        regularise: float = 0.0,
        joint_weight: float = 1.0,
        penalty: Penalty | None = None,
        precision: torch.dtype | None = None,
    ):
        super().__init__()
        self.net, self.regularise, self.joint_weight = net, regularise, joint_weight
        self.penalty, self.precision = penalty, precision

    def forward(
        self, x, y, negatives, weights, scale: float, conditions=None, noise: float | None = None
    ):
        """The outcome for a batch; `weights` of the negatives are normalised, or None.

        y are classes, or conditions of the data where the negatives have `conditions` too. Where
        negatives are data with `noise`, it is that of denoising score matching.
        """
        if noise is not None:
            return self._matched(x, negatives, scale, conditions, noise)
        if self.penalty is not None:
            x, negatives = x.detach().requires_grad_(), negatives.detach().requires_grad_()
        unit, share = 1.0, 1.0
        with torch.autocast(x.device.type, self.precision, enabled=self.precision is not None):
            if y is not None and conditions is None:
                assert isinstance(self.net, JointEnergy)
                terms = self.net.terms(x, y, negatives, self.joint_weight, weights, self.regularise)
                data, negative, accuracy = terms.energy_data, terms.energy_negative, terms.accuracy
                loss, unit, share = terms.loss, self.net.scale, self.joint_weight
            else:
                # One forward for both: a net in training mode may change itself in each.
                given = []
                if y is not None and conditions is not None:
                    given = [torch.cat((y, conditions))]
                energy = self.net(torch.cat((x, negatives)), *given)
                energy = per_chain(energy, len(x) + len(negatives))
                data, negative = energy.to(x.dtype).split((len(x), len(negatives)))
                loss = weighted_loss(data, negative, weights, self.regularise)
                accuracy = torch.full_like(loss, float("nan"))
            if self.penalty is not None:
                energy = unit * (data.sum() + negative.sum())
                loss = loss + share * self.penalty(scale, energy, (x, negatives))
        data, negative = data.detach(), negative.detach()
        mean = negative.mean() if weights is None else (weights * negative).sum()
        return Outcome(loss, data.mean(), mean, accuracy.detach())

    def _matched(self, x, noisy, scale, y, noise) -> Outcome:
        """Denoising score matching: σ∇E(x + σz) against z, for E the scale times the network.

        ½ |σ∇E(x + σz) − z|²/d is least in the mean where e^(−E) is the density of x + σz (Vincent
        2011, A connection between score matching and denoising autoencoders).
        """
        noisy = noisy.detach().requires_grad_()
        with torch.autocast(x.device.type, self.precision, enabled=self.precision is not None):
            given = () if y is None else (torch.cat((y, y)),)
            energy = per_chain(self.net(torch.cat((x, noisy)), *given), 2 * len(x)).to(x.dtype)
            data, moved = energy.split((len(x), len(x)))
            (g,) = torch.autograd.grad(moved.sum(), noisy, create_graph=True)
        z = (noisy - x).detach() / noise
        loss = (noise * scale * g - z).square().mean() / 2
        nothing = torch.full_like(loss.detach(), float("nan"))
        return Outcome(loss, data.detach().mean(), moved.detach().mean(), nothing)
