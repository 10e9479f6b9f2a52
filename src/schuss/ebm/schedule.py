"""The optimiser by name, and how its learning rate changes."""

from collections.abc import Callable
from typing import Any

import torch

from schuss.arguments import one_of, positive

SCHEDULES: dict[str, Callable[[float], float]] = {
    "constant": lambda done: 1.0,
    "tail": lambda done: 1.0 if done < 0.5 else 1.0 - 1.8 * (min(done, 1.0) - 0.5),
}
"""Factors on the rate by the share of the run that is done; "tail" falls to a tenth after half."""


def schedule(given: str | Callable | None) -> Callable[[float], float]:
    """A schedule by name, or the user's function of the share done."""
    if callable(given):
        return given
    given = "constant" if given is None else given
    one_of("lr_schedule", given, tuple(SCHEDULES))
    return SCHEDULES[given]


def optimiser(kind: Any, parameters, lr: float, betas, momentum: float) -> torch.optim.Optimizer:
    """Adam or SGD over parameters that require gradients; or what the user's function makes."""
    if not isinstance(kind, str):
        return kind(parameters)
    one_of("optimiser", kind, ("adam", "sgd"))
    positive("lr", lr)
    if kind == "adam":
        return torch.optim.Adam(parameters, lr=lr, betas=betas)
    return torch.optim.SGD(parameters, lr=lr, momentum=momentum)
