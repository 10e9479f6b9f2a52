"""Where a run was made."""

import platform

import torch


def machine(device: torch.device | str | None = None) -> str:
    """The device, and the versions that took part."""
    kind = torch.device("cpu" if device is None else device)
    name = torch.cuda.get_device_name(kind) if kind.type == "cuda" else "CPU"
    return f"{name}, python {platform.python_version()}, torch {torch.__version__}"
