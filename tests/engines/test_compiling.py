"""Options for XLA, and gradients that are compiled on their own."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from schuss.engines import compiling


def test_options_that_xla_does_not_know_are_left_out(monkeypatch):
    known = "xla_backend_optimization_level"
    monkeypatch.setattr(compiling, "WISHES", {"xla_of_tomorrow": 1, known: 1})
    compiling.options.cache_clear()
    try:
        assert compiling.options("cpu") == {known: 1}
        assert compiling.options("gpu") == {}
    finally:
        compiling.options.cache_clear()


@pytest.mark.parametrize("chains", [2, 64])
def test_a_gradient_apart_is_the_same(chains):
    """Bit by bit, in a branch of its own where the batch is large and inside the loop otherwise."""
    x = np.random.default_rng(0).standard_normal((chains, 40)).astype(np.float32)

    def grad_fn(x):
        return jnp.sum(x**4, axis=1), 4 * x**3

    @jax.jit
    def both(x, t):
        return compiling.apart(grad_fn, t >= 0)(x), grad_fn(x)

    for found, right in zip(*both(x, 3), strict=True):
        np.testing.assert_array_equal(found, right)
    text = both.lower(x, 3).as_text()
    assert bool(re.search(r"stablehlo\.(case|if)", text)) == (chains == 64)
