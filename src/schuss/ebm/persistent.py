"""Persistent contrastive divergence on images, run by run, each measured and kept in a folder.

    python -m schuss.ebm.persistent cifar --data PATH --work FOLDER --seeds 3 --minutes 9

trains every sampler of the recipe with every seed, one after the other, and writes for each run
`NAME.json` and `NAME.npz` (pictures). What is in the folder is not done again, and a run that was
cut short goes on from its checkpoint: the same command may be given until everything is there.
With `--long` it is one longer run, `ESH-long`, whose last weights are sampled as an ensemble too.
"""

import argparse
import copy
import functools
import json
import math
import os
import pathlib
import shutil
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from schuss.ebm import checkpoint, data
from schuss.ebm.buffer import ReplayBuffer
from schuss.ebm.data import Images, scaled
from schuss.ebm.ensemble import Ensemble
from schuss.ebm.from_noise import sample_from_noise
from schuss.ebm.machine import machine
from schuss.ebm.networks import ConvEnergy
from schuss.ebm.recipes import RECIPES, Recipe, changed, longer, smaller
from schuss.ebm.ruler import Ruler, make_ruler
from schuss.ebm.run_command import FINISHED, UNFINISHED, timed
from schuss.ebm.trainer import Trainer

SHOWN = 100  # images in a picture
STRIP = 6  # chains whose way from noise is shown
THIN = 200  # points of a curve that are kept
LOADERS: dict[str, Callable[..., Images]] = {"mnist": data.mnist, "cifar": data.cifar10}


def load_images(recipe: Recipe, path: pathlib.Path | None) -> Images:
    """The data of a recipe; only the digits need no path."""
    if recipe.data == "digits":
        found = data.digits(path)
    elif path is None:
        raise ValueError(f"data must be given for {recipe.data}; pass --data PATH")
    else:
        found = LOADERS[recipe.data](path)
    return found._replace(**{key: getattr(found, key)[: recipe.most] for key in found._fields[1:]})


def ruler_of(recipe: Recipe, images: Images, folder: pathlib.Path, device, advance) -> Ruler:
    """The ruler of a recipe, made once in the folder."""
    most = len(images.test)
    sizes = {min(recipe.measured, most), min(recipe.noise_chains, most)}
    return make_ruler(
        images,
        folder,
        sizes=tuple(sorted(sizes)),
        device=device,
        advance=advance,
        width=recipe.classifier_width,
        epochs=recipe.classifier_epochs,
        batch=recipe.classifier_batch,
        rate=recipe.classifier_rate,
        flip=recipe.flip,
    )


def trainer_of(
    recipe: Recipe, images: Images, sampler: str, seed: int, device, **options: Any
) -> Trainer:
    """A trainer as the recipe has it."""
    channels, size, _ = images.shape
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = ConvEnergy(recipe.features, channels, size).to(device)
    buffer = ReplayBuffer(
        recipe.buffer,
        images.shape,
        start=recipe.start,
        reinit=recipe.reinit,
        seed=seed,
        device=device,
    )
    return Trainer(
        net,
        scaled(images.train, device),
        sampler=recipe.samplers[sampler],
        steps=recipe.steps,
        keep="reservoir",
        buffer=buffer,
        batch=recipe.batch,
        lr=recipe.rate,
        lr_schedule="tail",
        iterations=recipe.iterations,
        data_noise=recipe.data_noise,
        flip=recipe.flip,
        energy_scale=recipe.energy_scale,
        ema=recipe.ema,
        precision="bf16" if torch.device(device).type == "cuda" else None,
        seed=seed,
        **options,
    )


