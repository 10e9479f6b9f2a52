"""Samplers that are exact at any step size, at step sizes at which nothing else would do."""

import dataclasses

import numpy as np
import pytest
from seeds import shifted

import schuss
from schuss import ESH, HMC, MALA
from schuss.algorithms import Build
from schuss.core import endpoint
from schuss.core.dynamics import ESH as ESH_FLOW
from schuss.core.integrators import LEAPFROG
from schuss.targets import coupled_quartic, isotropic, quartic

from .estimate import assert_exact, stationary

pytestmark = pytest.mark.statistics

PLANE = coupled_quartic()

SAMPLERS = {
    "endpoint": ESH(0.99, adjust="endpoint", steps=4),
    "endpoint, κ = d − 1": ESH(0.99, kappa=1.0, adjust="endpoint", steps=4),
    "endpoint, κ = 5": ESH(0.99, kappa=5.0, adjust="endpoint", steps=4),
    "endpoint, one step": ESH(1.5, adjust="endpoint", steps=1),
    "endpoint, minimal norm": ESH(1.5, integrator="minimal-norm", adjust="endpoint", steps=3),
    "endpoint, metric": ESH(0.9, metric=[0.5, 1.5], adjust="endpoint", steps=3),
    "orbit": ESH(0.99, adjust="orbit", steps=10),
    "orbit, κ = d − 1": ESH(0.99, kappa=1.0, adjust="orbit", steps=5),
    "orbit of two": ESH(0.99, adjust="orbit", steps=2),
    "orbit, fourth order": ESH(2.0, integrator="fourth-order", adjust="orbit", steps=4),
    "persistent": ESH(0.8, kappa=1.0, adjust="persistent", refresh=4.0),
    "persistent, κ = d": ESH(0.8, adjust="persistent", refresh=4.0),
    "persistent, no further look": ESH(0.8, kappa=1.0, adjust="persistent", refresh=1.5),
    "mala": MALA(1.0),
    "hmc": HMC(0.9, steps=3),
}


@pytest.mark.parametrize(
    "name", [n for n in SAMPLERS if n not in ("endpoint, metric", "orbit, fourth order")]
)
def test_every_exact_sampler(name):
    assert_exact(SAMPLERS[name], PLANE)


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLERS)
def test_every_exact_sampler_sharply(name):
    assert_exact(SAMPLERS[name], PLANE, chains=4000, steps=6000, seed=10, resolution=0.006)


@pytest.mark.parametrize(
    "name",
    [
        "endpoint",
        "persistent",
        *(pytest.param(n, marks=pytest.mark.slow) for n in ("orbit", "hmc")),
    ],
)
def test_one_dimension(name):
    """The auxiliary coordinate of a target with one coordinate leaves it alone."""
    sampler = SAMPLERS[name]
    if name == "persistent":
        sampler = dataclasses.replace(sampler, kappa=None)
    assert_exact(sampler, isotropic(1), steps=500)


def test_the_flow_as_it_is_is_wrong_at_such_steps():
    """What the orbit kernel mends: .781, and the flow at the same step is off by a fifth."""
    flow = ESH(0.99, kappa=1.0, refresh=3.0)
    got = stationary(flow, PLANE, chains=2000, steps=1000, burn=200)
    assert got.energy.mean > 0.9 and got.energy.sigmas(PLANE.truth.energy) > 50


@dataclasses.dataclass(frozen=True)
class WrongVolume:
    """Endpoint Metropolis with d in place of d − 1 in the ratio."""

    step_size: float = 0.3
    steps: int = 10

    def build(self, dim, **unneeded):
        params = endpoint.Params(self.step_size, float(dim), float(dim), float(self.steps))
        return Build(endpoint.kernel(ESH_FLOW, LEAPFROG), params)


def test_the_jacobian_has_d_minus_one():
    """With d the kernel accepts what the flow at κ = d visits, e^(−E/2): about 1.46 for .781."""
    right = ESH(0.3, adjust="endpoint", steps=10)
    assert_exact(right, PLANE, steps=2000)
    wrong = stationary(WrongVolume(), PLANE, chains=2000, steps=2000, burn=1000)
    assert wrong.energy.sigmas(PLANE.truth.energy) > 50
    assert 1.4 < wrong.energy.mean < 1.5


@pytest.mark.parametrize(
    "steps", [1000, pytest.param(20_000, marks=pytest.mark.slow)], ids=["quick", "sharp"]
)
@pytest.mark.parametrize("step_size", [1.4, 2.0, 2.5])
def test_persistent_at_low_acceptance(step_size, steps):
    """Σx⁴/4 in d = 3, whose E[E] is .75, at first acceptances between .3 and .7."""
    target = quartic(3)
    sampler = ESH(step_size, kappa=2.0, adjust="persistent", refresh=4.0)
    got = assert_exact(sampler, target, steps=steps, chains=2000)
    assert target.truth.energy == 0.75 and got.energy.error < 0.003
    path = schuss.trajectory(target, chains=500, sampler=sampler, steps=200, seed=5, engine="jax")
    first = np.concatenate([np.ones((1, 500), bool), path.complete[:-1]])
    assert 0.25 < path.acceptance[first].mean() < 0.72


@pytest.mark.parametrize(
    ("name", "keep"),
    [
        ("endpoint", "last"),
        ("orbit", "last"),
        pytest.param("hmc", "last", marks=pytest.mark.slow),
        pytest.param("endpoint", "reservoir", marks=pytest.mark.slow),
        ("orbit", "reservoir"),
        ("persistent", "reservoir"),
    ],
)
def test_samples_of_an_exact_sampler_are_samples(name, keep):
    """What a call returns, not only weighted means: 5 sigma of 20 000 independent samples."""
    init = PLANE.sample(np.random.default_rng(shifted(3)), 20_000)
    sampler = schuss.Sampler(SAMPLERS[name], steps=40, keep=keep, seed=shifted(8), engine="jax")
    energy = PLANE.energy(np, sampler.run(target=PLANE, init=init).x)
    error = energy.std() / len(init) ** 0.5
    assert abs(energy.mean() - PLANE.truth.energy) < 5 * error, (energy.mean(), error)
