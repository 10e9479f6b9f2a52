"""From the coordinates of a field back to the user's."""

import numpy as np

from schuss.coordinates import potential, to_x
from schuss.sampling.field import Field


def home(field: Field, y: np.ndarray, energy: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """x (…, dim) and E of states in a field, without its chart and its temperature.

    The coordinate that was added to a line is left out, and so is its energy.
    """
    dim = field.like.shape[1]
    flat = y.reshape(-1, y.shape[-1])
    x = np.asarray(to_x(np, field.chart, flat)).reshape(y.shape)[..., :dim]
    energy = energy - np.reshape(
        potential(np, field.chart, flat) * np.ones(len(flat)), energy.shape
    )
    if dim < y.shape[-1]:
        energy = energy - 0.5 * y[..., -1] ** 2 / field.temperature
    return x, energy * field.temperature
