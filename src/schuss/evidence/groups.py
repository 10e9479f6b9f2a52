"""Independent groups of particles: one estimate from all, its error from their spread.

Ẑ = mean_g Ẑ_g,   the standard error of log Ẑ by a jackknife over the groups
"""

import math

import numpy as np
from scipy.special import logsumexp, stdtrit

from schuss.diagnostics.jackknife import jackknife_error


def by_group(values: np.ndarray, groups: int) -> np.ndarray:
    """(moves, particles, …) as (groups, states, …), the states of a particle side by side."""
    moves, particles, *rest = values.shape
    apart = values.reshape(moves, groups, particles // groups, *rest)
    return np.moveaxis(apart, 0, 2).reshape(groups, -1, *rest)


def log_mean(logs: np.ndarray, axis: int = -1) -> np.ndarray:
    """log of the mean of e^logs."""
    with np.errstate(divide="ignore"):
        return logsumexp(logs, axis=axis) - math.log(logs.shape[axis])


def combine(logs: np.ndarray) -> tuple[float, float]:
    """log of the mean over groups of e^logs, and its standard error; logs are (groups,)."""
    value = float(log_mean(logs))
    if not np.isfinite(value):
        return value, math.inf
    without = np.stack([log_mean(np.delete(logs, g)) for g in range(len(logs))])
    return value, float(jackknife_error(without))


def difference(logs: np.ndarray, others: np.ndarray) -> tuple[float, float]:
    """What `combine` makes of one less the other, group by group, and the standard error of it."""
    if not (np.all(np.isfinite(logs)) and np.all(np.isfinite(others))):
        return math.inf, math.inf
    without = np.stack(
        [log_mean(np.delete(logs, g)) - log_mean(np.delete(others, g)) for g in range(len(logs))]
    )
    return float(log_mean(logs) - log_mean(others)), float(jackknife_error(without))


def interval(value: float, error: float, freedom: float, level: float) -> tuple[float, float]:
    """Student's interval with that many degrees of freedom."""
    half = float(stdtrit(freedom, (1 + level) / 2)) * error
    return value - half, value + half
