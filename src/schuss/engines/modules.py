"""Modules inside an energy: found, checked, and kept still while they are sampled."""

import contextlib
import dataclasses
import functools

import torch
from torch.nn.utils import parametrize


def modules(energy):
    """The modules that an energy is made of: itself, its owner, or what it closes over."""
    if isinstance(energy, functools.partial):
        held = [energy.func, *energy.args, *energy.keywords.values()]
        return [module for part in held for module in modules(part)]
    if dataclasses.is_dataclass(energy) and not isinstance(energy, torch.nn.Module):
        held = [getattr(energy, field.name) for field in dataclasses.fields(energy)]
    else:
        cells = getattr(energy, "__closure__", None) or ()
        held = [energy, getattr(energy, "__self__", None)]
        held += [cell.cell_contents for cell in cells if _filled(cell)]
    return [part for part in held if isinstance(part, torch.nn.Module)]


def _filled(cell):
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


@contextlib.contextmanager
def evaluation(energy, cache=False):
    """Evaluation mode and frozen parameters while sampling; both restored whatever happens.

    With `cache`, reparametrised weights (spectral norm) are computed once and kept meanwhile.
    """
    parts = modules(energy)
    modes = [(part, part.training) for module in parts for part in module.modules()]
    wanted = [(p, p.requires_grad) for module in parts for p in module.parameters()]
    try:
        for module in parts:
            module.eval()
            module.requires_grad_(False)
        with parametrize.cached() if cache else contextlib.nullcontext():
            yield
    finally:
        for part, training in modes:
            part.training = training
        for parameter, flag in wanted:
            parameter.requires_grad_(flag)


def check_parameters(energy, x, gradient_dtype):
    """Refuse parameters on another device, or of another precision without autocast."""
    for module in modules(energy):
        for name, parameter in module.named_parameters():
            if parameter.device != x.device:
                raise ValueError(
                    f"init is on {x.device} but the energy's parameter {name} is on "
                    f"{parameter.device}; move one of them, e.g. init.to({str(parameter.device)!r})"
                )
            if parameter.dtype != x.dtype and gradient_dtype is None:
                raise ValueError(
                    f"init has dtype {x.dtype} but the energy's parameter {name} has "
                    f"{parameter.dtype}; convert one of them, e.g. init.to({parameter.dtype})"
                )
