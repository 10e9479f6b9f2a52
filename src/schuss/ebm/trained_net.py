"""What training asks of a network: weights to train on one device, in training mode meanwhile."""

import contextlib

from torch import nn

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
    check_finite(net, "net")
    return parameters


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
