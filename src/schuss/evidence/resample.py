"""Systematic resampling in a given order: neighbours in it keep their common share."""

import numpy as np


def systematic(weights: np.ndarray, n: int, uniform: float) -> np.ndarray:
    """Indices of n survivors: i is drawn floor or ceil of n w_i times, n w_i in the mean."""
    ladder = np.cumsum(weights)
    rungs = (np.arange(n) + uniform) / n * ladder[-1]
    return np.minimum(np.searchsorted(ladder, rungs, side="right"), len(weights) - 1)


def most_apart(x: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, float]:
    """Where x (n, dim) lies along the direction in which it falls apart most, and its kurtosis.

    Of the coordinates and the first principal direction, the one with the smallest kurtosis: 1 for
    two points, 3 for a Gaussian.
    """
    share = weights / weights.sum()
    mean = share @ x
    scale = np.sqrt(share @ (x - mean) ** 2)
    z = (x - mean) / np.where(scale > 0, scale, np.inf)
    by_coordinate = np.where(scale > 0, share @ z**4, np.inf)
    first = z @ _principal(z, share)
    variance = share @ first**2
    kurtosis = share @ first**4 / variance**2 if variance > 0 else np.inf
    lowest = int(np.argmin(by_coordinate))
    if by_coordinate[lowest] < kurtosis:
        return z[:, lowest], float(by_coordinate[lowest])
    return first, float(kurtosis)


def _principal(z: np.ndarray, share: np.ndarray) -> np.ndarray:
    """The first principal direction by eight rounds of power iteration, from the outermost."""
    direction = z[np.argmax((z**2).sum(axis=1) * (share > 0))]
    for _ in range(8):
        direction = (share * (z @ direction)) @ z
        norm = np.sqrt(direction @ direction)
        if not norm > 0:
            break
        direction = direction / norm
    return direction
