"""A tiny data set that needs no file: stripes in ten widths."""

import numpy as np

from schuss.ebm.data import Images


def stripes(n=60, channels=3, size=8, seed=0):
    """Images whose class is the period of their stripes."""
    rng = np.random.default_rng(seed)

    def part(count):
        labels = rng.integers(0, 10, count)
        phase = rng.uniform(0, 6, (count, 1, 1, 1))
        line = np.arange(size)[None, None, None, :]
        wave = np.sin(line * (labels[:, None, None, None] + 1) / 3 + phase)
        pixels = 127.5 * (1 + wave) + np.zeros((1, channels, size, 1))
        return pixels.round().astype(np.uint8), labels.astype(np.int64)

    train, test = part(n), part(n)
    return Images("stripes", *train, *test)
