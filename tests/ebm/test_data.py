"""Data sets from files: what is in them comes out, and what could execute code is refused."""

import io

import numpy as np
import pytest
import torch
from PIL import Image

from schuss.ebm import data

RNG = np.random.default_rng(0)


def jpeg(pixels):
    held = io.BytesIO()
    Image.fromarray(pixels).save(held, "jpeg")
    return held.getvalue()


def test_digits_are_those_of_scikit_learn():
    from sklearn.datasets import load_digits

    raw, found = load_digits(), data.digits()
    assert found.shape == (1, 8, 8) and len(found.test) == data.DIGITS_TEST
    pixels = np.concatenate([found.train, found.test])[:, 0]
    assert sorted(pixels.sum((1, 2))) == sorted(np.round(raw.images * 255 / 16).sum((1, 2)))
    x = data.scaled(found.train)
    assert (float(x.min()), float(x.max())) == (-1.0, 1.0)


def test_digits_from_a_file_are_the_same(tmp_path):
    from sklearn.datasets import load_digits

    raw = load_digits()
    np.savez(tmp_path / "digits.npz", images=raw.images, target=raw.target)
    ours, theirs = data.digits(tmp_path), data.digits()
    assert np.array_equal(ours.train, theirs.train)
    assert np.array_equal(ours.test_labels, theirs.test_labels)


def test_cifar_from_jpegs(tmp_path):
    """Each image is found again with its label, decoded as Pillow decodes it."""
    for name, count in zip(data.CIFAR_FILES, (5, 3), strict=True):
        images = [jpeg(RNG.integers(0, 256, (32, 32, 3), dtype=np.uint8)) for _ in range(count)]
        offsets = np.cumsum([0, *map(len, images)])
        blob = np.frombuffer(b"".join(images), np.uint8)
        np.savez(tmp_path / name, blob=blob, offsets=offsets, labels=np.arange(count))
    found = data.cifar10(tmp_path)
    assert found.train.shape == (5, 3, 32, 32) and found.test.shape == (3, 3, 32, 32)
    for image, label in zip(found.test, found.test_labels, strict=True):
        right = np.asarray(Image.open(io.BytesIO(images[label])))
        assert np.array_equal(image, right.transpose(2, 0, 1))


def test_plain_files(tmp_path):
    pixels = RNG.integers(0, 256, (4, 32, 32, 3), dtype=np.uint8)
    labels = np.arange(4)
    np.savez(tmp_path / "c.npz", train_x=pixels, train_y=labels, test_x=pixels, test_y=labels)
    found = data.cifar10(tmp_path / "c.npz")
    assert np.array_equal(found.train, pixels[found.train_labels].transpose(0, 3, 1, 2))
    small = pixels[:, :28, :28, 0]
    np.savez(tmp_path / "mnist.npz", train_x=small, train_y=labels, test_x=small, test_y=labels)
    found = data.mnist(tmp_path)
    assert found.shape == (1, 32, 32)
    assert np.array_equal(found.train[:, 0, 2:30, 2:30], small[found.train_labels])
    with pytest.raises(ValueError, match=r"bytes\s+of shape \(n, 28, 28\)"):
        data.mnist(tmp_path / "c.npz")


def test_what_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"the folder that holds mnist\.npz"):
        data.mnist(tmp_path)
    np.savez(tmp_path / "mnist.npz", train_x=np.zeros(3))
    with pytest.raises(ValueError, match="lacks train_y, test_x, test_y"):
        data.mnist(tmp_path)
    pickled = np.asarray([{"a": 1}], dtype=object)
    np.savez(tmp_path / "p.npz", train_x=pickled, train_y=0, test_x=0, test_y=0)
    with pytest.raises(ValueError, match="isn't an npz of plain arrays"):
        data.mnist(tmp_path / "p.npz")
    with pytest.raises(ValueError, match="offsets that don't divide its blob"):
        data.decoded(np.zeros(4, np.uint8), np.asarray([0, 2]))


def test_bytes_come_back_from_floats():
    """Every byte, exactly; what lies outside of [−1, 1] is clipped."""
    pixels = np.arange(256, dtype=np.uint8).reshape(1, 1, 16, 16)
    np.testing.assert_array_equal(data.as_bytes(data.scaled(pixels)), pixels)
    np.testing.assert_array_equal(data.as_bytes(torch.tensor([-3.0, 3.0])), [0, 255])