def run(
    recipe: Recipe,
    images: Images,
    ruler: Ruler,
    sampler: str,
    seed: int,
    folder: pathlib.Path,
    *,
    name: str | None = None,
    device: Any = "cpu",
    compile: bool | None = None,
    until: float = math.inf,
    progress: bool = False,
    advance: Callable[[str], None] = lambda done: None,
) -> dict[str, Any] | None:
    """Train, measure and keep one run; what was kept before is only read.

    None where `until` (on the clock of time.monotonic) came first: the checkpoint stays.
    """
    name = name or f"{sampler}-{seed}"
    kept, place = folder / f"{name}.json", folder / f"{name}.checkpoint"
    if kept.exists():
        advance(f"{name}: there already")
        return json.loads(kept.read_text())
    folder.mkdir(parents=True, exist_ok=True)
    device = torch.device(device)
    options: dict[str, Any] = {"folder": place, "compile": compile, "progress": progress}
    trainer = trainer_of(recipe, images, sampler, seed, device, **options)
    curve, spent, speed = _resumed(trainer, place)
    if progress:
        print(f"{name}: from iteration {trainer.iteration} to {recipe.iterations}", flush=True)
    measured = min(recipe.measured, len(images.test), recipe.buffer)
    begun = time.monotonic()
    for look in range(1, recipe.looks + 1):
        goal = recipe.iterations * look // recipe.looks
        while trainer.iteration < goal:
            left = (until - time.monotonic()) / 60
            if left > 0:
                trainer.fit(goal - trainer.iteration, None if math.isinf(left) else left)
            if time.monotonic() > until:
                _note(place, curve, spent + time.monotonic() - begun, speed)
                advance(f"{name}: stopped at iteration {trainer.iteration}")
                return None
        gradients = trainer.iteration * recipe.steps
        # A look that a killed run had is not taken again.
        if look > len(curve) and (not curve or gradients > curve[-1]["gradients"]):
            distance = ruler(_inside(_chains(trainer)[:measured]))
            curve.append({"gradients": gradients, "distance": distance})
            _keep_weights(trainer, place, look, recipe.ensemble)
            history = trainer.history
            if math.isfinite(history.images_per_second):  # unknown where nothing was trained now
                speed = history.images_per_second * recipe.steps
            _note(place, curve, spent + time.monotonic() - begun, speed)
            advance(
                f"{name}: {gradients} gradients, distance {distance:.2f}, "
                f"{speed / 1e3:.0f}k image-gradients/s, "
                f"delta {history.delta[-1]:.3f}, {len(history.rollbacks)} rollbacks"
            )
    seconds = spent + time.monotonic() - begun
    if time.monotonic() > until:
        advance(f"{name}: trained, to be sampled from noise")
        return None
    sample = functools.partial(_from_noise, recipe, images, ruler, sampler, seed, compile)
    single = sample(trainer.averaged)
    pictures: dict[str, Any] = {"noise": single.shown, "path": single.path}
    pictures |= {"buffer": as_bytes(_chains(trainer)[:SHOWN]), "data": images.train[:SHOWN]}
    result = _told(recipe, images, trainer, sampler, seed, single)
    result |= {"name": name, "curve": curve, "distance": curve[-1]["distance"], "seconds": seconds}
    result |= {"image_gradients_per_second": speed, "marks": ruler.marks}
    if recipe.ensemble:
        advance(f"{name}: the net alone {single.distance:.2f}, now an ensemble")
        net = _ensemble(trainer, place)
        together = sample(net)
        result["ensemble"] = {
            "members": len(net.members),
            "distance_from_noise": together.distance,
            "seconds_from_noise": together.seconds,
            "pixel_sd": together.sd,
        }
        pictures["ensemble"] = together.shown
    result["machine"] = machine(device)
    np.savez_compressed(folder / f"{name}.npz", **pictures)
    write(kept, result)
    advance(f"{name}: {seconds:.0f} s, from noise {result['distance_from_noise']:.2f}")
    shutil.rmtree(place, ignore_errors=True)
    return result


class FromNoise(NamedTuple):
    """Samples from noise, as they are measured and shown."""

    distance: float
    seconds: float
    sd: float  # of the pixels
    shown: np.ndarray
    path: np.ndarray  # of some chains, at ten times or so


