"""JEM: a joint model trained here, and the energy over time of samplers on it.

    python -m schuss.ebm.joint_runs --data PATH --work FOLDER [--minutes 9]

trains a small residual classifier together with its energy −logsumexp, with the Langevin steps of
the original (x ← x − g + .01 z), and then follows each sampler on 2/.01² times that energy, from
noise and from the buffer. `--checkpoint FILE` takes the original WRN-28-10 instead. Where time was
up, the same command goes on from what is in the folder.
"""

import math
import pathlib
import shutil
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from schuss.algorithms import ESH, HMC, MALA, ULA, Algorithm, NoseHoover
from schuss.ebm.buffer import ReplayBuffer
from schuss.ebm.continued import spent, train
from schuss.ebm.data import Images, as_bytes, cifar10, from_path, scaled
from schuss.ebm.joint import JointEnergy
from schuss.ebm.machine import best_device, inner_precision, machine
from schuss.ebm.networks import ResidualClassifier
from schuss.ebm.randomness import seeded
from schuss.ebm.results import plain, stride, there_already, write
from schuss.ebm.run_command import session, sized, sized_parser, tell_end
from schuss.ebm.trainer import Trainer
from schuss.ebm.wide_resnet import load_jem
from schuss.trajectory import trajectory

SCALE = 2 / 0.01**2
SAMPLERS: dict[str, Algorithm] = {
    "ESH 0.5": ESH(step_size=0.5),
    "ESH 1": ESH(step_size=1.0),
    "ULA": ULA(step_size=0.01),
    "MALA": MALA(step_size=0.01),
    "HMC": HMC(step_size=0.01, steps=5),
    "NoseHoover": NoseHoover(step_size=0.01),
}


class Size(NamedTuple):
    """The network, its training, and the chains that are followed."""

    width: int = 64
    iterations: int = 1000
    batch: int = 250
    steps: int = 20
    buffer: int = 10_000
    chains: int = 50
    gradients: int = 200


SMALL = Size(width=4, iterations=10, batch=16, steps=3, buffer=64, chains=4, gradients=10)


def joint_trainer(images: Images, size: Size, device: Any, seed: int, **options: Any) -> Trainer:
    """Cross-entropy and contrastive divergence together, from a uniform start."""
    with seeded(seed):
        net = ResidualClassifier(10, images.shape[0], size.width).to(device)
    buffer = ReplayBuffer(size.buffer, images.shape, reinit=0.05, seed=seed, device=device)
    labels = torch.as_tensor(images.train_labels).to(device)
    return Trainer(
        JointEnergy(net),
        (scaled(images.train, device), labels),
        sampler=ULA(step_size=0.01),
        steps=size.steps,
        keep="last",
        buffer=buffer,
        batch=size.batch,
        lr=2e-4,
        betas=(0.9, 0.999),
        lr_schedule="tail",
        iterations=size.iterations,
        data_noise=0.03,
        flip=True,
        energy_scale=SCALE,
        precision=inner_precision(device),
        seed=seed,
        page=False,
        **options,
    )


@torch.no_grad()
def test_accuracy(net: JointEnergy, images: Images, batch: int = 500) -> float:
    """On the test images."""
    device = next(net.parameters()).device
    x, y = scaled(images.test, device), torch.as_tensor(images.test_labels).to(device)
    pairs = zip(x.split(batch), y.split(batch), strict=True)
    hits = sum(int((net.logits(a).argmax(dim=1) == b).sum()) for a, b in pairs)
    return hits / len(y)


class Scaled:
    """The energy that the samplers see, as a function without state of its own."""

    def __init__(self, net: JointEnergy):
        self.net = net

    def __call__(self, x: Tensor) -> Tensor:
        """2/.01² times the joint energy."""
        return SCALE * self.net(x)


