"""The draws and gradients that maps are fitted to, and columns of them scaled."""

import numpy as np

LEAST, MOST = 64, 800


def pilot(
    x: np.ndarray, g: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray] | None:
    """The finite ones, at most so many, chosen at random, in order of time; None if too few."""
    sound = np.isfinite(x).all(axis=1) & np.isfinite(g).all(axis=1)
    x, g = x[sound], g[sound]
    if len(x) < LEAST:
        return None
    if len(x) <= MOST:
        return x, g
    at = np.sort(rng.choice(len(x), MOST, replace=False))
    return x[at], g[at]


def unit(x: np.ndarray) -> np.ndarray:
    """Columns of mean zero and deviation one."""
    centred = x - x.mean(axis=0)
    return centred / np.maximum(centred.std(axis=0), 1e-300)
