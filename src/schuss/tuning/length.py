"""The length L over which a velocity is forgotten, from the autocorrelation of the draws."""

import math

import numpy as np

from schuss.diagnostics.vectorised import fast_ess


def times(x: np.ndarray) -> tuple[float, float]:
    """Mean over dimensions of the autocorrelation time n/ESS of x and of (x − m)²."""
    n = x.shape[0] * x.shape[1]
    squares = (x - x.mean(axis=(0, 1))) ** 2

    def time(columns):
        return float(np.mean(n / np.maximum(fast_ess(columns), 1.0)))

    return time(x), time(squares)


def refreshment(step: float, x: np.ndarray, last: float) -> float:
    """L = ε (τ − ½)₊ min(1, τ/τ₂)², τ of x and τ₂ of its squares.

    Within [½, 30]√d and a factor of four from the last one.
    """
    tau, tau_square = times(x)
    length = step * max(tau - 0.5, 0.0) * min(1.0, tau / tau_square) ** 2
    root = math.sqrt(x.shape[2])
    return float(np.clip(np.clip(length, 0.5 * root, 30 * root), last / 4, last * 4))
