"""From a run at a temperature T to the target: states of e^(−E/T), weighed and taken."""

import numpy as np

from schuss.diagnostics import weight_ess

RAW = 4
"""States for each draw at a temperature."""

LEAST_SHARE = 0.05
"""(Σw)²/nΣw² of the weights that undo a temperature: ¼ on a Gaussian in the plane at T = 8."""

LEAST_LOW = 0.01
"""The share of hot states within E₀ + 1 of the lowest energy met: .12 on the same Gaussian."""


def log_weights(energy: np.ndarray, temperature: float) -> np.ndarray:
    """log w = −(1 − 1/T)E = −(T − 1)E/T, from the energies E/T of a run at T."""
    return -(temperature - 1) * energy


def raw_draws(temperature: float) -> int:
    """States to make for each draw: at a temperature, several are weighed and one of them taken."""
    return 1 if temperature == 1 else RAW


def cooled(
    kept: dict[str, np.ndarray], temperature: float, draws: int | None = None
) -> dict[str, np.ndarray]:
    """Draws of e^(−E) from weighted ones of e^(−E/T), as many unless a number is given.

    A chain's draws are taken at equal distances of its weights summed up, as Algorithm 2 takes
    them at equal times.
    """
    energy = kept["energy"]
    weights = np.exp(log_weights(energy - energy.min(axis=0), temperature))
    count = len(energy) if draws is None else max(len(energy) // RAW, 1)
    at = (np.arange(count) + 0.5) / count
    chosen = [np.searchsorted(chain, at * chain[-1]) for chain in np.cumsum(weights, axis=0).T]
    return {
        name: np.stack([values[rows, k] for k, rows in enumerate(chosen)], axis=1)
        for name, values in kept.items()
    }


def hang_on_few(energy: np.ndarray, lowest: float, temperature: float) -> bool:
    """Whether the draws (n,) of a hot run, of energies E/T, are too few where the cold density is.

    Few of them have most of the weight, or few are nearly as low as the lowest place met.
    """
    logs = log_weights(energy, temperature)
    share = float(weight_ess(logs)) / len(logs)
    low = np.mean((energy - lowest) * temperature < 1)
    return bool(share < LEAST_SHARE or low < LEAST_LOW)
