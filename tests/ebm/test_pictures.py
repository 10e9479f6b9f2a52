"""Grids of images, read back by another library."""

import numpy as np
import pytest
import torch
from PIL import Image

from schuss.ebm.pictures import drawable, grid, write_png


def test_png_is_read_back(tmp_path):
    rng = np.random.default_rng(0)
    for channels in (1, 3):
        pixels = rng.integers(0, 256, (13, 17, channels), dtype=np.uint8)
        write_png(tmp_path / "a.png", pixels)
        with Image.open(tmp_path / "a.png") as image:
            got = np.asarray(image)
        np.testing.assert_array_equal(got.reshape(pixels.shape), pixels)
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]


def test_images_are_in_their_places():
    x = torch.full((5, 3, 32, 32), -1.0)
    x[3, 0], x[4] = 1.0, 3.0
    sheet = grid(x, columns=3)
    assert sheet.shape == (2 + 2 * 66, 2 + 3 * 66, 3)
    np.testing.assert_array_equal(sheet[2:66, 2:66], 0)
    np.testing.assert_array_equal(sheet[68:132, 2:66], np.broadcast_to([255, 0, 0], (64, 64, 3)))
    np.testing.assert_array_equal(sheet[68:132, 68:132], 255)


def test_other_shapes():
    assert grid(torch.zeros(4, 64)).shape == grid(torch.zeros(4, 8, 8)).shape
    assert grid(torch.full((1, 8, 8), float("nan"))).max() == 255
    assert [drawable(s) for s in ((2,), (64,), (65,), (4, 5), (1, 8, 8), (2, 8, 8))] == [
        False,
        True,
        False,
        True,
        True,
        False,
    ]
    with pytest.raises(ValueError, match="images must have shape"):
        grid(torch.zeros(4, 2))
