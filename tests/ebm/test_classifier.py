"""The classifier behind the distances: its augmentation, its file, and that it learns."""

import numpy as np
import pytest
import torch

from schuss.ebm.classifier import (
    FeatureClassifier,
    accuracy,
    features,
    load_classifier,
    save_classifier,
    shifted,
    train_classifier,
)
from schuss.ebm.data import scaled
from schuss.ebm.recipes import Classifier
from schuss.ebm.ruler import make_ruler

from .images import stripes


def test_shifts_are_crops_of_the_padded_image():
    """By brute force: each result is one of the nine crops, or its mirror image."""
    x = torch.arange(40 * 2 * 4 * 4.0).reshape(40, 2, 4, 4)
    moved = shifted(x, 1, True, torch.Generator().manual_seed(0))
    padded = np.pad(x.numpy(), ((0, 0), (0, 0), (1, 1), (1, 1)), mode="edge")
    seen = set()
    for before, after in zip(padded, moved.numpy(), strict=True):
        crops = {
            (i, j, turn): before[:, i : i + 4, j : j + 4][..., ::turn]
            for i in range(3)
            for j in range(3)
            for turn in (1, -1)
        }
        found = [key for key, crop in crops.items() if np.array_equal(crop, after)]
        assert len(found) == 1
        seen.update(found)
    assert {turn for *_, turn in seen} == {1, -1}
    assert len({(i, j) for i, j, _ in seen}) == 9


def test_a_file_gives_the_same_features(tmp_path):
    """To the last bit, as training ends with weights that its 16 bits can hold."""
    net = train_classifier(stripes(), Classifier(width=2, epochs=1, batch=20))
    assert isinstance(net, FeatureClassifier)
    x = torch.rand(5, 3, 8, 8) * 2 - 1
    save_classifier(net, tmp_path / "c.safetensors", {"accuracy": 0.5})
    again = load_classifier(tmp_path / "c.safetensors")
    torch.testing.assert_close(features(net, x), features(again, x), rtol=0, atol=0)
    assert features(again, x).shape == (5, 16)


def test_it_learns_stripes_and_a_ruler_tells_noise_from_data(tmp_path):
    """Chance is .1; noise must be at least ten times as far as other images of the kind."""
    images = stripes(400, channels=1)
    how = Classifier(width=4, epochs=8, batch=50, rate=0.1)
    net = train_classifier(images, how)
    assert accuracy(net, images.test, images.test_labels) > 0.5
    ruler = make_ruler(images, tmp_path, how, sizes=(200,))
    marks = ruler.marks["distances"]["200"]
    assert marks["floor"] < 0.1 * marks["ceiling"]
    assert marks["floor"] < marks["one class"]
    again = make_ruler(images, tmp_path, how, sizes=(200,))
    x = scaled(images.train[:100])
    assert again.marks == ruler.marks and again(x) == pytest.approx(ruler(x))
    with pytest.raises(ValueError, match="pass fewer"):
        ruler(scaled(np.concatenate([images.train, images.test])))