def follow(
    net: JointEnergy, start: Tensor, gradients: int, seed: int, shown: int = 4
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Mean energies over time, in units of the network, and some chains at the end."""
    curves, ends = {}, {}
    for name, sampler in SAMPLERS.items():
        path = trajectory(
            energy=Scaled(net), init=start, sampler=sampler, steps=gradients, seed=seed
        )
        energy = path.energy.mean(axis=1) / SCALE
        curves[name] = {
            "energy": plain(energy),
            "sd": plain(path.energy.std(axis=1) / SCALE),
            "frozen": int(path.frozen.sum()),
            "acceptance": plain(np.atleast_1d(np.nanmean(path.acceptance)))[0]
            if np.isfinite(path.acceptance).any()
            else None,
        }
        ends[name] = as_bytes(torch.as_tensor(path.x[-1][:shown]))
    return curves, ends


def run_joint(
    path: pathlib.Path | None,
    work: pathlib.Path,
    *,
    size: Size | None = None,
    seed: int = 0,
    checkpoint: pathlib.Path | None = None,
    device: Any = None,
    images: Images | None = None,
    until: float = math.inf,
    progress: bool = False,
    advance: Callable[[str], None] = lambda done: None,
) -> dict[str, Any] | None:
    """Train or load, follow all samplers from both starts, and keep it in the folder.

    None where `until` (on the clock of time.monotonic) came before training was done.
    """
    size = size or Size()
    kept, place = work / "jem.json", work / "jem.checkpoint"
    made = there_already(kept, advance, "JEM")
    if made is not None:
        return made
    images = from_path(cifar10, path, "JEM") if images is None else images
    device = best_device(device)
    if checkpoint is None:
        trainer = joint_trainer(images, size, device, seed, folder=place, progress=progress)
        advance(f"JEM: {size.iterations} iterations of {size.steps} steps, batch {size.batch}")
        if not train(trainer, until):
            advance(f"JEM: stopped at iteration {trainer.iteration}")
            return None
        net, buffer, about = _trained(trainer, size)
    else:
        net, buffer, about = _loaded(checkpoint, device)
    told: dict[str, Any] = {"seed": seed, "chains": size.chains, "gradients": size.gradients}
    told |= about
    following = time.monotonic()
    told["accuracy"] = test_accuracy(net, images)
    told["seconds_training"] = spent(place)
    advance(f"trained in {told['seconds_training']:.0f} s, accuracy {told['accuracy']:.3f}")
    with torch.no_grad():
        told["energy_data"] = float(net(scaled(images.test[:500], device)).mean())
    generator = torch.Generator(device).manual_seed(seed + 1)
    shape = (size.chains, *images.shape)
    starts = {
        "noise": 2 * torch.rand(shape, generator=generator, device=device) - 1,
        "buffer": buffer[: size.chains].clone(),
    }
    told["curves"], pictures = {}, {}
    for name, start in starts.items():
        told["curves"][name], ends = follow(net, start, size.gradients, seed)
        pictures |= {f"{name}, {sampler}": x for sampler, x in ends.items()}
        last = {s: c["energy"][-1] for s, c in told["curves"][name].items()}
        advance(f"from {name}: " + ", ".join(f"{s} {_number(e)}" for s, e in last.items()))
    told["seconds"] = told["seconds_training"] + time.monotonic() - following
    told["machine"] = machine(device)
    work.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(work / "jem.npz", **pictures)
    write(kept, told)
    shutil.rmtree(place, ignore_errors=True)
    return told


class Model(NamedTuple):
    """A joint model, the chains of its buffer, and what is told of it."""

    net: JointEnergy
    buffer: Tensor
    about: dict[str, Any]


def _trained(trainer: Trainer, size: Size) -> Model:
    net, history = trainer.averaged, trainer.history
    assert isinstance(net, JointEnergy) and trainer.buffer is not None
    every = stride(len(history))
    about = {
        "network": f"residual, width {size.width}",
        "rollbacks": history.setbacks,
        "every": every,
        "losses": plain(history.losses[::every]),
        "train_accuracy": plain(history.accuracy[::every]),
    }
    return Model(net, trainer.buffer.x, about)


def _loaded(checkpoint: pathlib.Path, device: Any) -> Model:
    """The original's."""
    loaded, held = load_jem(checkpoint)
    net = JointEnergy(loaded).to(device).eval().requires_grad_(False)
    if held is None:
        raise ValueError(f"checkpoint {str(checkpoint)!r} holds no replay buffer")
    return Model(net, held.float().to(device), {"network": "WRN-28-10, loaded"})


def _number(value: float | None) -> str:
    return "none" if value is None or not math.isfinite(value) else f"{value:.3f}"


def main() -> None:
    """The command, without any library that a GPU machine may lack."""
    parser = sized_parser("JEM: energy over time of samplers.")
    parser.add_argument("--checkpoint", type=pathlib.Path)
    given = parser.parse_args()
    options: dict[str, Any] = {"size": sized(given, Size(), SMALL), **session(given)}
    told = run_joint(given.data, given.work, checkpoint=given.checkpoint, **options)
    tell_end(told is not None)


if __name__ == "__main__":
    main()
