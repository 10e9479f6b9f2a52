"""Reflection in a box."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from seeds import shifted

import schuss
from schuss.core.reflect import reflect

LOWER = np.asarray([-1.0, 0.0, -np.inf, 2.0, -np.inf])
UPPER = np.asarray([1.0, 0.3, np.inf, np.inf, -1.0])


def bounce(x, u, lower, upper):
    """One coordinate, wall by wall."""
    while x < lower or x > upper:
        x, u = (2 * lower - x, -u) if x < lower else (2 * upper - x, -u)
    return x, u


def scattered(n, seed=0):
    rng = np.random.default_rng(seed)
    return 5 * rng.standard_normal((n, 5)), rng.standard_normal((n, 5))


def test_fold_is_bouncing_wall_by_wall():
    """Up to some 50 reflections in a coordinate; infinite bounds on either side."""
    x, u = scattered(300)
    folded, flipped = reflect(np, x, u, LOWER, UPPER)
    bounces = [
        [bounce(*coordinate) for coordinate in zip(p, v, LOWER, UPPER, strict=True)]
        for p, v in zip(x, u, strict=True)
    ]
    expected = np.asarray(bounces)
    np.testing.assert_allclose(folded, expected[..., 0], atol=1e-13)
    np.testing.assert_array_equal(flipped, expected[..., 1])
    assert (folded >= LOWER).all() and (folded <= UPPER).all()


def test_inside_nothing_changes():
    """To the last bit where a bound is infinite, to rounding in a closed box."""
    x = np.asarray([[0.2, 0.1, -1e6, 3.0, -7.0], [-1.0, 0.0, 1e30, 2.0, -1.0]])
    u = np.ones((2, 5))
    folded, flipped = reflect(np, x, u, LOWER, UPPER)
    np.testing.assert_array_equal(flipped, u)
    np.testing.assert_allclose(folded, x, atol=1e-15, rtol=0)
    np.testing.assert_array_equal(folded[:, 2:], x[:, 2:])


def test_keeps_volume(x64):
    """|det| of (x, u) → (x', u') is one."""
    x, u = scattered(40)

    def folded(xu):
        return jnp.concatenate(
            reflect(jnp, xu[None, :5], xu[None, 5:], jnp.asarray(LOWER), jnp.asarray(UPPER)), axis=1
        )[0]

    jacobians = jax.jit(jax.vmap(jax.jacfwd(folded)))(np.concatenate([x, u], axis=1))
    np.testing.assert_allclose(np.abs(np.linalg.det(jacobians)), 1, rtol=1e-14)


def test_a_drift_with_reflection_is_reversible():
    """Flip, drift, reflect: back where it was."""
    rng = np.random.default_rng(1)
    x = np.where(np.isfinite(LOWER), LOWER, UPPER - 0.25)
    x = np.where(np.isfinite(x), x, 0) + 0.2 * rng.random((200, 5))
    u = rng.standard_normal((200, 5))
    there, v = reflect(np, x + 7 * u, u, LOWER, UPPER)
    back, w = reflect(np, there - 7 * v, -v, LOWER, UPPER)
    np.testing.assert_allclose(back, x, atol=1e-13)
    np.testing.assert_array_equal(w, -u)


@pytest.mark.parametrize("refresh", [None, 1.0])
def test_uniform_stays_uniform(refresh):
    """No force in a box: 20 000 points spread evenly stay so, by chi-square over 64 cells.

    The bound is exceeded with probability 1e-6 (63 degrees of freedom).
    """
    rng = np.random.default_rng(shifted(2))
    lower, upper = np.asarray([-1.0, 0.0]), np.asarray([1.0, 0.5])
    x = rng.uniform(lower, upper, size=(20_000, 2))
    path = schuss.trajectory(
        value_and_grad=lambda x: (np.zeros(len(x)), np.zeros_like(x)),
        init=x,
        sampler=schuss.ESH(step_size=0.7, box=(lower, upper), refresh=refresh),
        steps=20,
        every=20,
    )
    assert np.abs(path.x[-1] - x).min(axis=0).max() < 0.1 < np.abs(path.x[-1] - x).mean()
    counts = np.histogramdd(path.x[-1], bins=8, range=list(zip(lower, upper, strict=True)))[0]
    assert counts.sum() == len(x)
    expected = len(x) / 64
    assert np.sum((counts - expected) ** 2 / expected) < 131


def test_a_truncated_gaussian_in_a_box():
    """Mean of a half normal, √(2/π), by noisy flow with κ = d − 1 (no weights), to 5 sigma.

    The standard error comes from the means of independent chains; the step's bias is far below.
    """
    chains = 400
    rng = np.random.default_rng(shifted(3))
    path = schuss.trajectory(
        value_and_grad=lambda x: (0.5 * np.sum(x * x, axis=1), x),
        init=np.abs(rng.standard_normal((chains, 3))),
        sampler=schuss.ESH(
            step_size=0.2, kappa=2.0, refresh=2.0, box=(np.zeros(3), np.full(3, np.inf))
        ),
        steps=300,
    )
    assert (path.x >= 0).all()
    means = path.x[1:].mean(axis=(0, 2))
    error = means.std() / chains**0.5
    assert error < 0.008
    assert means.mean() == pytest.approx(np.sqrt(2 / np.pi), abs=5 * error)
