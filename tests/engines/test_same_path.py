"""The same injected noise gives the same path on every engine."""

import functools

import numpy as np
import pytest

import schuss

from .algorithms import ALGORITHMS, CHAINS, DETERMINISTIC, DIM, SERIES, START, STEPS, TARGET

# torch's own compiler imports a module that torch itself deprecates.
pytestmark = []

LENGTH = 200
_RNG = np.random.default_rng(1)
NOISE = schuss.Noise(
    _RNG.standard_normal((LENGTH + 1, CHAINS, DIM)), _RNG.uniform(size=(LENGTH + 1, CHAINS, 3))
)
VELOCITY = _RNG.standard_normal((CHAINS, DIM))


def follow(name, engine, noise=NOISE, velocity=None, **options):
    return schuss.trajectory(
        TARGET,
        init=START,
        sampler=ALGORITHMS[name],
        steps=LENGTH,
        engine=engine,
        noise=noise,
        velocity=velocity,
        **options,
    )


by_numpy = functools.cache(lambda name: follow(name, "numpy"))


def assert_close(path, want):
    """To 1e-12 of the size of each series, decisions exactly."""
    np.testing.assert_array_equal(path.complete, want.complete)
    for field in SERIES + STEPS[:3]:
        a, b = getattr(path, field), getattr(want, field)
        size = np.abs(b[np.isfinite(b)]).max(initial=1)
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12 * size, err_msg=field)


SLOW_IN_JAX = (
    "esh-kappa",
    "esh-speed",
    "esh-minimal-norm",
    "esh-each-its-step",
    "mala",
    "unscaled-0",
    "unscaled-half",
)
"""Variants of others in numbers only, or nearly so."""


@pytest.mark.parametrize(
    ("name", "engine"),
    [
        pytest.param(
            name,
            engine,
            marks=[pytest.mark.slow] if engine == "jax" and name in SLOW_IN_JAX else [],
        )
        for engine in ("jax", "torch")
        for name in ALGORITHMS
    ],
)
def test_engines_agree(name, engine):
    assert_close(follow(name, engine), by_numpy(name))


@pytest.mark.parametrize("name", ["esh-endpoint", "esh-orbit", "esh-persistent", "mala", "hmc"])
def test_noise_decides_both_ways(name):
    """Else the agreement above would say nothing of accepted and refused proposals."""
    path = by_numpy(name)
    moved = np.any(path.x[1:] != path.x[:-1], axis=-1)[path.complete]
    assert 0.2 < moved.mean() <= 1
    if name != "esh-orbit":
        assert moved.mean() < 0.995


@pytest.mark.parametrize("name", DETERMINISTIC)
@pytest.mark.parametrize("engine", ["numpy", "torch"])
def test_velocity_is_all_that_a_deterministic_flow_needs(name, engine):
    """velocity= does what entry 0 of the injected normals does, and the seed then does nothing."""
    normal = np.concatenate([VELOCITY[None], NOISE.normal[1:]])
    want = follow(name, "numpy", noise=schuss.Noise(normal, None))
    for seed in (0, 1):
        assert_close(follow(name, engine, noise=None, velocity=VELOCITY, seed=seed), want)


def test_velocity_in_jax():
    normal = np.concatenate([VELOCITY[None], NOISE.normal[1:]])
    want = follow("esh", "numpy", noise=schuss.Noise(normal, None))
    assert_close(follow("esh", "jax", noise=None, velocity=VELOCITY), want)


def test_first_velocity_is_the_one_given():
    u = VELOCITY / np.linalg.norm(VELOCITY, axis=-1, keepdims=True)
    path = follow("esh", "numpy", noise=None, velocity=VELOCITY)
    np.testing.assert_allclose(path.u[0], u, rtol=0, atol=1e-14)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name != "esh")) for name in ALGORITHMS]
)
def test_compiled_torch_agrees(name):
    assert_close(follow(name, "torch", compile=True), by_numpy(name))
