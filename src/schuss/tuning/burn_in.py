"""When the energy has stopped falling, and which chains should begin again elsewhere."""

import math

import numpy as np

LEAST, MOST = 4, 40
"""Chunks that burn-in takes."""


def over(means: np.ndarray, dim: int) -> bool:
    """Whether burn-in is, from each chunk's mean energy (chunks, chains).

    In units of σ = √(d/2), the spread of the energy of a Gaussian: the fall over the last `LEAST`
    chunks is small on average and for every chain, and no chain stands far above the others. A
    slow fall from afar hides in the scatter of a single chunk.
    """
    if len(means) >= MOST:
        return True
    if len(means) < LEAST:
        return False
    sigma = math.sqrt(dim / 2)
    fall, last = means[-LEAST] - means[-1], means[-1]
    apart = last.max() - np.median(last)
    return bool(fall.mean() < 0.5 * sigma and fall.max() < 3 * sigma and apart < 6 * sigma)


def lost(energy: np.ndarray, steps: np.ndarray, dim: int) -> np.ndarray:
    """Which chains should begin again elsewhere: far above the median energy, or stuck.

    A chain whose steps are tiny is deep in a neck, and would stay there; low as its energy is
    there, it is no measure for the others where nobody else would be left.
    """
    stuck = steps < np.median(steps) / 100
    high = energy > np.median(energy) + 10 * math.sqrt(dim / 2)
    return stuck if np.all(stuck | high) else stuck | high


def endless(means: np.ndarray) -> bool:
    """Whether mean energies (chunks,) have fallen all the time, and faster in the second half."""
    half = len(means) // 2
    falling = len(means) >= MOST and np.all(np.diff(means) < 0)
    return bool(falling and means[half] - means[-1] > means[0] - means[half])


def strayed(means: np.ndarray, spread: float) -> int:
    """How many of the first blocks there were before the last chain came to where all are later.

    From mean energies (blocks, chains): a chain has come there once one is as close to the mean of
    the second half as twice the `spread` of single energies. None where a chain never has.
    """
    away = np.abs(means - means[len(means) // 2 :].mean())
    arrived = np.logical_or.accumulate(away <= 2 * spread, axis=0).all(axis=1)
    return int(np.argmax(arrived))
