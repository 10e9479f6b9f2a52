"""All that training changes, as tensors by name."""

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
