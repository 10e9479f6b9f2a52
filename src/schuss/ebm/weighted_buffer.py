"""Appendix C.3 as the paper has it (D.4): Jarzynski's weights with a persistent buffer.

    python -m schuss.ebm.weighted_buffer --data PATH --work FOLDER [--minutes 9]

Chains go on from a buffer as large as the training data, E₀ is a constant, and the negatives of a
batch are weighted by Eq. 9 as it is printed, −E(x₀) + r_t. Beside it Langevin in the same setting,
unweighted, with the energy scaled by 2/ε²; ESH's energy isn't scaled. No noise on the data, no
spectral norm. Divergences stop a run and are counted. Where time was up, the same command goes on.
"""

import json
import math
import pathlib
import shutil
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from schuss.algorithms import ESH, ULA
from schuss.ebm.buffer import ReplayBuffer
from schuss.ebm.continued import spent, train
from schuss.ebm.data import Images, as_bytes, cifar10, from_path, scaled
from schuss.ebm.divergence import DivergenceError
from schuss.ebm.frechet import frechet
from schuss.ebm.machine import best_device, inner_precision, machine
from schuss.ebm.networks import ConvEnergy
from schuss.ebm.randomness import seeded
from schuss.ebm.results import plain, there_already, write
from schuss.ebm.run_command import session, sized, sized_parser, tell_end
from schuss.ebm.trainer import Trainer

SAMPLERS = ("ESH", "ULA")
SHOWN, MEASURED = 24, 5000
SERIES = ("max_weight", "energy_data", "energy_negative", "delta", "energy_error", "grad_norm")


class Size(NamedTuple):
    """The network and its training; 1500 iterations are the paper's 30 epochs."""

    features: int = 128
    iterations: int = 1500
    batch: int = 1000
    steps: int = 50
    buffer: int = 50_000


SMALL = Size(features=4, iterations=6, batch=16, steps=5, buffer=64)


def buffered_trainer(
    images: Images, size: Size, sampler: str, device: Any, seed: int, **options: Any
) -> Trainer:
    """D.4's setting with one of the two samplers."""
    channels, side, _ = images.shape
    with seeded(seed):
        net = ConvEnergy(size.features, channels, side, spectral=False).to(device)
    buffer = ReplayBuffer(size.buffer, images.shape, reinit=0.0, seed=seed, device=device)
    weighted: dict[str, Any] = {
        "sampler": ESH(step_size=0.5),
        "weighting": "jarzynski",
        "energy_scale": 1.0,
    }
    plain_one = {"sampler": ULA(step_size=0.01), "energy_scale": 2 / 0.01**2}
    return Trainer(
        net,
        scaled(images.train, device),
        **(weighted if sampler == "ESH" else plain_one),
        steps=size.steps,
        keep="last",
        buffer=buffer,
        batch=size.batch,
        lr=1e-3,
        betas=(0.9, 0.999),
        lr_schedule="constant",
        iterations=size.iterations,
        data_noise=0.0,
        ema=None,
        every=1,  # what was seen up to a divergence is the point here
        save_every=100,
        retries=0,
        precision=inner_precision(device),
        seed=seed,
        **options,
    )


def run_buffered(
    path: pathlib.Path | None,
    work: pathlib.Path,
    *,
    size: Size | None = None,
    seeds: tuple[int, ...] = (0,),
    samplers: tuple[str, ...] = SAMPLERS,
    device: Any = None,
    images: Images | None = None,
    until: float = math.inf,
    progress: bool = False,
    advance: Callable[[str], None] = lambda done: None,
) -> dict[str, Any] | None:
    """A run for each sampler and seed by its name, kept in the folder.

    None where `until` (on the clock of time.monotonic) came first: the checkpoint stays.
    """
    size = size or Size()
    names = {f"{sampler}-{seed}": (sampler, seed) for seed in seeds for sampler in samplers}
    images = from_path(cifar10, path, "CIFAR-10") if images is None else images
    device = best_device(device)
    runs = {}
    for name, (sampler, seed) in names.items():
        file, place = work / f"{name}.json", work / f"{name}.checkpoint"
        run = there_already(file, advance, name)
        if run is None:
            trainer = buffered_trainer(
                images, size, sampler, device, seed, folder=place, progress=progress
            )
            run = _run(trainer, images, until)
            if run is None:
                return None
            run |= {"sampler": sampler, "seed": seed, "colours": colours(images)}
            run |= {**size._asdict(), "machine": machine(device)}
            assert trainer.buffer is not None
            np.savez_compressed(file.with_suffix(".npz"), buffer=as_bytes(trainer.buffer.x[:SHOWN]))
            write(file, run)
            shutil.rmtree(place, ignore_errors=True)
            advance(f"{name}: {run['stopped'] or 'to its end'}")
        runs[name] = run
    return runs


def kept_runs(work: pathlib.Path) -> dict[str, Any]:
    """The runs that are in a folder, by their names."""
    names = sorted(path.stem for path in work.glob("*.json"))
    return {name: json.loads((work / f"{name}.json").read_text()) for name in names}


def _run(trainer: Trainer, images: Images, until: float) -> dict[str, Any] | None:
    """Train to the end, or to where it diverges; None where time is up."""
    assert trainer.folder is not None and trainer.buffer is not None
    stopped = None
    try:
        if not train(trainer, until):
            return None
    except DivergenceError as error:
        stopped = str(error)
    history = trainer.history
    return {key: plain(getattr(history, key)) for key in SERIES} | {
        "rollbacks": history.setbacks,
        "stopped": stopped,
        "seconds": spent(trainer.folder),
        "colour": _colour_distance(trainer.buffer.x[:MEASURED].float().cpu().numpy(), images),
        "pixel_sd": float(trainer.buffer.x[:MEASURED].float().std()),
    }


def _colour_distance(x: np.ndarray, images: Images) -> float | None:
    """Fréchet's distance of the images' mean colours from the data's; None if not finite."""
    data = scaled(images.train[: len(x)]).numpy()
    n = min(len(x), len(data))
    if not np.isfinite(x).all():
        return None
    return float(f"{frechet(*(part[:n].mean(axis=(2, 3)) for part in (x, data))):.4g}")


def colours(images: Images) -> dict[str, float | None]:
    """The distance of mean colours from the data's for uniform noise, and for other images."""
    noise = np.random.default_rng(0).uniform(-1, 1, (MEASURED, *images.shape))
    return {
        "noise": _colour_distance(noise, images),
        "test": _colour_distance(scaled(images.test[:MEASURED]).numpy(), images),
    }


def main() -> None:
    """The command, without any library that a GPU machine may lack."""
    parser = sized_parser("CIFAR-10 with Jarzynski's weights and a buffer, and Langevin beside it.")
    parser.add_argument("--seeds", type=int, default=1)
    given = parser.parse_args()
    size, seeds = sized(given, Size(), SMALL), tuple(range(given.seeds))
    runs = run_buffered(given.data, given.work, size=size, seeds=seeds, **session(given))
    tell_end(runs is not None)


if __name__ == "__main__":
    main()
