"""Several energies as one: the mean, say of the weights that a run had at its last looks."""

import copy
import pathlib
from collections.abc import Sequence

import torch
from torch import nn

from schuss.ebm import checkpoint

MEMBERS = "look-*.safetensors"


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


def keep_member(net: nn.Module, folder: pathlib.Path, look: int, most: int) -> None:
    """Write the weights at a look, and forget all but the last so many looks."""
    if most:
        folder.mkdir(parents=True, exist_ok=True)
        checkpoint.write(folder / MEMBERS.replace("*", f"{look:04d}"), net.state_dict())
        for old in sorted(folder.glob(MEMBERS))[:-most]:
            old.unlink()


def kept_ensemble(net: nn.Module, folder: pathlib.Path) -> Ensemble:
    """The members that are in the folder; `net` says what they are like."""
    files = sorted(folder.glob(MEMBERS))
    return Ensemble([checkpoint.load_weights(copy.deepcopy(net), file) for file in files])
