"""All that training changes, as tensors by name; and the arguments that it depends on."""

import dataclasses
import hashlib
from typing import Any

import numpy as np
import torch


def gather(net, optimiser, ema) -> dict[str, torch.Tensor]:
    """Weights, optimiser and average, which are the same in all processes; not copies."""
    found = {f"net.{name}": tensor for name, tensor in net.state_dict().items()}
    for number, state in optimiser.state_dict()["state"].items():
        for name, value in state.items():
            if value is not None:
                found[f"optimiser.{number}.{name}"] = torch.as_tensor(value)
    if ema is not None:
        found |= {f"ema.{name}": tensor for name, tensor in ema.state_dict().items()}
    return found


def restore(tensors: dict[str, torch.Tensor], net, optimiser, ema) -> None:
    """Put everything back; weights stay where they lie in memory."""
    net.load_state_dict(under("net.", tensors))
    weights = [p for group in optimiser.param_groups for p in group["params"]]
    state: dict[int, dict] = {}
    for name, tensor in under("optimiser.", tensors).items():
        number, _, what = name.partition(".")
        like = weights[int(number)]
        # Laid out like its weight, which a file doesn't tell.
        value = torch.empty_like(like, dtype=tensor.dtype) if tensor.shape == like.shape else None
        value = tensor.clone() if value is None else value.copy_(tensor)
        state.setdefault(int(number), {})[what] = value.detach()
    groups = optimiser.state_dict()["param_groups"]
    optimiser.load_state_dict({"state": state, "param_groups": groups})
    if ema is not None:
        ema.load_state_dict(under("ema.", tensors))


def under(prefix: str, tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The tensors whose names begin so, without it."""
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


def described(value: Any) -> Any:
    """An argument for JSON: arrays by shape, dtype and digest, and functions, which can't be told
    apart, by no more than being one."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: described(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {"name": type(value).__name__, **fields}
    if isinstance(value, torch.Tensor):
        return {
            "shape": list(value.shape),
            "dtype": str(value.dtype).removeprefix("torch."),
            "digest": digest(value),
        }
    if isinstance(value, np.generic):
        return value.item()
    if hasattr(value, "shape"):
        return described(torch.as_tensor(np.asarray(value)))
    if isinstance(value, dict):
        return {str(name): described(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [described(part) for part in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return "a function" if callable(value) else type(value).__name__


def digest(x: torch.Tensor) -> str:
    """A hash of a tensor's values, some of which at a time leave its device."""
    found = hashlib.blake2b(digest_size=8)
    for part in x.detach().reshape(-1).split(2**22):
        found.update(part.cpu().contiguous().view(torch.uint8).numpy().data)
    return found.hexdigest()


def rates(optimiser: torch.optim.Optimizer, lr: list[float]) -> dict[str, Any]:
    """An optimiser's settings, of all its groups where there are several."""
    names = ("betas", "momentum", "weight_decay")
    columns = {"lr": lr} | {n: [g.get(n) for g in optimiser.param_groups] for n in names}
    plain = {name: column[0] if len(column) == 1 else column for name, column in columns.items()}
    return {"optimiser": type(optimiser).__name__, **plain}
