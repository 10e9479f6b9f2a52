"""Every kernel under the strict array API, where nothing that one library adds can slip in."""

import array_api_strict as strict
import numpy as np
import pytest

import schuss
from schuss.core import flow
from schuss.core.dynamics import NEWTON
from schuss.core.integrators import INTEGRATORS, LEAPFROG
from schuss.core.kernel import Noise

from .energies import bowl

CHAINS, DIM, STEPS = 4, 3, 5
BOX = (np.asarray([-1.0, -np.inf, -2.0]), np.asarray([1.0, 2.0, np.inf]))


def cases():
    """Names and algorithms."""
    for scheme in INTEGRATORS:
        for weight in ("energy", "speed", "time"):
            yield f"flow-{weight}-{scheme}", schuss.ESH(0.1, integrator=scheme, weight=weight)
        for box in (None, BOX):
            name = f"noisy-{'free' if box is None else 'boxed'}-{scheme}"
            yield name, schuss.ESH(0.1, refresh=2.0, integrator=scheme, box=box)
        yield f"boxed-{scheme}", schuss.ESH(0.5, integrator=scheme, box=BOX)
        for adjust in ("endpoint", "orbit"):
            sampler = schuss.ESH(0.4, integrator=scheme, adjust=adjust, steps=3)
            yield f"{adjust}-{scheme}", sampler
        sampler = schuss.ESH(0.5, integrator=scheme, adjust="persistent", refresh=2.0)
        yield f"persistent-{scheme}", sampler
    steps = np.asarray([0.1, 0.2, 0.05, 0.3])
    yield "flow-step-per-chain", schuss.ESH(steps, kappa=2.0, refresh=1.0)
    yield "newton", schuss.Unscaled(0.1, q=0)
    yield "q", schuss.Unscaled(0.1, q=0.5)
    yield "unscaled", schuss.Unscaled(0.05)
    yield "ula", schuss.ULA(0.1)
    yield "mala", schuss.MALA(0.3)
    yield "hmc", schuss.HMC(0.3, steps=2)
    yield "nose-hoover", schuss.NoseHoover(0.1)
    yield "clamped", schuss.ULA(0.8, box=BOX, boundary="clamp")
    yield "boxed-hmc", schuss.HMC(0.8, steps=2, box=BOX)
    yield "boxed-nose-hoover", schuss.NoseHoover(0.5, box=BOX)


CASES = dict(cases())


def follow(xp, build):
    """States, infos and views over a few steps, as NumPy arrays."""
    kernel, params = build
    rng = np.random.default_rng(0)

    def array(value):
        return xp.asarray(np.asarray(value, float), copy=True)

    def noise(count):
        normal, uniform = rng.standard_normal((CHAINS, DIM)), rng.random((CHAINS, max(count, 1)))
        return Noise(array(normal), array(uniform) if count else None)

    params = type(params)(*map(array, params))
    x = array(rng.standard_normal((CHAINS, DIM)))
    seen = []
    with np.errstate(all="ignore"):
        state = kernel.init(xp, x, *bowl(xp, x), noise(kernel.uniforms), params)
        for _ in range(STEPS):
            given = noise(kernel.uniforms)
            state, info = kernel.step(xp, lambda x: bowl(xp, x), state, given, params)
            views = kernel.observe(xp, state, params), kernel.draw(state)
            seen += [*state, *info, *views[0], *views[1], kernel.alive(xp, state)]
    return [np.asarray(part) for part in seen]


def compare(build):
    ours, theirs = follow(strict, build), follow(np, build)
    assert len(ours) == len(theirs)
    for p, q in zip(ours, theirs, strict=True):
        assert p.dtype == q.dtype and p.shape == q.shape
        np.testing.assert_allclose(p, q, rtol=1e-12, atol=1e-12)
    return theirs


@pytest.mark.parametrize("name", CASES)
def test_strict_equals_numpy(name):
    parts = compare(CASES[name].build(DIM))
    assert all(len(part) == CHAINS for part in parts)


@pytest.mark.parametrize("refreshment", ["none", "partial", "full"])
def test_newton_with_every_refreshment(refreshment):
    kernel = flow.kernel(NEWTON, LEAPFROG, refreshment=refreshment, speed=False)
    compare((kernel, flow.Params(0.1, 1.0, 0.3, -np.inf, np.inf)))
