"""The exponential moving average of a module's weights."""

import copy

import torch
from torch import nn


class EMA:
    """θ̄ ← decay · θ̄ + (1 − decay) · θ after each step; `module` holds the average.

    The decay begins at 0.1 and rises as (1 + t)/(10 + t), so that the start is soon forgotten.
    Buffers, which are no weights, are copied.
    """

    def __init__(self, module: nn.Module, decay: float = 0.999):
        if not 0 <= decay < 1:
            raise ValueError(f"decay must be at least 0 and below 1, got {decay!r}")
        self.decay, self.steps = float(decay), 0
        self.module = copy.deepcopy(module).eval().requires_grad_(False)

    @torch.no_grad()
    def update(self, module: nn.Module) -> None:
        """Take one step of the average."""
        decay = min(self.decay, (1 + self.steps) / (10 + self.steps))
        self.steps += 1
        torch._foreach_lerp_(
            list(self.module.parameters()), [p.detach() for p in module.parameters()], 1 - decay
        )
        for mine, other in zip(self.module.buffers(), module.buffers(), strict=True):
            mine.copy_(other)

    def state_dict(self) -> dict[str, torch.Tensor]:
        """The averages and the number of steps; the tensors are the average's own."""
        return {**self.module.state_dict(), "steps": torch.tensor(self.steps)}

    def load_state_dict(self, state: dict[str, torch.Tensor]) -> None:
        """Go on from a state."""
        self.module.load_state_dict({k: v for k, v in state.items() if k != "steps"})
        self.steps = int(state["steps"])
