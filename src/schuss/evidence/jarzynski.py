"""The paper's Jarzynski sampler (Algorithm 4): the flow towards a fixed target, and its weights.

log w = E₀(x₀) − E(x_t) − (d−1) r_t      exact for any step size (the estimate)
log w = E₀(x₀) − E(x₀) + r_t             as the paper has it (Eq. 9), beside it
"""

from typing import NamedTuple

import numpy as np

from schuss.algorithms import ESH
from schuss.trajectory import trajectory


class Weighted(NamedTuple):
    """The end of a flow: states, their energies, and both kinds of log-weights."""

    x: np.ndarray
    energy: np.ndarray
    log_weight: np.ndarray
    paper: np.ndarray
    gradients: int


def flow(given: dict, init, reference_energy, sampler: ESH, steps: int, seed, progress) -> Weighted:
    """Follow the flow from draws of the reference; `given` names the target and the engine.

    A particle that was frozen has no weight.
    """
    path = trajectory(
        **given,
        init=init,
        sampler=sampler,
        steps=steps,
        every=steps,
        seed=seed,
        progress=progress,
    )
    exact, paper = (
        np.where(path.frozen, -np.inf, path.jarzynski(reference_energy, exact=kind)[-1])
        for kind in (True, False)
    )
    return Weighted(path.x[-1], path.energy[-1], exact, paper, path.gradients)
