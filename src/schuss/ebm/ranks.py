"""Several processes that train one network: what each of them knows of the others."""

import math

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel


def active() -> bool:
    """Whether `torchrun` or the user made this one of several processes."""
    return distributed.is_available() and distributed.is_initialized()


def rank() -> int:
    """This process's number, 0 if alone."""
    return distributed.get_rank() if active() else 0


def world() -> int:
    """How many there are."""
    return distributed.get_world_size() if active() else 1


def mean(values: torch.Tensor) -> torch.Tensor:
    """The mean over processes, the same in all of them; nan in one is nan in all."""
    if not active():
        return values
    total = values.clone()
    distributed.all_reduce(total)
    return total / world()


def parallel(module: nn.Module, device: torch.device) -> nn.Module:
    """The module, its gradients averaged over processes where there are several."""
    if world() == 1:
        return module
    devices = [device] if device.type == "cuda" else None
    return DistributedDataParallel(module, device_ids=devices)


def wait() -> None:
    """Until all have come here."""
    if active():
        distributed.barrier()


def normalised(log_weights: torch.Tensor) -> torch.Tensor:
    """Weights that add up to one over all processes, times their number, as DDP averages losses."""
    log_total = torch.logsumexp(log_weights, dim=0)
    if active():
        parts = [torch.empty_like(log_total) for _ in range(world())]
        distributed.all_gather(parts, log_total)
        log_total = torch.logsumexp(torch.stack(parts), dim=0) - math.log(world())
    return torch.exp(log_weights - log_total)
