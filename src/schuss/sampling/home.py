"""From the coordinates of a field back to the user's."""

import numpy as np

from schuss.coordinates import potential
from schuss.sampling.field import Field


def home(
    field: Field, y: np.ndarray, energy: np.ndarray, g: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x (…, dim), E and ∇E of states in a field, without its chart and its temperature.

    The coordinate that was added to a line is left out, and so is its energy.
    """
    dim, shape = field.like.shape[1], y.shape
    flat = y.reshape(-1, shape[-1]), energy.reshape(-1), g.reshape(-1, shape[-1])
    x, energy, pull = uncharted(field, *flat)
    x, pull = (np.asarray(part).reshape(shape)[..., :dim] for part in (x, pull))
    energy = energy.reshape(shape[:-1])
    if dim < shape[-1]:
        energy = energy - 0.5 * y[..., -1] ** 2 / field.temperature
    return x, energy * field.temperature, pull * field.temperature


def uncharted(
    field: Field, y: np.ndarray, energy: np.ndarray, g: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x (n, dim), E and ∇E of states in a field, in the coordinates that its chart is a map to."""
    energy = energy - potential(np, field.chart, y)
    for frame in reversed(field.chart):
        y, g = frame.forward(np, y), frame.push(np, y, g)
    return y, energy, g