def _from_noise(recipe, images, ruler, sampler, seed, compile, net) -> FromNoise:
    begun, cuda = time.monotonic(), next(net.parameters()).is_cuda
    samples, path = sample_from_noise(
        net,
        min(recipe.noise_chains, len(images.test)),
        images.shape,
        sampler=recipe.samplers[sampler],
        gradients=recipe.noise_gradients,
        start=recipe.start,
        energy_scale=recipe.energy_scale,
        batch=recipe.batch,  # what was compiled for training serves again
        compile=cuda if compile is None else compile,
        gradient_dtype=torch.bfloat16 if cuda else None,
        seed=seed,
        trace=STRIP,
    )
    times = torch.stack(path[:: max(1, len(path) // 10)]).flatten(0, 1)
    distance, seconds = ruler(_inside(samples)), time.monotonic() - begun
    shown = as_bytes(samples[:SHOWN])
    return FromNoise(distance, seconds, float(samples.std()), shown, as_bytes(times))


def _told(recipe, images, trainer, sampler, seed, single: FromNoise) -> dict[str, Any]:
    """How training went, and the samples from noise."""
    history = trainer.history
    every = max(1, len(history) // THIN)
    shown = ("losses", "energy_data", "energy_negative", "energy_error", "delta", "grad_norm")
    return {
        "data": images.name,
        "sampler": sampler,
        "seed": seed,
        "gradients": trainer.iteration * recipe.steps,
        "distance_from_noise": single.distance,
        "gradients_from_noise": recipe.noise_gradients,
        "seconds_from_noise": single.seconds,
        "pixel_sd": {
            "data": float(scaled(images.train[:1000]).std()),
            "buffer": float(_chains(trainer).std()),
            "from noise": single.sd,
        },
        "rollbacks": [f"{r.iteration}: {r.cause}" for r in history.rollbacks],
        "frozen": float(history.frozen.max()),
        "every": every,
        "history": {key: plain(getattr(history, key)[::every]) for key in shown},
    }


def _keep_weights(trainer: Trainer, folder: pathlib.Path, look: int, most: int) -> None:
    """The average weights of the last looks, to be sampled together."""
    if most:
        folder.mkdir(parents=True, exist_ok=True)
        checkpoint.write(folder / f"look-{look:04d}.safetensors", trainer.averaged.state_dict())
        for old in sorted(folder.glob("look-*.safetensors"))[:-most]:
            old.unlink()


def _ensemble(trainer: Trainer, folder: pathlib.Path) -> Ensemble:
    files = sorted(folder.glob("look-*.safetensors"))
    return Ensemble(
        [checkpoint.load_weights(copy.deepcopy(trainer.averaged), file) for file in files]
    )


def _chains(trainer: Trainer) -> torch.Tensor:
    """All chains of the buffer."""
    assert trainer.buffer is not None
    return trainer.buffer.x


def _inside(x: torch.Tensor) -> torch.Tensor:
    """Images as they would be shown: clipped to [−1, 1]."""
    return x.float().clamp(-1, 1)


def as_bytes(x: torch.Tensor) -> np.ndarray:
    """Images in [−1, 1] as bytes, for a picture."""
    return ((_inside(x) + 1) * 127.5).round().to(torch.uint8).contiguous().cpu().numpy()


def plain(values: np.ndarray) -> list[float | None]:
    """Numbers to four digits for JSON; None for what isn't finite."""
    return [float(f"{v:.4g}") if math.isfinite(v) else None for v in values.tolist()]


def _resumed(trainer: Trainer, folder: pathlib.Path) -> tuple[list[dict[str, Any]], float, float]:
    """Go on from the checkpoint, if there is one: the curve so far, seconds and speed."""
    if not checkpoint.exists(folder):
        return [], 0.0, 0.0
    trainer.resume()
    try:
        told = json.loads((folder / "run.json").read_text())
    except FileNotFoundError:
        return [], 0.0, 0.0
    known = [p for p in told["curve"] if p["gradients"] <= trainer.history.gradients]
    return known, told["seconds"], told["speed"]


def _note(folder: pathlib.Path, curve: list[dict[str, Any]], seconds: float, speed: float) -> None:
    """What the checkpoint itself doesn't know."""
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / "run.json", {"curve": curve, "seconds": seconds, "speed": speed})


def write(path: pathlib.Path, told: dict[str, Any]) -> None:
    """Written whole or not at all."""
    beside = path.with_suffix(".part")
    beside.write_text(json.dumps(told, indent=1, allow_nan=False) + "\n")
    os.replace(beside, path)


def run_all(
    recipe: Recipe,
    path: pathlib.Path | None,
    work: pathlib.Path,
    *,
    samplers: Sequence[str] | None = None,
    seeds: Sequence[int] = (0, 1, 2),
    label: str | None = None,
    device: Any = None,
    compile: bool | None = None,
    minutes: float = math.inf,
    progress: bool = False,
    advance: Callable[[str], None] = lambda done: None,
) -> dict[str, Any]:
    """All runs of a recipe: their results, the ruler's marks, and whether all are there.

    A run is named after its sampler and its seed, or its `label`.

    Where the folder has all of them already, neither data nor a network is needed.
    """
    until = time.monotonic() + 60 * minutes
    wanted = {
        f"{sampler}-{label or seed}": (sampler, seed)
        for seed in seeds
        for sampler in (samplers or recipe.samplers)
    }
    work.mkdir(parents=True, exist_ok=True)
    files = [work / f"{name}.json" for name in wanted]
    if (work / "ruler.json").exists() and all(file.exists() for file in files):
        for file in files:
            advance(f"{file.stem}: there already")
        marks = json.loads((work / "ruler.json").read_text())
        runs = [json.loads(file.read_text()) for file in files]
        return {"marks": marks, "runs": runs, "finished": True}
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    images = load_images(recipe, path)
    ruler = ruler_of(recipe, images, work, device, advance)
    runs = []
    options: dict[str, Any] = {"device": device, "compile": compile, "until": until}
    options |= {"progress": progress, "advance": advance}
    for name, (sampler, seed) in wanted.items():
        made = run(recipe, images, ruler, sampler, seed, work, name=name, **options)
        if made is None:
            break
        runs.append(made)
    return {"marks": ruler.marks, "runs": runs, "finished": len(runs) == len(wanted)}


def main() -> None:
    """The command, without any library that a GPU machine may lack."""
    parser = argparse.ArgumentParser(description="Persistent contrastive divergence on images.")
    parser.add_argument("recipe", choices=tuple(RECIPES))
    parser.add_argument("--data", type=pathlib.Path)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--samplers", help="ESH,ULA unless given; ESH with --long")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, help="3 unless given; 1 with --long")
    parser.add_argument("--long", action="store_true", help="one longer run, and an ensemble")
    parser.add_argument("--minutes", type=float, default=math.inf)
    parser.add_argument(
        "--set", action="append", default=[], help="a number of the recipe, e.g. iterations=20000"
    )
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    recipe = smaller(RECIPES[given.recipe]) if given.quick else RECIPES[given.recipe]
    recipe = changed(longer(recipe) if given.long else recipe, given.set)
    samplers = given.samplers or ("ESH" if given.long else "ESH,ULA")
    result = run_all(
        recipe,
        given.data,
        given.work,
        samplers=samplers.split(","),
        seeds=range(given.seed, given.seed + (given.seeds or (1 if given.long else 3))),
        label="long" if given.long else None,
        minutes=given.minutes,
        progress=True,
        advance=timed(),
    )
    print(json.dumps(result["marks"]))
    for made in result["runs"]:
        keys = ("name", "gradients", "distance", "distance_from_noise", "seconds")
        print(json.dumps({key: made[key] for key in keys}))
    print(FINISHED if result["finished"] else UNFINISHED)


if __name__ == "__main__":
    main()
