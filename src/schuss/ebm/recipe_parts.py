"""What a recipe asks for: its images, the ruler that measures them, and a trainer."""

import dataclasses
import pathlib
from collections.abc import Callable
from typing import Any

from schuss.ebm import data
from schuss.ebm.buffer import ReplayBuffer
from schuss.ebm.data import Images, scaled
from schuss.ebm.machine import inner_precision
from schuss.ebm.networks import ConvEnergy
from schuss.ebm.randomness import seeded
from schuss.ebm.recipes import Classifier, Recipe
from schuss.ebm.ruler import Ruler, make_ruler
from schuss.ebm.trainer import Trainer

LOADERS: dict[str, Callable[..., Images]] = {"mnist": data.mnist, "cifar": data.cifar10}


def load_images(recipe: Recipe, path: pathlib.Path | None) -> Images:
    """The data of a recipe; only the digits need no path."""
    if recipe.data == "digits":
        found = data.digits(path)
    else:
        found = data.from_path(LOADERS[recipe.data], path, recipe.data)
    return found._replace(**{key: getattr(found, key)[: recipe.most] for key in found._fields[1:]})


def ruler_of(recipe: Recipe, images: Images, folder: pathlib.Path, device, advance) -> Ruler:
    """The ruler of a recipe, made once in the folder, and the one beside it."""
    most = len(images.test)
    sizes = {min(recipe.measured, most), min(recipe.noise_chains, most)}

    def made(classifier: Classifier, place: pathlib.Path) -> Ruler:
        return make_ruler(
            images,
            place,
            classifier,
            sizes=tuple(sorted(sizes)),
            flip=recipe.flip,
            device=device,
            advance=advance,
        )

    ruler = made(recipe.classifier, folder)
    if recipe.beside is None:
        return ruler
    return dataclasses.replace(ruler, beside=made(recipe.beside, folder / "beside"))


def trainer_of(
    recipe: Recipe, images: Images, sampler: str, seed: int, device, **options: Any
) -> Trainer:
    """A trainer as the recipe has it."""
    channels, size, _ = images.shape
    with seeded(seed):
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
        precision=inner_precision(device),
        seed=seed,
        page=False,
        **options,
    )
