"""The step size of a chain follows its energy error, and a step that can't be made isn't."""

import numpy as np
import pytest

from schuss import engines
from schuss.core import adaptive
from schuss.core.dynamics import ESH
from schuss.core.integrators import LONG_STEP, MINIMAL_NORM
from schuss.core.kernel import Noise
from schuss.engines.engine import Job, bare

from .energies import bowl
from .test_strict import compare

KERNEL = adaptive.kernel(ESH)
CHAINS, DIM, STEPS = 6, 5, 40
LENGTH, WANTED, MEMORY, SHRINK, GROW, LONGEST = 3.0, 0.02, 0.8, 0.5, 1.5, 0.7
PARAMS = adaptive.Params(0.1, DIM - 1.0, 2 / LENGTH, WANTED, MEMORY, SHRINK, GROW, LONGEST)
_RNG = np.random.default_rng(0)
START = _RNG.standard_normal((CHAINS, DIM))
NORMAL = _RNG.standard_normal((STEPS + 1, CHAINS, DIM))


def walled(x):
    """The bowl with a wall: chains beyond x₁ = 1.2 have no energy, and steep ground before it."""
    energy, g = bowl(np, x)
    beyond = x[:, 0] > 1.2
    return np.where(beyond, np.nan, energy), np.where(beyond[:, None], np.inf, g)


def cliff(x):
    """The bowl with a cliff of 10⁵ in place of the wall."""
    energy, g = bowl(np, x)
    return energy + 1e5 * (x[:, 0] > 1.2), g


def kick(u, g, time):
    """The velocity and the gain in log|v| in a field g, κ = d − 1, by hyperbolic functions."""
    size = np.linalg.norm(g)
    e, delta = -g / size, time * size / (DIM - 1)
    c = u @ e
    gain = np.cosh(delta) + c * np.sinh(delta)
    return (u + (np.sinh(delta) + c * (np.cosh(delta) - 1)) * e) / gain, np.log(gain)


def transcribed(energy_of, chain, count, lam):
    """One chain by the formulas in the module's docstring: x, ε, S, T and what each step told."""
    x, z = START[chain], NORMAL[0, chain]
    u, h, total, number = z / np.linalg.norm(z), PARAMS.step_size, 0.0, 0.0
    rows = []

    def at(x):
        energy, g = energy_of(x[None])
        return energy[0], g[0]

    for t in range(1, count + 1):
        z = NORMAL[t, chain]
        before, g = at(x)
        there, energy, r = x, before, 0.0
        velocity, gained = kick(u, g, lam * h)
        r += gained
        for share in (1 - 2 * lam, lam):
            there = there + h / 2 * velocity
            energy, g = at(there)
            if not np.isfinite(energy) or not np.isfinite(g).all():
                break
            velocity, gained = kick(velocity, g, share * h)
            r += gained
        error = energy - before + (DIM - 1) * r
        sound = bool(np.isfinite(error)) and abs(error) < 1000
        if sound:
            x, u = there, velocity
        else:
            u = z / np.linalg.norm(z)
        u = u + np.sqrt(np.expm1(2 * h / LENGTH) / DIM) * z
        u = u / np.linalg.norm(u)
        total = MEMORY * total + ((error if sound else 1000.0) ** 2 / DIM) / h**6
        number = MEMORY * number + 1
        h = np.clip((total / number / WANTED) ** (-1 / 6), SHRINK * h, GROW * h)
        h = min(h, LONGEST)
        rows.append((x, u, h, total, number, error, sound))
    return [np.array(part) for part in zip(*rows, strict=True)]


def followed(energy_of, count=STEPS, params=PARAMS, start=START, kernel=KERNEL):
    """The same by the kernel: states and infos, time first."""
    x = np.asarray(start)
    params = adaptive.Params(*(np.asarray(value, x.dtype) for value in params))
    states, infos = [], []
    with np.errstate(all="ignore"):
        normal = NORMAL.astype(x.dtype)
        state = kernel.init(np, x, *energy_of(x), Noise(normal[0], None), params)
        for t in range(1, count + 1):
            noise = Noise(normal[t], None)
            state, info = kernel.step(np, energy_of, state, noise, params)
            states.append(state)
            infos.append(info)
    return (
        adaptive.State(*map(np.stack, zip(*states, strict=True))),
        type(infos[0])(*map(np.stack, zip(*infos, strict=True))),
    )


