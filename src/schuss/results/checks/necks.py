"""Whether a coordinate sets the widths of others, as in a funnel, in the coordinates of the run.

Steps that are right at the mouth are too long in the neck: chains that stay out of it agree with
each other, and no energy error shows. The draws and gradients at the mouth tell that it is there.
"""

import math

import numpy as np

from schuss.results.checks.evidence import WRONG, Evidence, Found, Reason, listed
from schuss.tuning import reparametrise

UNEVEN = 2.0
"""The spread of log|g| in that of a Gaussian, 1/√2d, below which nothing is looked for."""

FREE = 0.5
"""Effective draws to a draw from which on a sampler isn't hindered by the widths."""


def necks(evidence: Evidence, ess: np.ndarray) -> Found:
    """A hierarchy of widths that the run didn't undo; `ess` (dim,) is that of the coordinates."""
    x, g = evidence.x, evidence.gradient
    if evidence.charted or g is None or g.shape != x.shape or not np.isfinite(g).all():
        return Found([], {}, [])
    dim = x.shape[-1]
    x, g = x.reshape(-1, dim), g.reshape(-1, dim)
    with np.errstate(all="ignore"):
        slope = np.log(np.linalg.norm(g * x.std(axis=0), axis=-1))
    if not slope.std() * math.sqrt(2 * dim) > UNEVEN:
        return Found([], {}, [])
    found = reparametrise.fit(x, g, np.random.default_rng(0))
    if found is None:
        return Found([], {}, [])
    first = int(np.argmax(found.parents[0]))
    if ess[first] > FREE * len(x):
        return Found([], {}, [])
    change = np.abs(found.spread[:, 0]) * np.std(found.inverse(np, x)[:, first])
    rows = [evidence.names[i] for i in np.flatnonzero(change > reparametrise.STRONG)]
    text = f"{evidence.names[first]} sets the widths of {listed(rows)}: a funnel, whose neck may "
    remedy = "Write the model non-centred; sampler='auto' looks for such coordinates as it adapts"
    reason = Reason(
        WRONG,
        text + "not have been visited",
        float(change.max()),
        reparametrise.STRONG,
        remedy,
    )
    return Found([reason], {}, [])
