"""The windows of each phase: how many steps they have, and when there have been enough."""

import math

import numpy as np

from schuss.sampling.field import ROOM

CHUNK = 8
"""Steps between two decisions in burn-in, and the unit of the tuning windows."""

ADAPTING = (64, 64, 128, 192, 320, 512, 768, 1152)
"""Steps of the adapting windows; they go on growing by half until the draws are enough."""

MOST_TUNING, MOST_ADAPTING = 16, 14

ENOUGH_TO_SWITCH, ENOUGH_TO_FREEZE = 10, 100
"""Smallest effective sample size at which the exact phase begins, and at which all is frozen."""

TYPICAL_TO_SWITCH, MIXED_TO_SWITCH = 75, 2.0
"""The median one that does as well, and the largest R-hat: sizes of few draws may be far too large.
"""


def tuning(k: int) -> int:
    """Steps of the k-th window of tuning."""
    return _growing(2, 1.5, k) * CHUNK


def adapting(k: int) -> int:
    """Steps of the k-th window of adapting."""
    if k < len(ADAPTING):
        return ADAPTING[k]
    return _growing(ADAPTING[-1], 1.5, k - len(ADAPTING) + 1)


def sampling(k: int) -> int:
    """Steps of the k-th window of sampling."""
    return 4 * ROOM * _growing(1, 1.3, k, most=16)


def calls(k: int) -> int:
    """How much longer calls of the loop are in the k-th window of sampling.

    No run goes far beyond what it was asked for where they grow with what has been sampled.
    """
    return min(1 + k // 4, 4)


def tuned(sizes: np.ndarray, dim: int, rhat: float) -> bool:
    """Whether effective sample sizes, of x first, and R-hat are enough for the exact phase."""
    enough = sizes.min() >= ENOUGH_TO_SWITCH or np.median(sizes[:dim]) >= TYPICAL_TO_SWITCH
    return bool(enough and rhat < MIXED_TO_SWITCH)


def adapted(sizes: np.ndarray, windows: int) -> bool:
    """Whether everything can be frozen after so many windows of adapting."""
    enough = windows >= len(ADAPTING) and sizes.min() >= ENOUGH_TO_FREEZE
    return bool(enough or windows >= MOST_ADAPTING)


def _growing(first: int, factor: float, k: int, most: int = 2**62) -> int:
    """The k-th of lengths that grow by a factor, each a whole number: 2, 3, 5, 8, 12, …"""
    size = first
    for _ in range(k):
        size = min(math.ceil(size * factor), most)
    return size
