"""Training runs as small TOML files: what is trained, on what, with which sampler.

[data]      name: digits, mnist, cifar10, mixture or rings; the images may have a `limit`
[net]       name: toy, conv or joint, and the arguments of the network
[sampler]   name: ESH, ULA, …, and its arguments
[buffer]    arguments of the ReplayBuffer; left out, chains begin anew each time
[train]     the remaining arguments of the Trainer
"""

import inspect
import pathlib
import tomllib
from typing import Any

import numpy as np
import torch
from torch import nn

from schuss import algorithms
from schuss.arguments import one_of
from schuss.ebm import data as sets
from schuss.ebm.buffer import ReplayBuffer
from schuss.ebm.joint import JointEnergy
from schuss.ebm.networks import ConvEnergy, ResidualClassifier, ToyMLP
from schuss.ebm.toy import toy_data
from schuss.ebm.trainer import Trainer

FOLDER = pathlib.Path(__file__).parent / "configs"
IMAGES = ("digits", "mnist", "cifar10")
PLANES = ("mixture", "rings")
SAMPLERS = ("ESH", "ULA", "MALA", "HMC", "NoseHoover")
TABLES = ("data", "net", "sampler", "buffer", "train")
REQUIRED = ("data", "net", "sampler", "train")


def names() -> list[str]:
    """The configurations that come with the package."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load(name: str | pathlib.Path) -> dict[str, dict]:
    """A configuration from a file, or one that comes with the package by its name."""
    path = pathlib.Path(name)
    if not path.exists():
        path = FOLDER / f"{name}.toml"
    if not path.exists():
        raise ValueError(
            f"config must be a TOML file or one of {', '.join(names())}, got {str(name)!r}"
        )
    try:
        config = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"config {str(path)!r} isn't TOML: {error}") from None
    return checked(config)


def checked(config: dict) -> dict[str, dict]:
    """The same, if it has the right tables."""
    for table in REQUIRED:
        if not isinstance(config.get(table), dict):
            raise ValueError(f"config must have a table [{table}]; add it")
    for table in config:
        one_of("tables of config", table, TABLES)
    one_of("data.name", config["data"].get("name"), (*IMAGES, *PLANES))
    one_of("net.name", config["net"].get("name"), ("toy", "conv", "joint"))
    one_of("sampler.name", config["sampler"].get("name"), SAMPLERS)
    return config


def build(
    config: dict[str, dict],
    *,
    data: str | pathlib.Path | None = None,
    device: Any = "cpu",
    **more: Any,
) -> Trainer:
    """The trainer of a configuration; `more` arguments of it take precedence."""
    config, device = checked(config), torch.device(device)
    options = {**config["train"], **more}
    seed = options.get("seed", 0)
    toy = config["data"]["name"] in PLANES
    examples, shape, start = _plane(config, device) if toy else _images(config, data, device)
    torch.manual_seed(seed)
    net = network(config, shape).to(device)
    if isinstance(net, JointEnergy) != (isinstance(examples, tuple)):
        raise ValueError("net.name='joint' needs data with labels; use digits, mnist or cifar10")
    if "buffer" in config:
        arguments = {**start, **config["buffer"]}
        arguments.pop("reference", None)
        arguments = {"seed": seed, **arguments, "shape": shape, "device": device}
        options["buffer"] = _call(ReplayBuffer, "buffer", arguments)
    else:
        options = {**start, **options}
    options |= {"net": net, "data": examples, "sampler": sampler(config), "config": config}
    return _call(Trainer, "train", options)


def network(config: dict[str, dict], shape: tuple[int, ...]) -> nn.Module:
    """The untrained network for positions of a shape."""
    arguments = {k: v for k, v in config["net"].items() if k != "name"}
    name = config["net"]["name"]
    if name == "toy":
        return _call(ToyMLP, "net", {"dim": shape[0], **arguments})
    if len(shape) != 3:
        raise ValueError(f"net.name={name!r} is for images; use net.name='toy'")
    channels, _, size = shape
    if name == "conv":
        return _call(ConvEnergy, "net", {"channels": channels, "size": size, **arguments})
    return JointEnergy(_call(ResidualClassifier, "net", {"channels": channels, **arguments}))


def sampler(config: dict[str, dict]) -> algorithms.Algorithm:
    """The sampler of a configuration."""
    arguments = {k: v for k, v in config["sampler"].items() if k != "name"}
    return _call(getattr(algorithms, config["sampler"]["name"]), "sampler", arguments)


def _images(config, path, device):
    name, limit = config["data"]["name"], config["data"].get("limit")
    if name == "digits":
        images = sets.digits()
    elif path is None:
        raise ValueError(f"data {name!r} isn't part of schuss; pass --data PATH with its files")
    else:
        images = {"mnist": sets.mnist, "cifar10": sets.cifar10}[name](path)
    x = sets.scaled(images.train[:limit], device)
    if config["net"]["name"] != "joint":
        return x, images.shape, {}
    return (x, torch.as_tensor(images.train_labels[:limit], device=device)), images.shape, {}


def _plane(config, device):
    """Samples of a density in the plane, and where its chains begin."""
    toy = toy_data(config["data"]["name"])

    def drawn(function):
        def draw(n, generator):
            seed = torch.randint(2**62, (), generator=generator, device=generator.device)
            values = function(np.random.default_rng(int(seed)), n)
            return torch.as_tensor(values, dtype=torch.float32, device=device)

        return draw

    start: dict[str, Any] = {"start": drawn(toy.start)}
    if config["train"].get("weighting") is not None:
        start["reference"] = toy.reference
    return drawn(toy.target.sample), (2,), start


def _call(make, table, arguments):
    """Call with arguments from a table, which may hold no others."""
    known = inspect.signature(make).parameters
    for name in arguments:
        one_of(f"{table}'s names", name, tuple(known))
    return make(**arguments)
