"""Several energies as one: the mean."""

from collections.abc import Sequence

import torch
from torch import nn


class Ensemble(nn.Module):
    """E(x) = mean of the members' energies, say of the last checkpoints of a run."""

    def __init__(self, members: Sequence[nn.Module]):
        super().__init__()
        if not len(members):
            raise ValueError("members must hold at least one module, got none")
        self.members = nn.ModuleList(members)

    def forward(self, x):
        """Energies (n,)."""
        return torch.stack([member(x).reshape(len(x)) for member in self.members]).mean(0)
