"""A ruler for images: distances on the features of a classifier, with their floor and ceiling."""

import dataclasses
import json
import pathlib
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from schuss.ebm.classifier import (
    FeatureClassifier,
    accuracy,
    features,
    load_classifier,
    save_classifier,
    train_classifier,
)
from schuss.ebm.data import Images, scaled
from schuss.ebm.frechet import frechet
from schuss.ebm.recipes import Classifier

NOISE = 0.1


@dataclasses.dataclass(frozen=True)
class Ruler:
    """Measures sets of images against the test images; `marks` say what its numbers mean."""

    classifier: FeatureClassifier
    test: Tensor  # features of all test images
    marks: dict[str, Any]
    beside: "Ruler | None" = None  # of another classifier

    def __call__(self, x: Tensor) -> float:
        """The Fréchet distance of images in [−1, 1] to as many test images."""
        if len(x) > len(self.test):
            raise ValueError(
                f"x has {len(x)} images but there are {len(self.test)} to compare with; pass fewer"
            )
        return frechet(features(self.classifier, x), self.test[: len(x)])


def make_ruler(
    images: Images,
    folder: pathlib.Path,
    how: Classifier,
    *,
    sizes: tuple[int, ...],
    flip: bool = False,
    device: Any = "cpu",
    advance: Callable[[str], None] = lambda done: None,
) -> Ruler:
    """Train the classifier, or load it from the folder, and mark the ruler at these sample sizes.

    The marks of a size: "floor" training against test images, "noisy" training images with noise
    of sd .1, "one class", and "ceiling" uniform noise.
    """
    folder.mkdir(parents=True, exist_ok=True)
    weights, notes = folder / "classifier.safetensors", folder / "ruler.json"
    if weights.exists() and notes.exists():
        net, marks = load_classifier(weights, device), json.loads(notes.read_text())
        return Ruler(net, features(net, scaled(images.test)), marks)
    net = train_classifier(images, how, flip=flip, device=device, advance=advance)
    test = features(net, scaled(images.test))
    ruler = Ruler(net, test, {})
    generator = torch.Generator().manual_seed(0)
    marks: dict[str, Any] = {
        "features": test.shape[1],
        "accuracy": accuracy(net, images.test, images.test_labels),
        "distances": {},
    }
    for size in sizes:
        real = scaled(images.train[:size])
        one = scaled(images.train[images.train_labels == 0][:size])
        repeated = one[torch.arange(size) % len(one)]
        noise = 2 * torch.rand(real.shape, generator=generator) - 1
        noisy = real + NOISE * torch.randn(real.shape, generator=generator)
        shown = {"floor": real, "noisy": noisy, "one class": repeated, "ceiling": noise}
        marks["distances"][str(size)] = {name: ruler(x) for name, x in shown.items()}
    save_classifier(net, weights, marks)
    notes.write_text(json.dumps(marks, indent=1) + "\n")
    return dataclasses.replace(ruler, marks=marks)
