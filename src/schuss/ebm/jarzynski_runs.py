"""CIFAR-10 with Jarzynski's weights: how soon a batch comes to hang on one image.

    python -m schuss.ebm.jarzynski_runs --data PATH --work FOLDER

Chains start from uniform noise in every iteration, so that E₀ is constant, and their last states
are weighted by −E(x_t) − (d−1)r_t, which is exact at any step size. The largest normalised weight
of each batch is the figure's diagnosis.
"""

import json
import pathlib
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch

from schuss.algorithms import ESH
from schuss.ebm.data import Images, cifar10, scaled
from schuss.ebm.divergence import DivergenceError
from schuss.ebm.networks import ConvEnergy
from schuss.ebm.persistent import as_bytes, plain, write
from schuss.ebm.run_command import run_parser, sized, timed
from schuss.ebm.trainer import Trainer

SCALES = (1.0, 2e4)


class Size(NamedTuple):
    """The network and its training."""

    features: int = 128
    iterations: int = 300
    batch: int = 1000
    steps: int = 50


SMALL = Size(features=4, iterations=6, batch=16, steps=5)


def train_weighted(images: Images, size: Size, scale: float, device: Any, seed: int) -> Trainer:
    """The paper's setting: no noise on the data, Adam 1e-3, fresh chains, weighted negatives."""
    channels, side, _ = images.shape
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = ConvEnergy(size.features, channels, side).to(device)
    return Trainer(
        net,
        scaled(images.train, device),
        sampler=ESH(step_size=0.5),
        steps=size.steps,
        keep="last",
        start="uniform",
        weighting="jarzynski",
        batch=size.batch,
        lr=1e-3,
        iterations=size.iterations,
        data_noise=0.0,
        energy_scale=scale,
        every=min(50, size.iterations),
        precision="bf16" if torch.device(device).type == "cuda" else None,
        seed=seed,
    )


def run_weighted(
    path: pathlib.Path | None,
    work: pathlib.Path,
    *,
    size: Size | None = None,
    seed: int = 0,
    device: Any = None,
    images: Images | None = None,
    advance: Callable[[str], None] = lambda done: None,
) -> dict[str, Any]:
    """One run for each energy scale, kept in the folder."""
    size = size or Size()
    kept = work / "jarzynski.json"
    if kept.exists():
        for scale in SCALES:
            advance(f"scale {scale:g}: there already")
        return json.loads(kept.read_text())
    if images is None:
        if path is None:
            raise ValueError("data must be given for CIFAR-10; pass --data PATH")
        images = cifar10(path)
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    told: dict[str, Any] = {"seed": seed, **size._asdict(), "runs": {}}
    pictures = {}
    for scale in SCALES:
        begun, stopped = time.monotonic(), None
        trainer = train_weighted(images, size, scale, device, seed)
        try:
            trainer.fit()
        except DivergenceError as error:
            stopped = str(error)
        history = trainer.history
        told["runs"][f"{scale:g}"] = {
            "max_weight": plain(history.max_weight),
            "energy_data": plain(history.energy_data),
            "energy_negative": plain(history.energy_negative),
            "delta": plain(history.delta),
            "energy_error": plain(history.energy_error),
            "rollbacks": [f"{r.iteration}: {r.cause}" for r in history.rollbacks],
            "stopped": stopped,
            "seconds": time.monotonic() - begun,
        }
        pictures[f"{scale:g}"] = as_bytes(trainer.from_noise(16, rounds=1, seed=seed))
        largest = history.max_weight[-1] if len(history) else float("nan")
        advance(f"scale {scale:g}: largest weight {largest:.3f}")
    work.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(work / "jarzynski.npz", **pictures)
    write(kept, told)
    return told


def main() -> None:
    """The command, without any library that a GPU machine may lack."""
    given = run_parser("CIFAR-10 with Jarzynski's weights.").parse_args()
    size = sized(given, Size(), SMALL)
    run_weighted(given.data, given.work, size=size, advance=timed())


if __name__ == "__main__":
    main()