@pytest.mark.parametrize("energy_of", [lambda x: bowl(np, x), walled, cliff])
@pytest.mark.parametrize("lam", [0.1931833275037836, 0.2155])
def test_error_and_rule_are_those_of_a_transcription(energy_of, lam):
    state, info = followed(energy_of, params=PARAMS._replace(kick=lam))
    refused = 0
    for chain in range(CHAINS):
        x, u, h, total, number, error, sound = transcribed(energy_of, chain, STEPS, lam)
        np.testing.assert_array_equal(info.complete[:, chain], sound)
        np.testing.assert_allclose(state.x[:, chain], x, atol=1e-10)
        np.testing.assert_allclose(state.u[:, chain], u, atol=1e-10)
        np.testing.assert_allclose(state.step_size[:, chain], h, rtol=1e-9)
        np.testing.assert_allclose(state.errors[:, chain] / h**6, total, rtol=1e-8)
        np.testing.assert_allclose(state.count[:, chain], number, rtol=1e-12)
        np.testing.assert_allclose(info.energy_error[sound, chain], error[sound], atol=1e-10)
        refused += np.sum(~sound)
    assert np.isfinite(state.x).all() and np.isfinite(state.energy).all()
    assert np.isfinite(state.g).all() and np.isnan(info.acceptance).all()
    assert (refused > 0) == (energy_of in (walled, cliff))
    grown = state.step_size[1:] / state.step_size[:-1]
    assert grown.min() >= SHRINK * (1 - 1e-12) and grown.max() <= GROW * (1 + 1e-12)
    assert state.step_size.max() == LONGEST


def test_a_step_that_is_refused_leaves_the_chain_with_a_fresh_velocity():
    state, info = followed(walled)
    steps, chains = np.nonzero(~info.complete[1:])
    assert len(steps)
    for t, chain in zip(steps + 1, chains, strict=True):
        np.testing.assert_array_equal(state.x[t, chain], state.x[t - 1, chain])
        assert state.energy[t, chain] == state.energy[t - 1, chain]
        np.testing.assert_array_equal(state.g[t, chain], state.g[t - 1, chain])
        fresh = NORMAL[t + 1, chain] / np.linalg.norm(NORMAL[t + 1, chain])
        np.testing.assert_allclose(state.u[t, chain], fresh, atol=1e-12)


def test_with_bounds_of_one_the_step_stays():
    params = PARAMS._replace(shrink=1.0, grow=1.0)
    state, _ = followed(walled, params=params)
    np.testing.assert_array_equal(state.step_size, params.step_size)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_without_any_error_the_step_grows_to_its_bounds(dtype):
    """On a plain nothing is lost: S = 0 must not divide."""

    def plain(x):
        return np.zeros_like(x[:, 0]), np.zeros_like(x)

    state, info = followed(plain, start=START.astype(dtype))
    assert state.step_size.dtype == dtype and not info.energy_error.any()
    assert np.isfinite(state.x).all()
    np.testing.assert_allclose(state.step_size[-1], LONGEST, rtol=1e-6)
    np.testing.assert_allclose(state.step_size[0], GROW * PARAMS.step_size, rtol=1e-6)


def test_errors_come_out_as_wanted():
    """With a long memory the mean of ξ is ξ*: 64 chains on a Gaussian, to a fifth.

    ξ has about the spread of its mean, so 64 · 300 values know it to a percent; the rest is
    that ε changes on the way.
    """
    rng = np.random.default_rng(1)
    params = PARAMS._replace(memory=0.98, wanted=1e-3, longest=100.0)
    params = adaptive.Params(*map(np.asarray, params))

    def gaussian(x):
        return (x**2).sum(axis=-1) / 2, x

    x = rng.standard_normal((64, DIM))
    state = KERNEL.init(np, x, *gaussian(x), Noise(rng.standard_normal(x.shape), None), params)
    squares = []
    for _ in range(500):
        noise = Noise(rng.standard_normal(x.shape), None)
        state, info = KERNEL.step(np, gaussian, state, noise, params)
        squares.append(info.energy_error**2 / DIM)
    assert np.mean(squares[200:]) == pytest.approx(1e-3, rel=0.2)


def test_strict_array_api_agrees():
    """Other shares of the first kick as well, and a step for each chain."""
    for scheme in (MINIMAL_NORM, LONG_STEP):
        params = PARAMS._replace(kick=scheme.kicks[0])
        compare((KERNEL, params._replace(kappa=2.0)))
        compare((KERNEL, params._replace(step_size=np.array([0.1, 0.2, 0.05, 0.3]))))


@pytest.mark.parametrize("name", ["numpy", "jax", "torch"])
def test_engines_agree(name):
    """The same injected noise, by the loop of each engine, to 1e-10 after 40 steps."""
    engine = engines.get(name)
    like = engine.asarray(START)

    def energy(x):
        return bowl(engine.xp, x)[0]

    def value_and_grad(x):
        return bowl(np, x)

    grad_fn = engine.value_and_grad(value_and_grad if name == "numpy" else energy, like)
    params = adaptive.Params(*(engine.asarray(value, like) for value in PARAMS))
    job = Job(KERNEL, grad_fn, params, Noise(engine.asarray(NORMAL, like), None))
    state, _ = engine.start(job, like)
    state, _, record = engine.record(job, state, 0, STEPS, 1, bare, 64)
    want, told = followed(value_and_grad)
    for got, expected in zip(record.seen, (want.x, want.energy, want.g), strict=True):
        np.testing.assert_allclose(engine.to_numpy(got), expected, atol=1e-10)
    np.testing.assert_allclose(
        engine.to_numpy(record.info.energy_error), told.energy_error, atol=1e-10
    )
    np.testing.assert_allclose(engine.to_numpy(state.step_size), want.step_size[-1], rtol=1e-9)
    np.testing.assert_allclose(engine.to_numpy(state.errors), want.errors[-1], rtol=1e-8)
