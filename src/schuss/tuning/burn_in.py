"""When the energy has stopped falling, and where a path of energies has settled."""

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


def settled(means: np.ndarray, spread: float) -> int:
    """The first chunk by which every chain's mean energy has been as low as it is later on.

    `means` (chunks, chains) are compared with the second half's mean plus twice the `spread`.
    """
    level = means[len(means) // 2 :].mean() + 2 * spread
    reached = np.logical_or.accumulate(means <= level, axis=0).all(axis=1)
    return int(np.argmax(reached)) if reached.any() else len(means) // 2


def skipped(energy: np.ndarray, chunk: int) -> int:
    """How many of the first states don't count: until chunks have settled, and a tenth of the rest.

    From energies (n, chains).
    """
    first = _unsettled(energy, chunk)
    return first + (len(energy) - first) // 10


def strayed(energy: np.ndarray, chunk: int) -> int:
    """How many of the first states there were before the last chain came home from far away.

    No chain of draws begins there by chance: 4 standard deviations up, for the mean of a chunk.
    """
    return _unsettled(energy, chunk, 2.0)


def _unsettled(energy, chunk, spreads=1.0):
    """The first states, as long as a chain hadn't settled by its energy."""
    chunks = len(energy) // chunk
    means = energy[: chunks * chunk].reshape(chunks, chunk, -1).mean(axis=1)
    spread = float(energy[len(energy) // 2 :].std())
    return settled(means, spreads * spread) * chunk
