"""Whether steps are refused on steep slopes, as they are in the neck of a posterior.

Steps that are right for most of a posterior are too long in its necks, where gradients are steep;
on ridges and close to Gaussians steep slopes are no worse than others. So what is looked at is how
often steps are accepted by the slope they begin on.
"""

import math

import numpy as np

STEEPEST, LESS, LEAST_TRIES = 0.1, 0.95, 500
"""The share of tries from the steepest slopes, how much less often they are accepted than others
where steps are too long there, and the number of tries to judge by."""

KNEE = 1.7
"""The least distance of the knee from the median of log|g|, in units of 1/√d; on a Gaussian log|g|
has the standard deviation 1/√2d."""


def tries(g: np.ndarray, acceptance: np.ndarray) -> np.ndarray:
    """log|g| where steps began and how likely they were to be accepted, (2, tries).

    From gradients (n, chains, dim) and probabilities (n, chains) after each step, nan but for first
    tries.
    """
    with np.errstate(all="ignore"):
        slope = np.log(np.linalg.norm(g[:-1], axis=-1))
    likely = acceptance[1:]
    known = np.isfinite(slope) & np.isfinite(likely)
    return np.stack([slope[known], likely[known]])


def refused(tried: np.ndarray, less: float = LESS) -> bool:
    """Whether steps from steep slopes are accepted less often than others."""
    slope, likely = tried
    if len(slope) < LEAST_TRIES:
        return False
    steep = slope > np.quantile(slope, 1 - STEEPEST)
    return bool(steep.any() and likely[steep].mean() < less * likely[~steep].mean())


def knee(tried: np.ndarray, dim: int) -> float:
    """log|g| from which on steps become shorter: in the last tenth, and out of the ordinary."""
    slope = tried[0]
    return float(max(np.quantile(slope, 1 - STEEPEST), np.median(slope) + KNEE / math.sqrt(dim)))
