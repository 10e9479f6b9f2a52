"""Samples from noise of a net that a recipe trained, measured by the recipe's ruler."""

import time
from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from schuss.ebm.data import Images, as_bytes, clipped, scaled
from schuss.ebm.from_noise import sample_from_noise
from schuss.ebm.recipes import Recipe
from schuss.ebm.ruler import Ruler
from schuss.ebm.starts import colours

SHOWN = 100  # images in a picture
STRIP = 6  # chains whose way from noise is shown


class FromNoise(NamedTuple):
    """Samples from noise, as they are measured and shown."""

    distance: float
    beside: float | None  # by the other ruler, if there is one
    seconds: float
    sd: float  # of the pixels
    shown: np.ndarray
    path: np.ndarray  # of some chains, at ten times or so


def measured_from_noise(
    recipe: Recipe,
    images: Images,
    ruler: Ruler,
    sampler: str,
    seed: int,
    net: nn.Module,
    *,
    compile: bool | None = None,
) -> FromNoise:
    """As many chains, with as many gradients, as the recipe says. `compile=None`: on a GPU."""
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
        colours=colours(scaled(images.train)) if recipe.start == "colour" else None,
    )
    times = torch.stack(path[:: max(1, len(path) // 10)]).flatten(0, 1)
    inside = clipped(samples)
    distance, seconds = ruler(inside), time.monotonic() - begun
    beside = ruler.beside and ruler.beside(inside)
    shown = as_bytes(samples[:SHOWN])
    return FromNoise(distance, beside, seconds, float(samples.std()), shown, as_bytes(times))
