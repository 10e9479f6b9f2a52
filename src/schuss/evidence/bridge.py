"""Bennett's acceptance ratio: the step between two temperatures, from states on both sides of it.

With l = log q₁/q₀ and n states on each side, r = log Z₁/Z₀ solves

    Σ_{x ~ q₀} σ(l − r) = Σ_{x ~ q₁} σ(r − l),   σ the logistic function, for equal numbers

Where q₁ has the heavier tails, the plain mean of e^l over q₀ misses them, and this doesn't.
"""

import numpy as np
from scipy.special import expit


def log_ratio(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """r for each group, from l at the states of q₀ and of q₁, (groups, states)."""
    offset = np.log(after.shape[1] / before.shape[1])
    low = np.minimum(_least(before), _least(after)) - abs(offset) - 50.0
    high = np.maximum(before.max(axis=1), after.max(axis=1)) + abs(offset) + 50.0
    for _ in range(50):
        r = (low + high) / 2
        balance = expit(before - r[:, None] + offset).sum(axis=1) - expit(
            r[:, None] - after - offset
        ).sum(axis=1)
        low, high = np.where(balance > 0, r, low), np.where(balance > 0, high, r)
    return (low + high) / 2


def _least(logs: np.ndarray) -> np.ndarray:
    """The smallest finite one: states without weight stand for nothing."""
    return np.where(np.isfinite(logs), logs, np.inf).min(axis=1)
