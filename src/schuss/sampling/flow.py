"""The unadjusted flow as a run uses it: through burn-in and tuning, and on where that is better."""

import math

import numpy as np

from schuss.core import adaptive
from schuss.core.dynamics import ESH
from schuss.core.integrators import LONG_STEP, MINIMAL_NORM
from schuss.sampling.whereabouts import Whereabouts, within
from schuss.tuning.metric import Metric

FLOW = adaptive.kernel(ESH)

TUNING_ERROR = 3e-3
"""Wanted variance of the energy error per dimension."""

FREE_OF_BIAS = 200
"""Effective sample size up to which the flow's bias stays below the scatter of its estimates."""

FAR_APART = 20
"""Steps for an effective draw from which on the flow goes on unadjusted where it may."""


def params(
    dim: int,
    length: float,
    *,
    wanted: float = 1.0,
    memory: float = 1.0,
    shrink: float = 1.0,
    grow: float = 1.0,
    long: bool = False,
) -> adaptive.Params:
    """Of a flow whose steps stay as they are, or change within bounds for the error wanted."""
    longest, scheme = 2.5 * math.sqrt(dim), LONG_STEP if long else MINIMAL_NORM
    bounds = shrink, grow, longest
    return adaptive.Params(1.0, dim - 1.0, 2 / length, wanted, memory, *bounds, scheme.kicks[0])


def state(
    now: Whereabouts,
    metric: Metric,
    steps: np.ndarray,
    errors: np.ndarray | None = None,
    counts: np.ndarray | None = None,
) -> adaptive.State:
    """Chains that flow with steps of their own, and what is known of the errors of these."""
    nothing = np.zeros(len(steps))
    known = (nothing if part is None else part for part in (errors, counts))
    return adaptive.State(*within(now, metric), steps, *known)


def tolerance(ess: float, exact: bool) -> float:
    """The error that is wanted of tuning, smaller where its draws count and are many.

    The bias², about the error to the power ⅔, falls with the variance, 1/ESS.
    """
    if exact or not ess > FREE_OF_BIAS:
        return TUNING_ERROR
    return TUNING_ERROR * (FREE_OF_BIAS / ess) ** 1.5
