"""One run of a recipe: trained look by look, sampled from noise, and kept in a folder."""

import dataclasses
import functools
import math
import pathlib
import shutil
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from schuss.ebm import checkpoint
from schuss.ebm.continued import fit_until
from schuss.ebm.data import Images, as_bytes, clipped, scaled
from schuss.ebm.ensemble import keep_member, kept_ensemble
from schuss.ebm.machine import machine
from schuss.ebm.recipe_parts import trainer_of
from schuss.ebm.recipe_samples import SHOWN, FromNoise, measured_from_noise
from schuss.ebm.recipes import Recipe
from schuss.ebm.results import plain, read, stride, there_already, write
from schuss.ebm.ruler import Ruler
from schuss.ebm.trainer import Trainer

NOTES = "run.json"


def run_recipe(
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
    made = there_already(kept, advance, name)
    if made is not None:
        return made
    folder.mkdir(parents=True, exist_ok=True)
    device = torch.device(device)
    trainer = trainer_of(
        recipe, images, sampler, seed, device, folder=place, compile=compile, progress=progress
    )
    notes = _resumed(trainer, place)
    if progress:
        print(f"{name}: from iteration {trainer.iteration} to {recipe.iterations}", flush=True)
    measured = min(recipe.measured, len(images.test), recipe.buffer)

    def tell(done: str) -> None:
        advance(f"{name}: {done}")

    def measure(ruler: Ruler = ruler) -> float:
        return ruler(clipped(_chains(trainer)[:measured]))

    notes = _trained(recipe, trainer, place, notes, measure, until, tell)
    if notes is None:
        return None
    seconds = notes.seconds
    if time.monotonic() > until:
        tell("trained, to be sampled from noise")
        return None
    sample = functools.partial(
        measured_from_noise, recipe, images, ruler, sampler, seed, compile=compile
    )
    single = sample(trainer.averaged)
    pictures: dict[str, Any] = {"noise": single.shown, "path": single.path}
    pictures |= {"buffer": as_bytes(_chains(trainer)[:SHOWN]), "data": images.train[:SHOWN]}
    result = _told(recipe, images, trainer, sampler, seed, single)
    result |= {"name": name, "curve": notes.curve, "distance": notes.curve[-1]["distance"]}
    result |= {"seconds": seconds, "image_gradients_per_second": notes.speed}
    result["marks"] = ruler.marks
    if ruler.beside is not None:
        result["beside"] = {
            "marks": ruler.beside.marks,
            "distance": measure(ruler.beside),
            "distance_from_noise": single.beside,
        }
    if recipe.ensemble:
        tell(f"the net alone {single.distance:.2f}, now an ensemble")
        net = kept_ensemble(trainer.averaged, place)
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
    tell(f"{seconds:.0f} s, from noise {result['distance_from_noise']:.2f}")
    shutil.rmtree(place, ignore_errors=True)
    return result


@dataclasses.dataclass(frozen=True)
class Notes:
    """What the checkpoint itself doesn't know: the looks so far, and the time they took."""

    curve: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    before: float = 0.0  # seconds of earlier calls
    speed: float = 0.0  # image-gradients a second, as last seen
    begun: float = dataclasses.field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        """Of all calls together."""
        return self.before + time.monotonic() - self.begun

    def after(self, gradients: int, distance: float, speed: float) -> "Notes":
        """With one more look."""
        point = {"gradients": gradients, "distance": distance}
        return dataclasses.replace(self, curve=[*self.curve, point], speed=speed)

    def keep(self, folder: pathlib.Path) -> None:
        """Beside the checkpoint."""
        folder.mkdir(parents=True, exist_ok=True)
        told = {"curve": self.curve, "seconds": self.seconds, "speed": self.speed}
        write(folder / NOTES, told)


def _resumed(trainer: Trainer, folder: pathlib.Path) -> Notes:
    """Go on from the checkpoint, if there is one, and from the notes beside it."""
    if not checkpoint.exists(folder):
        return Notes()
    trainer.resume()
    told = read(folder / NOTES)
    if told is None:
        return Notes()
    known = [p for p in told["curve"] if p["gradients"] <= trainer.history.gradients]
    return Notes(known, told["seconds"], told["speed"])


def _trained(
    recipe: Recipe,
    trainer: Trainer,
    place: pathlib.Path,
    notes: Notes,
    measure: Callable[[], float],
    until: float,
    tell: Callable[[str], None],
) -> Notes | None:
    """To the end, with the recipe's looks at the buffer on the way; None where time is up."""
    for look in range(1, recipe.looks + 1):
        if not fit_until(trainer, recipe.iterations * look // recipe.looks, until):
            notes.keep(place)
            tell(f"stopped at iteration {trainer.iteration}")
            return None
        gradients, seen = trainer.iteration * recipe.steps, notes.curve
        # A look that a killed run had is not taken again.
        if look <= len(seen) or (seen and gradients <= seen[-1]["gradients"]):
            continue
        distance = measure()
        keep_member(trainer.averaged, place, look, recipe.ensemble)
        history, speed = trainer.history, notes.speed
        if math.isfinite(history.images_per_second):  # unknown where nothing was trained now
            speed = history.images_per_second * recipe.steps
        notes = notes.after(gradients, distance, speed)
        notes.keep(place)
        tell(
            f"{gradients} gradients, distance {distance:.2f}, "
            f"{speed / 1e3:.0f}k image-gradients/s, "
            f"delta {history.delta[-1]:.3f}, {len(history.rollbacks)} rollbacks"
        )
    return notes


def _told(recipe, images, trainer, sampler, seed, single: FromNoise) -> dict[str, Any]:
    """How training went, and the samples from noise."""
    history = trainer.history
    every = stride(len(history))
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
        "rollbacks": history.setbacks,
        "frozen": float(history.frozen.max()),
        "every": every,
        "history": {key: plain(getattr(history, key)[::every]) for key in shown},
    }


def _chains(trainer: Trainer) -> torch.Tensor:
    """All chains of the buffer."""
    assert trainer.buffer is not None
    return trainer.buffer.x
