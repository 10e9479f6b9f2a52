"""Lyapunov exponents against the variational equations, and where chaos is known to be."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from seeds import shifted

import schuss
from schuss import targets
from schuss.diagnostics import lyapunov

FLOW = schuss.ESH(step_size=0.05)


def exact_start(target, chains, seed=0):
    return target.sample(np.random.default_rng(seed), chains)


@pytest.mark.statistics
@pytest.mark.parametrize(
    ("target", "low", "high"),
    [
        # Integrable: the distance grows in proportion to time, log(2)/500 in the second half.
        (targets.isotropic(10), -0.001, 0.003),
        (targets.icg(), 0.0003, 0.004),
        (targets.quartic(20), 0.03, 0.05),
        (targets.toy_mog(), 0.15, 0.4),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_where_the_flow_is_chaotic(target, low, high):
    """Mean exponents over 64 chains: their standard errors are a tenth of these margins."""
    assert low < lyapunov(target, init=exact_start(target, 64), sampler=FLOW).mean() < high


@pytest.mark.statistics
def test_agrees_with_the_variational_equations():
    """The ODE and its tangent by RK4 and forward-mode autodiff; both means to 5 sigma (10 %)."""
    target, chains = targets.quartic(10), 64
    found = lyapunov(target, init=exact_start(target, chains), sampler=FLOW)
    expected = tangent_exponents(target, exact_start(target, chains, seed=shifted(1)), 0.05, 20_000)
    error = np.hypot(found.std(), expected.std()) / np.sqrt(chains)
    assert 5 * error < 0.12 * expected.mean()
    assert abs(found.mean() - expected.mean()) < 5 * error


def tangent_exponents(target, x, h, steps):
    rng = np.random.default_rng(7)
    u = rng.standard_normal(x.shape)
    u = u / np.linalg.norm(u, axis=1, keepdims=True)
    with jax.enable_x64(True):
        state, tangent = (
            jnp.asarray(np.stack([x, u])),
            jnp.asarray(rng.standard_normal((2, *x.shape))),
        )

        def slope(state):
            x, u = state
            force = target.gradient(jnp, x) / target.dim
            return jnp.stack([u, -(force - u * jnp.sum(u * force, axis=1, keepdims=True))])

        def rk4(state):
            a = slope(state)
            b = slope(state + h / 2 * a)
            c = slope(state + h / 2 * b)
            return state + h / 6 * (a + 2 * b + 2 * c + slope(state + h * c))

        def advance(carry, _):
            state, tangent = jax.jvp(rk4, carry[:1], carry[1:])
            length = jnp.sqrt(jnp.sum(tangent**2, axis=(0, 2)))
            return (state, tangent / length[:, None]), jnp.log(length)

        _, growth = jax.lax.scan(advance, (state, tangent), length=steps)
        return np.asarray(growth[steps // 2 :].mean(axis=0)) / h


@pytest.mark.parametrize("engine", ["jax", "torch"])
def test_engines_agree(engine):
    """400 steps on a regular target; a distance of 1e-7 is known to 1e-16."""
    pytest.importorskip(engine)
    target = targets.icg()
    given = {"init": exact_start(target, 3), "sampler": FLOW, "steps": 400}
    expected = lyapunov(target, **given, engine="numpy")
    np.testing.assert_allclose(lyapunov(target, **given, engine=engine), expected, atol=1e-8)


def test_time_of_the_unscaled_flow():
    """Newton's harmonic oscillator isn't chaotic, in its own time either."""
    target = targets.isotropic(2)
    sampler = schuss.Unscaled(step_size=0.05, q=0.0)
    assert np.abs(lyapunov(target, init=exact_start(target, 8), sampler=sampler)).max() < 0.002


def test_frozen_chains_have_no_exponent():
    def energy(x):
        return jnp.where(x[0] > 0, jnp.nan, 0.5 * jnp.sum(x**2))

    init = np.array([[-0.1, 0.0], [-0.1, 1.0]])
    assert np.isnan(lyapunov(energy=energy, init=init, sampler=FLOW, steps=2000)).all()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"sampler": schuss.ULA()}, "deterministic flow"),
        ({"sampler": schuss.ESH(refresh=1.0)}, "deterministic flow"),
        ({"sampler": schuss.ESH(adjust="orbit")}, "deterministic flow"),
        ({"sampler": schuss.ESH(box=(-1.0, 2.0))}, "deterministic flow"),
        ({"sampler": schuss.ESH(step_size=[0.1] * 4)}, "step_size must be one number"),
        ({"steps": 150}, "steps must be at least twice"),
        ({"renormalise": 0}, "renormalise must be"),
        ({"discard": 1.0}, "discard must be"),
        ({"init": np.zeros((4, 10), np.float32)}, "init must be float64"),
    ],
)
def test_bad_input(given, words):
    given = {"init": np.ones((4, 10)), **given}
    with pytest.raises(ValueError, match=words):
        lyapunov(targets.isotropic(10), **given)


def test_a_line_has_no_chaos():
    with pytest.raises(ValueError, match="at least 2 coordinates"):
        lyapunov(targets.isotropic(1), init=np.ones((4, 1)))
