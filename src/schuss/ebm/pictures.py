"""Images in a grid as a PNG file, written without a plotting library."""

import math
import pathlib
import struct
import zlib
from typing import Any

import numpy as np
import torch

from schuss.whole_file import replacing

SIDE = 64
"""Small images are enlarged to about so many pixels."""


def drawable(shape: tuple[int, ...]) -> bool:
    """Whether positions of a shape are images: (h, w), (1 or 3, h, w), or a flat square."""
    if len(shape) == 3:
        return shape[0] in (1, 3)
    return len(shape) == 2 or (len(shape) == 1 and shape[0] >= 16 and _root(shape[0]) is not None)


def grid(x: Any, columns: int = 10, lower: float = -1.0, upper: float = 1.0) -> np.ndarray:
    """Images (n, *shape) as one of bytes (height, width, 1 or 3), `lower` black, `upper` white."""
    x = torch.as_tensor(x).detach().float().cpu()
    shape = tuple(x.shape[1:])
    if not drawable(shape):
        raise ValueError(
            f"images must have shape (n, h, w), (n, 1 or 3, h, w) or (n, h·h), got {tuple(x.shape)}"
        )
    if len(shape) == 1:
        side = _root(shape[0])
        x = x.reshape(len(x), 1, side, side)
    elif len(shape) == 2:
        x = x[:, None]
    pixels = ((x - lower) / (upper - lower) * 255).nan_to_num(0.0).clamp(0, 255).round()
    pixels = pixels.to(torch.uint8).permute(0, 2, 3, 1).numpy()
    n, height, width, channels = pixels.shape
    zoom = max(1, SIDE // max(height, width))
    pixels = pixels.repeat(zoom, axis=1).repeat(zoom, axis=2)
    height, width = zoom * height, zoom * width
    columns = min(columns, n)
    rows, gap = -(-n // columns), 2
    size = (gap + rows * (height + gap), gap + columns * (width + gap), channels)
    sheet = np.full(size, 255, np.uint8)
    for k, image in enumerate(pixels):
        top = gap + k // columns * (height + gap)
        left = gap + k % columns * (width + gap)
        sheet[top : top + height, left : left + width] = image
    return sheet


def write_png(path: str | pathlib.Path, pixels: np.ndarray) -> None:
    """Write bytes (height, width, 1 or 3) as a PNG; the file is there whole or not at all."""
    height, width, channels = pixels.shape
    lines = np.zeros((height, 1 + width * channels), np.uint8)
    lines[:, 1:] = pixels.reshape(height, -1)
    kind = {1: 0, 3: 2}[channels]
    header = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    body = zlib.compress(lines.tobytes(), 6)
    chunks = (b"IHDR", header), (b"IDAT", body), (b"IEND", b"")
    data = b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, part) for name, part in chunks)
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as draft:
        draft.write_bytes(data)


def picture(path: str | pathlib.Path, x: Any, columns: int = 10, **options: Any) -> None:
    """Write images (n, *shape) as a grid to a PNG file."""
    write_png(path, grid(x, columns, **options))


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def _root(number: int) -> int | None:
    root = math.isqrt(number)
    return root if root * root == number else None
