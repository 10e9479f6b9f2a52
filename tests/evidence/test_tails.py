"""Tails too heavy for particles that come from a normal density are told; lighter ones are let be.

The errors of Cauchy's log Z are three times those claimed. Five seeds each: a check that failed
once in five runs would be seen with probability 0.67.
"""

import warnings

import jax.numpy as jnp
import numpy as np
import pytest

import schuss

ROTATION = np.linalg.qr(np.random.default_rng(0).standard_normal((10, 10)))[0]
PRECISION = jnp.asarray((ROTATION * np.logspace(-2, 2, 10)) @ ROTATION.T)


def student(freedom):
    return lambda x: (freedom + 1) / 2 * jnp.sum(jnp.log1p(x**2 / freedom))


def heavy(energy, dim, seed):
    with warnings.catch_warnings(action="ignore", category=schuss.NotConverged):
        found = schuss.evidence(
            energy=energy, reference=schuss.Normal(dim=dim, sd=3.0), seed=seed, progress=False
        )
    return [reason for reason in found.verdict.reasons if "tails that fall" in reason.what]


CAUCHY = student(1)
LIGHT = {
    "t4": (student(4), 5),
    "exponential": (lambda x: jnp.sum(jnp.sqrt(1e-4 + x**2)), 3),
    "normal": (lambda x: jnp.sum(x**2) / 2, 1),
    "correlated": (lambda x: x @ PRECISION @ x / 2, 10),
}


@pytest.mark.parametrize("dim", [1, 5])
@pytest.mark.parametrize("seed", range(5))
def test_cauchy_is_told(seed, dim):
    (reason,) = heavy(CAUCHY, dim, seed)
    assert reason.value == pytest.approx(1, abs=0.1)
    assert "reference with tails as heavy" in reason.remedy


@pytest.mark.parametrize("name", LIGHT)
@pytest.mark.parametrize("seed", range(5))
def test_lighter_tails_are_let_be(seed, name):
    assert not heavy(*LIGHT[name], seed)
