"""CIFAR-10 with Jarzynski's weights: how soon a batch comes to hang on one image.

    python -m schuss.ebm.jarzynski_runs --data PATH --work FOLDER [--minutes 9]

Chains start from uniform noise in every iteration, so that E₀ is constant, and their last states
are weighted by −E(x_t) − (d−1)r_t, which is exact at any step size. The largest normalised weight
of each batch is the figure's diagnosis. Where time was up, the same command goes on.
"""

import math
import pathlib
import shutil
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from schuss.algorithms import ESH
from schuss.ebm.continued import spent, train
from schuss.ebm.data import Images, as_bytes, cifar10, from_path, scaled
from schuss.ebm.divergence import DivergenceError
from schuss.ebm.machine import best_device, inner_precision, machine
from schuss.ebm.networks import ConvEnergy
from schuss.ebm.randomness import seeded
from schuss.ebm.results import plain, there_already, write
from schuss.ebm.run_command import session, sized, sized_parser, tell_end
from schuss.ebm.trainer import Trainer

SCALES = (1.0, 2e4)


class Size(NamedTuple):
    """The network and its training."""

    features: int = 128
    iterations: int = 200
    batch: int = 1000
    steps: int = 50


SMALL = Size(features=4, iterations=6, batch=16, steps=5)


def weighted_trainer(
    images: Images, size: Size, scale: float, device: Any, seed: int, **options: Any
) -> Trainer:
    """The paper's setting: no noise on the data, Adam 1e-3, fresh chains, weighted negatives."""
    channels, side, _ = images.shape
    with seeded(seed):
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
        every=1,  # what was seen up to a divergence is the point here
        save_every=50,
        retries=0,
        precision=inner_precision(device),
        seed=seed,
        page=False,
        **options,
    )


def run_weighted(
    path: pathlib.Path | None,
    work: pathlib.Path,
    *,
    size: Size | None = None,
    seed: int = 0,
    device: Any = None,
    images: Images | None = None,
    until: float = math.inf,
    progress: bool = False,
    advance: Callable[[str], None] = lambda done: None,
) -> dict[str, Any] | None:
    """One run for each energy scale, kept in the folder.

    None where `until` (on the clock of time.monotonic) came first: the checkpoint stays.
    """
    size = size or Size()
    kept = work / "jarzynski.json"
    made = there_already(kept, advance, *(f"scale {scale:g}" for scale in SCALES))
    if made is not None:
        return made
    images = from_path(cifar10, path, "CIFAR-10") if images is None else images
    device = best_device(device)
    told: dict[str, Any] = {"seed": seed, **size._asdict(), "machine": machine(device), "runs": {}}
    for scale in SCALES:
        file, place = work / f"scale-{scale:g}.json", work / f"scale-{scale:g}.checkpoint"
        run = there_already(file, advance, f"scale {scale:g}")
        if run is None:
            trainer = weighted_trainer(
                images, size, scale, device, seed, folder=place, progress=progress
            )
            if progress:
                print(f"scale {scale:g}: {size.iterations} iterations of {size.steps} steps")
            run = _run(trainer, until)
            if run is None:
                return None
            pictures = as_bytes(trainer.from_noise(16, rounds=1, seed=seed))
            np.savez_compressed(file.with_suffix(".npz"), noise=pictures)
            write(file, run)
            shutil.rmtree(place, ignore_errors=True)
            advance(f"scale {scale:g}: largest weight {run['max_weight'][-1:]}")
        told["runs"][f"{scale:g}"] = run
    write(kept, told)
    return told


def _run(trainer: Trainer, until: float) -> dict[str, Any] | None:
    """Train to the end, or to where it diverges for good; None where time is up."""
    assert trainer.folder is not None
    stopped = None
    try:
        if not train(trainer, until):
            return None
    except DivergenceError as error:
        stopped = str(error)
    history = trainer.history
    shown = ("max_weight", "energy_data", "energy_negative", "delta", "energy_error")
    return {key: plain(getattr(history, key)) for key in shown} | {
        "rollbacks": history.setbacks,
        "stopped": stopped,
        "seconds": spent(trainer.folder),
    }


def main() -> None:
    """The command, without any library that a GPU machine may lack."""
    given = sized_parser("CIFAR-10 with Jarzynski's weights.").parse_args()
    size = sized(given, Size(), SMALL)
    told = run_weighted(given.data, given.work, size=size, **session(given))
    tell_end(told is not None)


if __name__ == "__main__":
    main()
