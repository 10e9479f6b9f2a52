"""Training runs as small TOML files: what is trained, on what, with which sampler.

[data]      name: digits, mnist, cifar10, mixture or rings; the images may have a `limit`. Or
            `module:function` or `file.py:function`, and its arguments: it returns x (n, *shape), or
            (x, y) with classes or conditions; a `path` that it takes is that of --data
[net]       name: toy, conv, strided or joint, and the arguments of the network. Or `module:Class`;
            a `shape` that it takes is that of a position. A net of (x, y) is trained given y
[sampler]   name: ESH, ULA, …, and its arguments
[buffer]    arguments of the ReplayBuffer; left out, chains begin anew each time
[train]     the remaining arguments of the Trainer
"""

import difflib
import inspect
import pathlib
import tomllib
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn

from schuss import algorithms
from schuss.arguments import one_of
from schuss.ebm import data as sets
from schuss.ebm.buffer import ReplayBuffer
from schuss.ebm.joint import JointEnergy, conditional
from schuss.ebm.networks import ConvEnergy, ResidualClassifier, StridedEnergy, ToyMLP
from schuss.ebm.toy import toy_data
from schuss.ebm.trainer import Trainer
from schuss.loading import member

FOLDER = pathlib.Path(__file__).parent / "configs"
IMAGES = ("digits", "mnist", "cifar10")
PLANES = ("mixture", "rings")
NETS = {
    "toy": ToyMLP,
    "conv": ConvEnergy,
    "strided": StridedEnergy,
    "joint": ResidualClassifier,
}
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
    for table, given in config.items():
        _check_known("table", table, TABLES)
        if not isinstance(given, dict):
            raise ValueError(f"{table} of config must be a table, got {given!r}; write [{table}]")
    for table, ours in (("data", (*IMAGES, *PLANES)), ("net", tuple(NETS))):
        if ":" not in str(config[table].get("name")):
            one_of(f"{table}.name", config[table].get("name"), ours)
    one_of("sampler.name", config["sampler"].get("name"), SAMPLERS)
    known = {
        "data": ("name", *_data_arguments(config["data"]["name"])),
        "net": ("name", *_arguments(_net(config["net"]["name"]), "shape")),
        "sampler": ("name", *_arguments(getattr(algorithms, config["sampler"]["name"]))),
        "buffer": _arguments(ReplayBuffer, "shape", "device"),
        "train": _arguments(Trainer, "net", "data", "sampler", "buffer", "config"),
    }
    for table, given in config.items():
        for key in given:
            _check_known(f"key of [{table}],", key, known[table])
    return config


def _net(name: str) -> Callable:
    """The class or function that makes a net."""
    return _callable("net.name", name) if ":" in name else NETS[name]


def _data_arguments(name: str) -> tuple[str, ...]:
    return _arguments(_callable("data.name", name), "path") if ":" in name else ("limit",)


def _callable(what: str, name: str) -> Callable:
    found = member(name)
    if not callable(found):
        raise ValueError(
            f"{what} {name!r} is of type {type(found).__name__}; name a class or a function"
        )
    return found


def _arguments(make, *ours: str) -> tuple[str, ...]:
    """Names that a function takes, but for those that it is given here."""
    return tuple(name for name in inspect.signature(make).parameters if name not in ours)


def _check_known(kind: str, name: str, known: tuple[str, ...]) -> None:
    """Refuse a misspelt name, and say which one may be meant."""
    if name not in known:
        (nearest,) = difflib.get_close_matches(name, known, n=1, cutoff=0.0)
        raise ValueError(
            f"config has the unknown {kind} {name}; the nearest known one is {nearest}"
        )


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
    name, start = config["data"]["name"], {}
    if name in PLANES:
        examples, shape, start = _plane(config, device)
    else:
        x, y = _own(config, data, device) if ":" in name else _images(config, data, device)
        examples, shape = (x, y), tuple(x.shape[1:])
    torch.manual_seed(seed)
    net = network(config, shape).to(device)
    wants = isinstance(net, JointEnergy) or conditional(net)
    if isinstance(examples, tuple) and (examples[1] is None or (":" not in name and not wants)):
        examples = examples[0]
    if wants and not isinstance(examples, tuple):
        raise ValueError(
            f"net.name={config['net']['name']!r} needs data with labels; use digits, mnist or "
            "cifar10, or let the function of data return (x, y)"
        )
    if "buffer" in config:
        arguments = {**start, **config["buffer"]}
        arguments.pop("reference", None)
        arguments = {"seed": seed, **arguments, "shape": shape, "device": device}
        options["buffer"] = ReplayBuffer(**arguments)
    else:
        options = {**start, **options}
    options |= {"net": net, "data": examples, "sampler": sampler(config), "config": config}
    return Trainer(**options)


def network(config: dict[str, dict], shape: tuple[int, ...]) -> nn.Module:
    """The untrained network for positions of a shape."""
    arguments = {k: v for k, v in config["net"].items() if k != "name"}
    name = config["net"]["name"]
    if ":" in name:
        make = _net(name)
        if "shape" in _arguments(make):
            arguments = {"shape": shape, **arguments}
        net = make(**arguments)
        if not isinstance(net, nn.Module):
            raise ValueError(f"net.name {name!r} must make a module, got {type(net).__name__}")
        return net
    if name == "toy":
        return ToyMLP(**{"dim": shape[0], **arguments})
    if len(shape) != 3:
        raise ValueError(f"net.name={name!r} is for images; use net.name='toy'")
    channels, _, size = shape
    if name != "joint":
        return NETS[name](**{"channels": channels, "size": size, **arguments})
    return JointEnergy(ResidualClassifier(**{"channels": channels, **arguments}))


def sampler(config: dict[str, dict]) -> algorithms.Algorithm:
    """The sampler of a configuration."""
    arguments = {k: v for k, v in config["sampler"].items() if k != "name"}
    return getattr(algorithms, config["sampler"]["name"])(**arguments)


def _images(config, path, device):
    name, limit = config["data"]["name"], config["data"].get("limit")
    if name == "digits":
        images = sets.digits()
    elif path is None:
        raise ValueError(f"data {name!r} isn't part of schuss; pass --data PATH with its files")
    else:
        images = {"mnist": sets.mnist, "cifar10": sets.cifar10}[name](path)
    x = sets.scaled(images.train[:limit], device)
    return x, torch.as_tensor(images.train_labels[:limit], device=device)


def _own(config, path, device):
    """Positions and labels, or None, from a function that a configuration names."""
    name = config["data"]["name"]
    make = _callable("data.name", name)
    arguments = {key: value for key, value in config["data"].items() if key != "name"}
    if "path" in _arguments(make):
        if path is not None:
            arguments["path"] = path
    elif path is not None:
        raise ValueError(f"data.name {name!r} takes no path; leave --data out")
    made = make(**arguments)
    x, y = made if isinstance(made, tuple | list) and len(made) == 2 else (made, None)
    x, y = (None if part is None else torch.as_tensor(part, device=device) for part in (x, y))
    if x is None or x.dim() < 2:
        raise ValueError(f"data.name {name!r} must return positions (n, *shape), or (x, y)")
    return x.to(torch.get_default_dtype()) if x.is_floating_point() else x, y


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
