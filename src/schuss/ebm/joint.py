"""A classifier as an energy (JEM): E(x) = −log Σ_y exp(logit_y(x))."""

import inspect
from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional

from schuss.arguments import positive
from schuss.ebm.losses import weighted_loss


class Terms(NamedTuple):
    """The joint loss and the energies that it was made from, without the scale."""

    loss: torch.Tensor
    energy_data: torch.Tensor
    energy_negative: torch.Tensor
    accuracy: torch.Tensor


class JointEnergy(nn.Module):
    """−scale · logsumexp of a classifier's logits (n, classes), or −scale · logit_y given y."""

    def __init__(self, classifier: nn.Module, scale: float = 1.0):
        super().__init__()
        positive("scale", scale)
        self.classifier, self.scale = classifier, float(scale)

    def forward(self, x, y=None):
        """Energies (n,)."""
        logits = self.logits(x)
        if y is not None:
            return -self.scale * logits.gather(1, y[:, None])[:, 0]
        return -self.scale * torch.logsumexp(logits, dim=1)

    def logits(self, x):
        """Logits (n, classes), in 32 bits at least."""
        logits = self.classifier(x)
        if logits.dim() != 2:
            raise ValueError(
                f"classifier must return logits of shape ({len(x)}, classes), got "
                f"{tuple(logits.shape)}"
            )
        return logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits

    def loss(self, x, y, negatives, weight: float = 1.0):
        """JEM's joint loss: cross-entropy + weight · contrastive divergence at scale one."""
        return self.terms(x, y, negatives, weight).loss

    def terms(self, x, y, negatives, weight=1.0, weights=None, regularise=0.0) -> Terms:
        """The joint loss with its energies; `weights` are those of the negatives, normalised."""
        logits = self.logits(torch.cat((x, negatives)))
        energy = -torch.logsumexp(logits, dim=1)
        data, negative = energy[: len(x)], energy[len(x) :]
        label = functional.cross_entropy(logits[: len(x)], y)
        loss = label + weight * weighted_loss(data, negative, weights, regularise)
        accuracy = (logits[: len(x)].argmax(1) == y).float().mean()
        return Terms(loss, data, negative, accuracy)


def conditional(net: nn.Module) -> bool:
    """Whether a network is an energy of (x, y)."""
    try:
        inspect.signature(net.forward).bind(None, None)
    except TypeError:
        return False
    return True


def check_labels(net: nn.Module, labels) -> None:
    """Refuse labels for a net that has no use for them, and a joint model without."""
    if labels is not None and not isinstance(net, JointEnergy) and not conditional(net):
        raise ValueError(
            "labels need a net that is a JointEnergy or a function of (x, y); wrap a classifier in "
            "JointEnergy, or let forward take both"
        )
    if labels is None and isinstance(net, JointEnergy):
        raise ValueError("a JointEnergy is trained with labels; pass data=(x, y)")
