"""The kernels of a run as its windows use them: parameters, and states to begin from."""

from typing import Any, NamedTuple

import numpy as np

from schuss.core import persistent, unadjusted
from schuss.core.dynamics import ESH
from schuss.core.integrators import LEAPFROG, MINIMAL_NORM
from schuss.core.kernel import Kernel, Noise
from schuss.core.refresh import forgetting
from schuss.sampling.state import ChainState, KernelParams

METROPOLIS = persistent.kernel(ESH, LEAPFROG)
"""The scaled flow with a Metropolis test in every step (Neal 2020; Riou-Durand et al. 2023)."""

FLOW = unadjusted.kernel(ESH, MINIMAL_NORM)
"""The scaled flow as it is: MCLMC."""


class Begun(NamedTuple):
    """A kernel with its parameters and a state, as NumPy arrays."""

    kernel: Kernel
    params: Any
    state: Any


def begin(exact: bool, params: KernelParams, chains: ChainState, z, energy, grad) -> Begun:
    """Chains at the beginning of a transition at z, with the energy and the gradient there."""
    dim, ratio = z.shape[1], params.step_size / params.L
    kappa, zero = np.float64(dim - 1), np.float64(0)
    nu = forgetting(np, 2 * ratio, dim)
    if exact:
        kernel, lookahead = METROPOLIS, np.floor(0.5 / ratio)
        given = persistent.Params(
            params.step_size, kappa, kappa, nu, lookahead, 2 * ratio, zero, zero
        )
    else:
        kernel, given = FLOW, unadjusted.Params(params.step_size, kappa, nu)
    noise = Noise(chains.u, (chains.slice_variable[:, None] + 1) / 2)
    return Begun(kernel, given, kernel.init(np, z, energy, grad, noise, given))
