"""What training asks of a network: weights to train on one device, in training mode meanwhile."""

import contextlib

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.utils.parametrizations import _SpectralNorm

from schuss.engines.modules import check_finite


def trainable(net) -> list[nn.Parameter]:
    """The parameters that require gradients; refuses what can't be trained."""
    if not isinstance(net, nn.Module):
        raise TypeError(f"net must be a torch.nn.Module, got {type(net).__name__}")
    parameters = [p for p in net.parameters() if p.requires_grad]
    if not parameters:
        raise ValueError(
            "net has no parameter that requires gradients, so there is nothing to train; call "
            "net.requires_grad_(True)"
        )
    devices = {p.device for p in net.parameters()}
    if len(devices) > 1:
        raise ValueError(
            f"net's parameters are on several devices, {', '.join(sorted(map(str, devices)))}; "
            "move it to one, e.g. net.to('cpu')"
        )
    mixing = [name for name, part in net.named_modules() if isinstance(part, _BatchNorm)]
    if mixing:
        raise ValueError(
            f"net has batch norm in {', '.join(mixing[:3])}, with which an energy depends on the "
            "other images of its batch, and is another one in training than in sampling; use "
            "GroupNorm, or no normalisation"
        )
    check_finite(net, "net")
    return parameters


def bounded(net: nn.Module) -> bool:
    """Whether spectral norm bounds every matrix and kernel of a network."""
    parametrised = {
        id(inner)
        for part in net.modules()
        for made in getattr(part, "parametrizations", {}).values()
        if any(isinstance(each, _SpectralNorm) for each in made)
        for inner in made.parameters()
    }
    return all(id(p) in parametrised for p in net.parameters() if p.dim() > 1)


def broken(net: nn.Module) -> list[str]:
    """Names of the parameters that are no longer finite."""
    return [name for name, p in net.named_parameters() if not p.isfinite().all()]


@contextlib.contextmanager
def training(net: nn.Module):
    """Training mode inside; afterwards as it was."""
    modes = [(part, part.training) for part in net.modules()]
    net.train()
    try:
        yield
    finally:
        for part, mode in modes:
            part.training = mode
