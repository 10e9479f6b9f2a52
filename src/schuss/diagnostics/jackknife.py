"""Standard errors from leaving out one chain at a time.

With θ_{−c} the estimate without chain c of C,  s.e.² = (C − 1)/C Σ_c (θ_{−c} − mean θ_{−c})².
"""

from typing import NamedTuple

import numpy as np

from schuss.diagnostics.inputs import Array


class Estimate(NamedTuple):
    """A value and its standard error over the chains (nan from a single chain)."""

    value: Array
    standard_error: Array


def leave_one_out(sums: Array) -> Array:
    """Σ_{b≠c} sums[b] for each c of the first axis, without the cancellation of total − own."""
    nothing = np.zeros_like(sums[:1])
    before = np.concatenate([nothing, np.cumsum(sums[:-1], axis=0)])
    after = np.concatenate([np.cumsum(sums[:0:-1], axis=0)[::-1], nothing])
    return before + after


def jackknife_error(estimates: Array) -> Array:
    """Standard error from the estimates without each chain, chains on the first axis.

    Infinite where an estimate is not finite, because one chain then holds all there is to know.
    """
    chains = estimates.shape[0]
    if chains < 2:
        return np.full(estimates.shape[1:], np.nan)
    known = np.all(np.isfinite(estimates), axis=0)
    values = np.where(known, estimates, 0.0)
    spread = np.sum((values - np.mean(values, axis=0)) ** 2, axis=0)
    return np.where(known, np.sqrt((chains - 1) / chains * spread), np.inf)
