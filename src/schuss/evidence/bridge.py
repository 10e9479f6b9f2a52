"""Bennett's acceptance ratio: the step between two temperatures, from states on both sides of it.

With l = log q₁/q₀ and n states on each side, r = log Z₁/Z₀ solves

    Σ_{x ~ q₀} σ(l − r) = Σ_{x ~ q₁} σ(r − l),   σ the logistic function, for equal numbers

Where q₁ has the heavier tails, the plain mean of e^l over q₀ misses them, and this doesn't.
"""

import math

import numpy as np

ROUNDS, CLOSE = 100, 1e-7
"""At most so many, and the step that is the last: its square is what is still missing."""


def log_ratio(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """r for each group, from l at the states of q₀ and of q₁, (groups, states).

    By Newton's method between bounds, which are halved where its steps would leave them or don't
    shrink: far out, where σ falls like e^(−t), all of them are 1.
    """
    return np.array([_root(*pair) for pair in zip(before, after, strict=True)])


def _root(before: np.ndarray, after: np.ndarray) -> float:
    offset = math.log(len(after) / len(before))
    both = np.concatenate([before, after])
    kept = both[np.isfinite(both)]
    if not len(kept):
        return math.nan
    low, high = float(kept.min()) - abs(offset) - 50, float(kept.max()) + abs(offset) + 50
    r, last = float(kept.mean()), high - low
    for _ in range(ROUNDS):
        gain, loss = _logistic(before - (r - offset)), _logistic((r - offset) - after)
        balance = float(gain.sum() - loss.sum())
        low, high = (r, high) if balance > 0 else (low, r)
        slope = float(gain @ (1 - gain) + loss @ (1 - loss))
        step = balance / slope if slope > 0 else math.inf
        if abs(step) <= CLOSE or high - low <= CLOSE**2:
            return r + step
        if not low < r + step < high or abs(step) > last / 2:
            step = (low + high) / 2 - r
        r, last = r + step, abs(step)
    return r


def _logistic(t: np.ndarray) -> np.ndarray:
    """σ(t) = 1/(1 + e^(−t)), nothing where e^(−t) overflows."""
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-t))
