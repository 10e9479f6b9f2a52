"""The adjusted sampler as a run uses it: per-step Metropolis, its steps local where need be."""

import math

import numpy as np

from schuss.core import persistent, thinned
from schuss.core.dynamics import ESH
from schuss.core.integrators import LEAPFROG, LONG_STEP
from schuss.core.kernel import Kernel, Noise
from schuss.core.refresh import amount
from schuss.results.stats import DIVERGED
from schuss.sampling.tuned import Tuned
from schuss.sampling.whereabouts import Whereabouts, within

EXACT = persistent.kernel(ESH, LEAPFROG)
LONG = persistent.kernel(ESH, LONG_STEP)
LOCAL = persistent.kernel(ESH, LEAPFROG, local=True)

SPREAD = 0.1
"""How much the logarithms of local steps vary."""

EVERYWHERE = math.inf, 1e-20
"""Knee and spread of local steps that are the same everywhere."""


def kernel(tuned: Tuned) -> Kernel:
    """With long steps, or local ones, or neither.

    In few dimensions runs take less time than compilers, so that one kernel serves for all steps.
    """
    if tuned.local or tuned.small:
        return LOCAL
    return LONG if tuned.long else EXACT


def params(tuned: Tuned) -> persistent.Params:
    """Step, noise, looks and slide; a lookahead is at most half a length of refreshment."""
    ratio = tuned.step / tuned.length
    noise = amount(tuned.step, tuned.length, tuned.dim)
    looks = float(math.floor(0.5 / ratio))
    kappa = tuned.dim - 1.0
    return persistent.Params(tuned.step, kappa, kappa, noise, looks, 2 * ratio, *_law(tuned))


def state(now: Whereabouts, tuned: Tuned, rng: np.random.Generator) -> persistent.State:
    """Chains at the beginning of a lookahead, with slice variables drawn afresh."""
    here, sampler = within(now, tuned.metric), kernel(tuned)
    noise = Noise(here.u, rng.uniform(size=(len(now.x), sampler.uniforms)))
    with np.errstate(divide="ignore"):
        given = persistent.Params(*map(np.float64, params(tuned)))
        return sampler.init(np, here.x, here.energy, here.g, noise, given)


def holding(
    tuned: Tuned, inner: persistent.State, number: np.ndarray, every: int
) -> tuple[Kernel, thinned.Params, thinned.State]:
    """The sampler that holds every so many transitions, of which each chain has had a `number`."""
    around = thinned.beginning(inner, number, np.zeros(len(number)))
    return thinned.kernel(kernel(tuned)), thinned.Params(params(tuned), every, DIVERGED), around


def _law(tuned):
    return (tuned.knee, SPREAD) if tuned.local else EVERYWHERE
