"""Sampling e^(−E/T) in the plane, where paths cross from mode to mode, and back to e^(−E).

States of e^(−E/T) count with the weights w = e^(−(1 − 1/T)E). Their variance grows like
(1 − 1/T)² d/2, so that this is for lines and planes.
"""

import numpy as np

from schuss.diagnostics import weight_ess
from schuss.problem import Problem
from schuss.sampling.initialise import evaluate

TEMPERATURE = 8.0

LEAST_SHARE = 0.05
"""(Σw)²/nΣw² of the weights: ¼ on a Gaussian in the plane at T = 8."""

LEAST_LOW = 0.01
"""The share of states within 1 of the lowest energy met: .12 on the same Gaussian."""

LEAST_DRAWS = 400
"""Draws of all chains from which on these are known."""


def initial_temperature(problem: Problem, x: np.ndarray, seed: int) -> float:
    """8 on lines and in planes where e^(−E/8) can be normalised, else 1.

    In the plane it can where E grows faster than 2T log |x|: tried along rays, twice as steep.
    """
    if problem.dim > 2:
        return 1.0
    chains, dim = x.shape
    rng = np.random.default_rng([seed, 1])
    rays = rng.standard_normal((4, chains, dim))
    rays /= np.linalg.norm(rays, axis=-1, keepdims=True)
    reach = 1 + np.abs(x).max()
    with np.errstate(all="ignore"):
        near, far = (
            np.stack([evaluate(problem, r * reach * ray)[0] for ray in rays]) for r in (1e3, 1e5)
        )
        slope = (far - near) / np.log(1e2)
    # Infinite energies are walls. What isn't a number says nothing.
    return TEMPERATURE if np.all((slope > 2 * TEMPERATURE) | ~np.isfinite(far)) else 1.0


def log_weights(energy: np.ndarray, temperature: float) -> np.ndarray:
    """log w = −(1 − 1/T)E."""
    return -(1 - 1 / temperature) * energy


def resampled(energy: np.ndarray, temperature: float, count: int) -> np.ndarray:
    """Which states of e^(−E/T), energies (n, chains), are draws of e^(−E): numbers (count, chains).

    Taken at equal distances of each chain's weights summed up, as the paper's Algorithm 2 takes
    them at equal times.
    """
    weights = np.exp(log_weights(energy - energy.min(axis=0), temperature))
    at = (np.arange(count) + 0.5) / count
    return np.stack([np.searchsorted(c, at * c[-1]) for c in np.cumsum(weights, axis=0).T], axis=1)


def too_few_low(energy: np.ndarray, lowest: float, temperature: float) -> bool:
    """Whether few of the states (n, chains) have most of the weight, or are nearly as low as any.

    As along heavy tails, or where there is a mode too narrow for the temperature.
    """
    if temperature == 1 or energy.size < LEAST_DRAWS:
        return False
    logs = log_weights(energy.ravel(), temperature)
    share = float(weight_ess(logs)) / energy.size
    return bool(share < LEAST_SHARE or np.mean(energy - lowest < 1) < LEAST_LOW)
