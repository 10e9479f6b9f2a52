"""Samplers in a box: exact ones sample the density that it truncates."""

import math

import numpy as np
import pytest
from scipy import stats
from seeds import shifted

import schuss
from schuss import ESH, HMC, MALA, ULA, NoseHoover, Unscaled

LOWER, UPPER = np.array([-0.5, -math.inf]), np.array([1.0, 0.3])
BOX = (LOWER, UPPER)
TRUTH = stats.truncnorm(LOWER, UPPER)


def normal(x):
    return np.sum(x * x, axis=-1) / 2, x


def follow(sampler, steps, chains=1000):
    start = np.full((chains, 2), 0.1)
    return schuss.trajectory(
        value_and_grad=normal, init=start, sampler=sampler, steps=steps, seed=shifted(0)
    )


@pytest.mark.statistics
@pytest.mark.parametrize(
    "sampler",
    [
        HMC(0.9, steps=2, box=BOX),
        MALA(0.9, box=BOX),
        ESH(0.9, adjust="endpoint", steps=2, box=BOX),
        HMC(0.9, steps=2, box=BOX, gradient_clip=0.3),
        ESH(0.9, adjust="endpoint", steps=2, box=BOX, gradient_clip=0.3),
    ],
    ids=str,
)
def test_metropolis_is_exact_in_a_box(sampler):
    """Moments of a truncated normal within 4.5 standard errors of 1000 chains: p < 1e-4 in all.

    With a gradient that is clipped, too: the test takes energies as they are.
    """
    x = follow(sampler, 40).x[-1]
    assert ((x >= LOWER) & (x <= UPPER)).all()
    for power in (1, 2):
        error = np.std(x**power, axis=0) / math.sqrt(len(x))
        assert (abs((x**power).mean(axis=0) - TRUTH.moment(power)) < 4.5 * error).all()


@pytest.mark.parametrize("boundary", ["reflect", "clamp"])
@pytest.mark.parametrize("make", [ESH, ULA, NoseHoover, Unscaled])
def test_nothing_leaves_the_box(make, boundary):
    path = follow(make(0.4, box=BOX, boundary=boundary), 30, chains=50)
    assert ((path.x >= LOWER) & (path.x <= UPPER)).all()
    at_the_wall = ((path.x == LOWER) | (path.x == UPPER)).any()
    assert at_the_wall == (boundary == "clamp")


def test_langevin_dynamics_of_images_by_hand():
    """x ← clamp(x − α min(max(g, −c), c) + σ z), as one sampler of scale 2α/σ²."""
    alpha, sigma, limit = 0.3, 0.05, 0.1
    scale = 2 * alpha / sigma**2
    noise = np.random.default_rng(0).standard_normal((21, 4, 2))
    start = np.zeros((4, 2))
    sampler = ULA(sigma, box=(-0.2, 0.2), boundary="clamp", gradient_clip=scale * limit)
    path = schuss.trajectory(
        value_and_grad=lambda x: (scale * normal(x)[0], scale * x),
        init=start,
        sampler=sampler,
        steps=20,
        noise=schuss.Noise(noise, None),
    )
    x = start
    for step in range(20):
        drift = alpha * np.clip(x, -limit, limit)
        x = np.clip(x - drift + sigma * noise[step], -0.2, 0.2)
        np.testing.assert_allclose(path.x[step + 1], x, atol=1e-12)
