"""Systematic resampling in a given order: neighbours in it keep their common share."""

import numpy as np


def systematic(weights: np.ndarray, n: int, uniform: float) -> np.ndarray:
    """Indices of n survivors: i is drawn floor or ceil of n w_i times, n w_i in the mean."""
    ladder = np.cumsum(weights)
    rungs = (np.arange(n) + uniform) / n * ladder[-1]
    return np.minimum(np.searchsorted(ladder, rungs, side="right"), len(weights) - 1)
