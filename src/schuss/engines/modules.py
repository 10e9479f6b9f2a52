"""Modules inside an energy: found, checked, and kept still while they are sampled."""

import collections
import contextlib
import dataclasses
import functools
import itertools
import types
from collections.abc import Iterable

import torch
from torch.nn.utils import parametrize

MOST_PARTS, MOST_ITEMS = 2000, 200
"""What is looked at in search of modules, and in one container: data sets may be among it."""


def modules(energy, *, far: bool = True) -> list[torch.nn.Module]:
    """The modules an energy is made of: itself, its owner, what it holds or closes over.

    With `far` also what can be reached through objects and containers, in use or not.
    """
    found, seen, left = [], set(), collections.deque([energy])
    while left and len(seen) < MOST_PARTS:
        part = left.popleft()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, torch.nn.Module):
            found.append(part)
        else:
            left.extend(filter(_holds, itertools.islice(_held(part, far), MOST_ITEMS)))
    return found


def _holds(part) -> bool:
    """Whether there may be a module in it."""
    if isinstance(part, type | types.ModuleType | torch.Tensor):
        return False
    return isinstance(part, list | tuple | dict | types.MethodType) or hasattr(part, "__dict__")


def _held(part, far: bool) -> Iterable:
    """What a callable or a container refers to, as far as a module can be found that way."""
    if isinstance(part, functools.partial):
        return [part.func, *part.args, *part.keywords.values()]
    if isinstance(part, list | tuple):
        return part
    if isinstance(part, dict):
        return part.values()
    if isinstance(part, types.FunctionType):
        cells = [cell.cell_contents for cell in part.__closure__ or () if _filled(cell)]
        named = [part.__globals__.get(name) for name in part.__code__.co_names]
        own = [
            value
            for value in named
            if (far and not callable(value))
            or isinstance(value, torch.nn.Module)
            or (isinstance(value, types.FunctionType) and value.__globals__ is part.__globals__)
        ]
        return [*cells, *own, *(part.__defaults__ or ()), *(part.__kwdefaults__ or {}).values()]
    if isinstance(part, types.MethodType):
        return [part.__self__, part.__func__]
    if not _holds(part):
        return []
    if dataclasses.is_dataclass(part):
        return [getattr(part, field.name) for field in dataclasses.fields(part)]
    own = vars(part).values()
    return own if far else [value for value in own if isinstance(value, torch.nn.Module)]


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
    for module in modules(energy, far=False):
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


def check_tensor(energy, name: str = "energy"):
    """Refuse what a function or a network returned in place of energies."""
    if isinstance(energy, torch.Tensor):
        return
    kind = "None" if energy is None else type(energy).__name__
    remedy = "let it end in a return" if energy is None else "return that tensor alone"
    raise TypeError(f"{name} must return a tensor, one {name} per chain, got {kind}; {remedy}")


def check_finite(net: torch.nn.Module, name: str):
    """Refuse weights that are NaN or infinite, and name the first."""
    tensors = [(key, t) for key, t in net.state_dict().items() if t.is_floating_point()]
    wrong = [key for key, tensor in tensors if not tensor.isfinite().all()]
    if wrong:
        raise ValueError(
            f"{name} has weights that are NaN or infinite in {len(wrong)} of its {len(tensors)} "
            f"tensors, first in {wrong[0]}; load or build the network anew"
        )
