"""Deterministic ESH conserves angular momentum on an isotropic Gaussian; noise mends that.

Over chains, the relative sd of each chain's own ⟨x_i²⟩ is about .82 without noise and .05 with a
refreshment length of 2√d. Means agree all the while: only squares, and ranks of distances from
the median, give it away.
"""

import functools

import numpy as np
import pytest
from seeds import shifted

import schuss
from schuss import ESH
from schuss.diagnostics import rhat
from schuss.targets import isotropic

pytestmark = pytest.mark.statistics

DIM = 10


@functools.cache
def path(refreshed):
    target = isotropic(DIM)
    return schuss.trajectory(
        target,
        init=target.sample(np.random.default_rng(shifted(0)), 64),
        sampler=ESH(0.5, refresh=2 * DIM**0.5 if refreshed else None),
        steps=20_000,
        every=10,
        seed=shifted(1),
        engine="jax",
    )


def spread(refreshed):
    """Relative sd over chains of ⟨x_i²⟩, pooled over the coordinates."""
    x, logs = path(refreshed).x[1:], path(refreshed).log_weight
    weights = np.exp(logs - logs.max())[..., None]
    own = np.sum(weights * x**2, axis=0) / np.sum(weights, axis=0)
    return own.std() / own.mean()


def test_chains_disagree_without_noise():
    assert 0.6 < spread(False) < 1.0


def test_chains_agree_with_noise():
    assert spread(True) < 0.1


def test_angular_momentum_is_conserved():
    """Leapfrog conserves the plane of x ∧ u, of x_i u_j − x_j u_i up to its length."""
    x, u = path(False).x[::20], path(False).u[::20]
    wedge = x[..., :, None] * u[..., None, :] - x[..., None, :] * u[..., :, None]
    plane = wedge / np.linalg.norm(wedge, axis=(-2, -1), keepdims=True)
    np.testing.assert_allclose(plane, np.broadcast_to(plane[:1], plane.shape), atol=1e-9)


def classic_rhat(x):
    """Gelman and Rubin's, on split chains: it compares means only."""
    half = len(x) // 2
    chains = np.concatenate([x[:half], x[half : 2 * half]], axis=1)
    within = chains.var(axis=0, ddof=1).mean(axis=0)
    between = half * chains.mean(axis=0).var(axis=0, ddof=1)
    return np.sqrt((half - 1) / half + between / (half * within))


def test_classic_rhat_sees_it_in_the_squares_only():
    x, y = path(False).x[1:], path(True).x[1:]
    assert np.max(classic_rhat(x)) < 1.01
    assert np.min(classic_rhat(x**2)) > 1.1
    assert max(np.max(classic_rhat(y)), np.max(classic_rhat(y**2))) < 1.02


def test_rhat_of_ranks_sees_it():
    """Folding about the median makes it see scales as well as means."""
    x, y = path(False).x[1:], path(True).x[1:]
    assert np.min(rhat(x)) > 1.1 and np.min(rhat(x**2)) > 1.1
    assert max(np.max(rhat(y)), np.max(rhat(y**2))) < 1.02
