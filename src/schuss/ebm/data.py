"""Images to train on: scikit-learn's digits, MNIST and CIFAR-10 from `.npz` files.

Nothing is downloaded, and nothing that can execute code (a pickle) is read. Pixels are bytes in
(n, channels, height, width); `scaled` takes them to [−1, 1].
"""

import itertools
import pathlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

CIFAR_FILES = ("cifar10_train_jpeg.npz", "cifar10_test_jpeg.npz")
DIGITS_TEST = 297


class Images(NamedTuple):
    """A data set in bytes, shuffled: the files may be in the order of their classes."""

    name: str
    train: np.ndarray  # (n, channels, height, width) uint8
    train_labels: np.ndarray  # (n,) int64
    test: np.ndarray
    test_labels: np.ndarray

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height and width."""
        _, channels, height, width = self.train.shape
        return channels, height, width


def scaled(pixels: np.ndarray, device: Any = None):
    """Bytes as a float32 tensor in [−1, 1]: x = p/127.5 − 1."""
    import torch

    return torch.as_tensor(pixels).to(device).float() / 127.5 - 1


def clipped(x):
    """A tensor of images as they would be shown: float32 in [−1, 1]."""
    return x.float().clamp(-1, 1)


def as_bytes(x) -> np.ndarray:
    """A tensor of images as bytes again: p = 127.5(x + 1), clipped and rounded."""
    import torch

    return ((clipped(x) + 1) * 127.5).round().to(torch.uint8).contiguous().cpu().numpy()


def from_path(load: Callable[..., Images], path: pathlib.Path | None, name: str) -> Images:
    """What `load` finds at the path that a command was given."""
    if path is None:
        raise ValueError(f"data must be given for {name}; pass --data PATH")
    return load(path)


def digits(path: str | pathlib.Path | None = None, seed: int = 0) -> Images:
    """The 1797 digits of scikit-learn, 8×8, the last 297 of a fixed shuffle for testing.

    Where scikit-learn isn't there, an npz with its `images` (1797, 8, 8) and `target` will do.
    """
    if path is None:
        try:
            from sklearn.datasets import load_digits
        except ImportError:
            raise ImportError(
                "the digits come with scikit-learn; install it, e.g. pip install scikit-learn, or "
                "pass --data with an npz of its images and target"
            ) from None
        raw = load_digits()
        images, labels = raw.images, raw.target
    else:
        held = _arrays(_found(path, "digits.npz"), ("images", "target"))
        images, labels = held["images"], held["target"]
    order = np.random.default_rng(seed).permutation(len(images))
    pixels = np.round(images[order] * (255 / 16)).astype(np.uint8)[:, None]
    labels = labels[order].astype(np.int64)
    cut = len(pixels) - DIGITS_TEST
    return Images("digits", pixels[:cut], labels[:cut], pixels[cut:], labels[cut:])


def mnist(path: str | pathlib.Path, seed: int = 0) -> Images:
    """MNIST from an npz with train_x (n, 28, 28), train_y, test_x and test_y, padded to 32×32."""
    held = _arrays(_found(path, "mnist.npz"))
    parts = []
    for part in ("train", "test"):
        x, y = held[f"{part}_x"], held[f"{part}_y"]
        if x.ndim != 3 or x.shape[1:] != (28, 28) or x.dtype != np.uint8:
            raise ValueError(
                f"data has {part}_x of shape {x.shape} and dtype {x.dtype}; pass MNIST as bytes "
                "of shape (n, 28, 28)"
            )
        parts += _shuffled(np.pad(x, ((0, 0), (2, 2), (2, 2)))[:, None], y, seed)
    return Images("MNIST", *parts)


def cifar10(path: str | pathlib.Path, seed: int = 0) -> Images:
    """CIFAR-10 from a folder or file.

    Either one npz with train_x (n, 32, 32, 3), train_y, test_x and test_y in bytes, or the two
    files `cifar10_train_jpeg.npz` and `cifar10_test_jpeg.npz` with `blob` (JPEGs end to end),
    `offsets` (n + 1) and `labels`.
    """
    path, parts = pathlib.Path(path), []
    if path.is_dir() and (path / CIFAR_FILES[0]).exists():
        for name in CIFAR_FILES:
            held = _arrays(_found(path, name), ("blob", "offsets", "labels"))
            pixels = decoded(held["blob"], held["offsets"])
            parts += _shuffled(pixels.transpose(0, 3, 1, 2), held["labels"], seed)
        return Images("CIFAR-10", *parts)
    held = _arrays(_found(path, "cifar10.npz"))
    for part in ("train", "test"):
        x = held[f"{part}_x"]
        if x.ndim != 4 or x.shape[1:] != (32, 32, 3) or x.dtype != np.uint8:
            raise ValueError(
                f"data has {part}_x of shape {x.shape} and dtype {x.dtype}; pass CIFAR-10 as "
                "bytes of shape (n, 32, 32, 3)"
            )
        parts += _shuffled(x.transpose(0, 3, 1, 2), held[f"{part}_y"], seed)
    return Images("CIFAR-10", *parts)


def decoded(blob: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """JPEGs laid end to end as bytes (n, height, width, channels), by Pillow or torchvision."""
    decode, raw = _decoder(), np.asarray(blob, np.uint8).tobytes()
    ends = [int(offset) for offset in offsets]
    if ends[0] != 0 or ends[-1] != len(raw) or sorted(ends) != ends:
        raise ValueError(
            "data has offsets that don't divide its blob; they must rise from 0 to its length"
        )
    return np.stack([decode(raw[a:b]) for a, b in itertools.pairwise(ends)])


def _decoder():
    try:
        import io

        from PIL import Image
    except ImportError:
        return _torchvision()
    return lambda jpeg: np.asarray(Image.open(io.BytesIO(jpeg)).convert("RGB"))


def _torchvision():
    try:
        import torch
        from torchvision.io import ImageReadMode, decode_jpeg  # pyright: ignore
    except ImportError:
        raise ImportError("JPEGs need Pillow or torchvision; pip install pillow") from None

    def decode(jpeg: bytes) -> np.ndarray:
        held = torch.frombuffer(bytearray(jpeg), dtype=torch.uint8)
        return decode_jpeg(held, mode=ImageReadMode.RGB).permute(1, 2, 0).numpy()

    return decode


def _found(path: str | pathlib.Path, name: str) -> pathlib.Path:
    """The file itself, or the file of this name in a folder."""
    path = pathlib.Path(path)
    file = path / name if path.is_dir() else path
    if not file.exists():
        raise ValueError(f"data has no file {file}; pass --data with the folder that holds {name}")
    return file


def _arrays(file: pathlib.Path, wanted=("train_x", "train_y", "test_x", "test_y")):
    """The arrays of an npz; one with objects in it, which are pickles, is refused."""
    try:
        with np.load(file, allow_pickle=False) as held:
            missing = [key for key in wanted if key not in held]
            if not missing:
                return {key: held[key] for key in wanted}
    except (ValueError, OSError, AttributeError):
        raise ValueError(f"data file {file} isn't an npz of plain arrays; pass one") from None
    raise ValueError(f"data file {file} lacks {', '.join(missing)}; pass one that has them")


def _shuffled(pixels: np.ndarray, labels: np.ndarray, seed: int) -> list[np.ndarray]:
    order = np.random.default_rng(seed).permutation(len(pixels))
    return [np.ascontiguousarray(pixels[order]), np.asarray(labels)[order].astype(np.int64)]
