"""Recipes for images: what is fixed for a data set, and the two samplers compared on it."""

import dataclasses
from collections.abc import Sequence

from schuss.algorithms import ESH, ULA, Algorithm


@dataclasses.dataclass(frozen=True)
class Classifier:
    """How the classifier of a ruler is trained."""

    width: int = 64
    epochs: int = 15
    batch: int = 512
    rate: float = 0.2
    smoothing: float = 0.1
    decay: float = 5e-4


@dataclasses.dataclass(frozen=True)
class Recipe:
    """Persistent contrastive divergence on one data set, and the rulers for its samples.

    What a distance means depends on the classifier: `beside` is another one, whose distances are
    taken at the end of a run.
    """

    data: str
    features: int
    samplers: dict[str, Algorithm]
    energy_scale: float
    iterations: int
    batch: int = 250
    steps: int = 50
    buffer: int = 10_000
    start: str = "colour"
    reinit: float = 0.02
    rate: float = 2e-4
    data_noise: float = 0.03
    flip: bool = False
    ema: float = 0.999
    looks: int = 4  # measurements of the buffer in the course of a run
    measured: int = 10_000  # chains of the buffer that are measured
    noise_chains: int = 2000
    noise_gradients: int = 2000
    ensemble: int = 0  # last looks whose average weights are also sampled together at the end
    most: int | None = None  # images of each part that are used, None for all
    classifier: Classifier = Classifier()
    beside: Classifier | None = None


DIGITS = Recipe(
    data="digits",
    features=16,
    samplers={"ESH": ESH(step_size=0.2, box=(-1.1, 1.1)), "ULA": ULA(step_size=0.045)},
    energy_scale=1000.0,
    iterations=800,
    batch=64,
    steps=30,
    buffer=1000,
    start="uniform",
    rate=5e-4,
    data_noise=0.05,
    ema=0.99,
    measured=297,
    noise_chains=297,
    noise_gradients=600,
    classifier=Classifier(width=8, batch=64),
)
"""8×8 digits on two cores, both samplers in five minutes."""

MNIST = Recipe(
    data="mnist",
    features=64,
    samplers={"ESH": ESH(step_size=0.3), "ULA": ULA(step_size=0.0224)},
    energy_scale=1000.0,
    iterations=600,
    start="uniform",
    noise_chains=1000,
    noise_gradients=1000,
    classifier=Classifier(width=32, epochs=5),
)
"""ULA's step is the best of √(2/scale) = 0.0447, at which its gradient step is one, its half and
its double: at the paper's 0.01 the gradient step would be a twentieth."""

CIFAR = Recipe(
    data="cifar",
    features=128,
    samplers={"ESH": ESH(step_size=0.5), "ULA": ULA(step_size=0.01)},
    energy_scale=2e4,
    iterations=2000,
    flip=True,
    noise_chains=5000,
    classifier=Classifier(epochs=8, smoothing=0.0, decay=0.0),
    beside=Classifier(),
)
"""The paper's network; chains that start as noise around a colour, a buffer renewed by 2 % a draw,
mirrored images, a rate that falls in the second half, and averaged weights for sampling."""

RECIPES = {recipe.data: recipe for recipe in (DIGITS, MNIST, CIFAR)}


def longer(recipe: Recipe) -> Recipe:
    """Ten times as long, with more looks, the last three of which make an ensemble."""
    return dataclasses.replace(recipe, iterations=10 * recipe.iterations, looks=10, ensemble=3)


def smaller(recipe: Recipe) -> Recipe:
    """A smoke run of the same: a minute on a CPU, and no picture worth looking at."""
    small = Classifier(width=4, epochs=1, batch=256)
    return dataclasses.replace(
        recipe,
        features=8,
        iterations=40,
        batch=32,
        steps=10,
        buffer=200,
        looks=2,
        measured=100,
        noise_chains=64,
        noise_gradients=20,
        most=1000,
        classifier=small,
        beside=recipe.beside and small,
    )


def changed(recipe: Recipe, changes: Sequence[str]) -> Recipe:
    """The recipe with some of its numbers replaced, given as "rate=1e-3"; "ESH=0.2" is a step."""
    for change in changes:
        name, _, value = change.partition("=")
        try:
            number = float(value)
        except ValueError:
            raise ValueError(f"set must be name=number, got {change!r}; e.g. rate=1e-3") from None
        if name in recipe.samplers:
            sampler = dataclasses.replace(recipe.samplers[name], step_size=number)  # pyright: ignore
            recipe = dataclasses.replace(recipe, samplers=recipe.samplers | {name: sampler})
        elif isinstance(getattr(recipe, name, None), int | float):
            kind = type(getattr(recipe, name))
            recipe = dataclasses.replace(recipe, **{name: kind(number)})
        else:
            known = [f.name for f in dataclasses.fields(recipe) if f.type in (int, float)]
            raise ValueError(
                f"set must name one of {', '.join((*recipe.samplers, *known))}, got {name!r}"
            )
    return recipe
