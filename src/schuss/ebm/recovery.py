"""Good states to go back to when training diverges, and how often that may happen."""

import torch

from schuss.ebm.history import Rollback

CALM = 10
"""Looks without a divergence after which earlier ones are forgiven, and between older states."""


class Recovery:
    """Keeps the last good state and an older one: a divergence may begin before it shows.

    The first retry goes back to the last good state with new random numbers, later ones to the
    older state, and each of these halves the learning rate until all is calm again.
    """

    def __init__(self, retries: int):
        self.retries = retries
        self.attempt = 0  # rollbacks so far; random numbers depend on it
        self.failures = 0  # those not yet forgiven
        self.calm = 0
        self.rollbacks: list[Rollback] = []
        self._good: list[tuple[int, dict[str, torch.Tensor]]] = []

    @property
    def ready(self) -> bool:
        """Whether there is a state to go back to."""
        return bool(self._good)

    @property
    def rate_factor(self) -> float:
        """On the learning rate."""
        return 0.5 ** max(0, self.failures - 1)

    def remember(self, iteration: int, tensors: dict[str, torch.Tensor]) -> None:
        """Copy a good state."""
        state = iteration, {name: tensor.detach().clone() for name, tensor in tensors.items()}
        if len(self._good) < 2 or self.calm % CALM == 0:
            self._good = [*self._good[-1:], state]
        else:
            self._good[-1] = state

    def praise(self) -> None:
        """Count a look at which all was well."""
        self.calm += 1
        if self.calm >= CALM:
            self.failures = 0

    def go_back(self, iteration: int, cause: str) -> tuple[int, dict[str, torch.Tensor]]:
        """The state to go on from."""
        self.attempt, self.failures, self.calm = self.attempt + 1, self.failures + 1, 0
        if self.failures > 1:
            self._good = self._good[:1]
        back_to, tensors = self._good[-1]
        self.rollbacks.append(Rollback(iteration, cause, back_to))
        return back_to, tensors

    @property
    def last(self) -> tuple[int, dict[str, torch.Tensor]]:
        """The newest good state."""
        return self._good[-1]

    def state(self) -> dict:
        """For JSON."""
        counts = {"attempt": self.attempt, "failures": self.failures, "calm": self.calm}
        return {**counts, "rollbacks": [list(rollback) for rollback in self.rollbacks]}

    def load(self, state: dict) -> None:
        """Go on from what `state` gave; the states of before are forgotten."""
        self.attempt, self.failures = state["attempt"], state["failures"]
        self.calm, self._good = state["calm"], []
        self.rollbacks = [Rollback(*rollback) for rollback in state["rollbacks"]]
