"""Samples from the folder of a training run that a configuration described."""

import pathlib
from typing import Any

import torch

from schuss.arguments import one_of
from schuss.ebm import checkpoint
from schuss.ebm.checkpoint import STATE, latest, load_weights, read
from schuss.ebm.config import PLANES, network, sampler
from schuss.ebm.from_noise import SEGMENT, sample_from_noise
from schuss.ebm.joint import JointEnergy, conditional
from schuss.ebm.starts import STARTS, saved_colours


def saved_net(folder: str | pathlib.Path, device: Any = "cpu"):
    """The trained network (its average, if there is one), the shape it takes, and its config."""
    place = latest(folder)
    config = read(place / STATE)[1]["config"]
    if config is None:
        raise ValueError(
            f"the run in {str(folder)!r} wasn't made from a config; build its Trainer in Python "
            "and call resume() and from_noise()"
        )
    data = read(place / STATE)[1]["settings"]["data"]
    shape = (2,) if config["data"]["name"] in PLANES else tuple(data["shape"][1:])
    net = load_weights(network(config, shape), place).to(device)
    return net.eval().requires_grad_(False), shape, config


def samples(
    folder: str | pathlib.Path,
    source: str = "noise",
    n: int = 100,
    *,
    gradients: int = 2000,
    seed: int = 0,
    device: Any = "cpu",
    y: Any = None,
) -> torch.Tensor:
    """`n` chains of the buffer as they were saved, or samples from noise, given y (n, …) if any."""
    one_of("source", source, ("noise", "buffer"))
    if source == "buffer":
        file = latest(folder) / "stream-0.safetensors"
        if not file.exists():
            raise ValueError(f"the run in {str(folder)!r} has no buffer; sample from noise")
        return checkpoint.read(file)[0]["x"][:n]
    net, shape, config = saved_net(folder, device)
    if y is None and conditional(net) and not isinstance(net, JointEnergy):
        raise ValueError("y is missing: the net is an energy of (x, y); pass e.g. --y 0,1,2")
    meta = read(latest(folder) / STATE)[1]
    start = config.get("buffer", config["train"]).get("start", "uniform")
    one_of("start", start, STARTS)
    gradients = gradients if gradients <= SEGMENT else -(-gradients // SEGMENT) * SEGMENT
    bf16 = config["train"].get("precision") == "bf16"
    return sample_from_noise(
        net,
        n,
        shape,
        sampler=sampler(config),
        gradients=gradients,
        start=start,
        energy_scale=meta["energy_scale"],
        keep=config["train"].get("keep", "reservoir"),
        gradient_dtype=torch.bfloat16 if bf16 else None,
        seed=seed,
        y=None if y is None else torch.as_tensor(y),
        colours=saved_colours(meta, shape) if start == "colour" else None,
    )[0]
