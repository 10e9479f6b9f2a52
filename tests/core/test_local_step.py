"""Steps that follow the gradient: their law, and that nothing of the target is lost by it."""

import numpy as np
import pytest
from seeds import shifted

from schuss.core import local_step, persistent
from schuss.core.dynamics import ESH
from schuss.core.integrators import LEAPFROG
from schuss.core.kernel import Noise

EVERYWHERE = np.inf, 1e-20
"""Knee and spread of local steps that are the same everywhere."""


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_steps_shorten_past_the_knee(dtype):
    """ε on gentle slopes and ε e^knee/|g| on steep ones, whatever their size."""
    lengths = np.array([0, 1e-30, 1.0, 1e3, 1e30], dtype)
    g = lengths[:, None] * np.array([0.6, 0.8], dtype)
    with np.errstate(divide="ignore"):
        found = local_step.shortening(np, g, dtype(3))
    want = [0, 0, 0, 3 - np.log(1e3), 3 - np.log(1e30)]
    np.testing.assert_allclose(found, want, atol=1e-6, rtol=1e-5)
    assert found.dtype == dtype


def test_surprise_is_that_of_a_draw():
    """The density of what `draw` makes of a uniform number is du/d(scale)."""
    u = np.linspace(0.001, 0.999, 500)
    middle, spread, step = 0.5, 0.3, 1e-6
    above, here, below = (
        local_step.draw(np, middle, u + change, spread) for change in (step, 0, -step)
    )
    density = np.exp(-local_step.surprise(np, here, middle, spread)) / spread
    np.testing.assert_allclose(density * (above - below) / (2 * step), 1, rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_local_steps_may_be_the_same_everywhere(dtype):
    """With the knee out of reach and next to no spread the kernel is the one without local steps.

    20 steps of 50 chains in a funnel, some of them refused.
    """
    rng = np.random.default_rng(2)
    x = rng.standard_normal((50, 4)).astype(dtype)
    parts = map(dtype, (0.7, 3.0, 3.0, 0.0, 1.0, 0.3, *EVERYWHERE))
    params = persistent.Params(*parts)._replace(nu=np.sqrt(np.expm1(dtype(0.3)) / 4))
    local, plain = (persistent.kernel(ESH, LEAPFROG, local=local) for local in (True, False))

    def noise():
        return Noise(rng.standard_normal((50, 4)).astype(dtype), rng.random((50, 2), dtype))

    first = noise()
    states = [kernel.init(np, x, *funnel(x), first, params) for kernel in (local, plain)]
    refused = 0
    for _ in range(20):
        drawn = noise()
        (one, told), (other, _) = (
            kernel.step(np, funnel, state, drawn, params)
            for kernel, state in zip((local, plain), states, strict=True)
        )
        for part in ("x", "u", "to_x", "to_u", "count", "s"):
            np.testing.assert_array_equal(getattr(one, part), getattr(other, part))
        states, refused = [one, other], refused + np.sum(told.acceptance < drawn.uniform[:, 0])
    assert refused > 20 and one.x.dtype == dtype


def funnel(x):
    """y ~ N(0, 1), x_i ~ N(0, e^(2y)), i = 1, 2, 3."""
    y, rest = x[:, :1], x[:, 1:]
    squares = np.sum(rest**2, axis=1, keepdims=True) * np.exp(-2 * y)
    energy = (y**2 / 2 + 3 * y + squares / 2)[:, 0]
    return energy, np.concatenate([y + 3 - squares, rest * np.exp(-2 * y)], axis=1)


@pytest.mark.parametrize("local", [True, False])
def test_exact_draws_stay_exact(local):
    """20 000 chains from exact draws of a funnel, 40 steps that are each accepted or refused.

    Four moments at 4.5 standard errors, so a right kernel fails once in 4·10⁴. Without the change
    of −log p(h | x) in W the mean of y is 30 errors off.
    """
    rng = np.random.default_rng(shifted(1))
    n, dim = 20_000, 4
    y = rng.standard_normal((n, 1))
    x = np.concatenate([y, np.exp(y) * rng.standard_normal((n, 3))], axis=1)
    kernel = persistent.kernel(ESH, LEAPFROG, local=local)
    parts = 0.7, dim - 1.0, dim - 1.0, 0.2, 0.0, 0.3, np.log(2.0), 0.2
    params = persistent.Params(*map(np.float64, parts))

    def noise():
        return Noise(rng.standard_normal((n, dim)), rng.uniform(size=(n, kernel.uniforms)))

    state = kernel.init(np, x, *funnel(x), noise(), params)
    moved = np.zeros(n)
    for _ in range(40):
        before = state.x
        with np.errstate(all="ignore"):
            state, info = kernel.step(np, funnel, state, noise(), params)
        assert info.complete.all()
        moved += np.any(state.x != before, axis=1)
    assert 0.3 < moved.mean() / 40 < 0.95
    y, rest = state.x[:, 0], state.x[:, 1:]
    z = rest * np.exp(-y[:, None])
    for values, mean in ((y, 0), (y**2, 1), (y**3, 0), (z**2, 1)):
        error = values.std() / np.sqrt(values.size)
        assert abs(values.mean() - mean) < 4.5 * error
