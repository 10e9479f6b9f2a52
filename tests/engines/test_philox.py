"""Philox 2x32 against its published answers, and the normals made from it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from schuss.engines.philox import PHILOX, normals, philox, uniforms

# Counter, key and answer, as Random123 lists them for ten and for seven rounds.
KNOWN = [
    (10, (0x00000000, 0x00000000), 0x00000000, (0xFF1DAE59, 0x6CD10DF2)),
    (10, (0xFFFFFFFF, 0xFFFFFFFF), 0xFFFFFFFF, (0x2C3F628B, 0xAB4FD7AD)),
    (10, (0x243F6A88, 0x85A308D3), 0x13198A2E, (0xDD7CE038, 0xF62A4C12)),
    (7, (0x00000000, 0x00000000), 0x00000000, (0x257A3673, 0xCD26BE2A)),
    (7, (0xFFFFFFFF, 0xFFFFFFFF), 0xFFFFFFFF, (0xAB302C4D, 0x3DC9D239)),
    (7, (0x243F6A88, 0x85A308D3), 0x13198A2E, (0xBEDBBE6B, 0xE4C770B3)),
]


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize(("rounds", "counter", "key", "answer"), KNOWN)
def test_known_answers(rounds, counter, key, answer, wide):
    with jax.enable_x64(wide):
        found = philox(*map(jnp.uint32, counter), jnp.uint32(key), rounds)
        assert tuple(int(word) for word in found) == answer


def test_normals():
    """A million of them: Kolmogorov–Smirnov at 1e-6, and the directions' second moments at 5 sd."""
    z = np.asarray(normals(jax.random.key(3, impl=PHILOX), jnp.int32(7), (200_000, 5)), float)
    assert scipy.stats.kstest(z.ravel(), "norm").pvalue > 1e-6
    products = z.T @ z / len(z)
    assert np.all(np.abs(products - np.eye(5)) < 5 * np.sqrt((1 + np.eye(5)) / len(z)))
    squares = np.corrcoef((z**2).T) - np.eye(5)
    assert np.all(np.abs(squares) < 5 / len(z) ** 0.5)


def test_steps_and_seeds_differ():
    one, two = (jax.random.key(seed, impl=PHILOX) for seed in (0, 1))
    drawn = [normals(key, jnp.int32(t), (50, 4)) for key in (one, two) for t in (1, 2)]
    for i in range(4):
        for j in range(i):
            assert not np.any(drawn[i] == drawn[j])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_uniforms(dtype):
    """100 000 triples: Kolmogorov–Smirnov at 1e-6, correlations with each other and normals."""
    key, count = jax.random.key(3, impl=PHILOX), 100_000
    with jax.enable_x64(dtype == "float64"):
        u = np.asarray(uniforms(key, jnp.int32(7), (count, 3), jnp.dtype(dtype)))
        z = np.asarray(normals(key, jnp.int32(7), (count, 3)))
    assert u.dtype == dtype and u.min() > 0 and u.max() < 1
    assert scipy.stats.kstest(u.ravel(), "uniform").pvalue > 1e-6
    together = np.corrcoef(np.concatenate([u, z, z**2], axis=1).T) - np.eye(9)
    assert np.abs(together).max() < 5 / count**0.5


def test_uniforms_through_jax():
    """100 000 uniforms in both precisions, Kolmogorov–Smirnov at 1e-6."""
    key = jax.random.key(5, impl=PHILOX)
    for wide in (False, True):
        with jax.enable_x64(wide):
            u = np.asarray(jax.random.uniform(jax.random.fold_in(key, 2), (100_000,)))
        assert u.dtype == (np.float64 if wide else np.float32)
        assert scipy.stats.kstest(u, "uniform").pvalue > 1e-6
