"""The device of a run: which one, how it computes, and how it is told of."""

import contextlib
import platform
from typing import Any

import torch


def best_device(given: Any = None) -> Any:
    """The device that was asked for, or a GPU where there is one."""
    if not given:
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=given)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(
            f"device={str(given)!r} can't be used here ({str(error).splitlines()[0]}); pass 'cpu', "
            "or leave it out for the best there is"
        ) from None
    return given


def inner_precision(device: torch.device | str) -> str | None:
    """The Trainer's `precision` for images: "bf16" on a GPU."""
    return "bf16" if torch.device(device).type == "cuda" else None


@contextlib.contextmanager
def tuned():
    """cuDNN looks for its fastest kernels, which pays as shapes never change."""
    before = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = True
    try:
        yield
    finally:
        torch.backends.cudnn.benchmark = before


def machine(device: torch.device | str | None = None) -> str:
    """The device, and the versions that took part."""
    kind = torch.device("cpu" if device is None else device)
    name = torch.cuda.get_device_name(kind) if kind.type == "cuda" else "CPU"
    return f"{name}, python {platform.python_version()}, torch {torch.__version__}"
