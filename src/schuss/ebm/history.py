"""What a training run tells of itself."""

import dataclasses
from typing import NamedTuple

import numpy as np

STATISTICS = (
    "losses",
    "energy_data",
    "energy_negative",
    "energy_error",
    "frozen",
    "grad_norm",
    "delta",
    "max_weight",
    "accuracy",
)
"""The numbers of each iteration, in the order in which they lie on the device."""


class Rollback(NamedTuple):
    """A divergence: where it was seen, why, and where training went on."""

    iteration: int
    cause: str
    back_to: int


@dataclasses.dataclass(frozen=True)
class History:
    """One number for each iteration in every array, energies in units of the network."""

    losses: np.ndarray
    energy_data: np.ndarray
    energy_negative: np.ndarray
    energy_error: np.ndarray  # mean over chains, in units of the sampler; nan where none is kept
    frozen: np.ndarray  # fraction of chains
    grad_norm: np.ndarray
    delta: np.ndarray  # mean over chains of the turn of a step at its end, as in scale.py
    max_weight: np.ndarray  # largest of the normalised weights of the negatives
    accuracy: np.ndarray  # of a joint model on its batch, nan elsewhere
    images_per_second: float  # negatives, over the last call of fit and all ranks
    gradients: int  # of the sampler for each chain, all iterations together
    rollbacks: tuple[Rollback, ...]

    @property
    def gap(self) -> np.ndarray:
        """E₊ − E₋, which says whether training is alive but nothing of the quality."""
        return self.energy_data - self.energy_negative

    @property
    def setbacks(self) -> list[str]:
        """The rollbacks in words: where training diverged, and why."""
        return [f"{rollback.iteration}: {rollback.cause}" for rollback in self.rollbacks]

    def __len__(self) -> int:
        return len(self.losses)

    def __repr__(self) -> str:
        last = f", last loss {self.losses[-1]:.4g}" if len(self) else ""
        return (
            f"History({len(self)} iterations, {self.gradients} gradients{last}, "
            f"{len(self.rollbacks)} rollbacks)"
        )
