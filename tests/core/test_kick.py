"""The kick against the textbook solution in many digits, and the facts everything rests on."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from schuss.core import kick

from .boost import DIGITS, exact_kick
from .tangent import across, log_volume

GENERIC = settings(derandomize=True, deadline=None, max_examples=150, database=None)
DTYPES = st.sampled_from([np.float32, np.float64])
NEAR = [0.0, 1e-6, 1e-3]


class Case(NamedTuple):
    """A velocity at the angle `off` from −e, and a kick of strength δ."""

    dtype: type
    dim: int
    off: float
    delta: float
    length: float
    kappa: float
    seed: int


@st.composite
def cases(draw, off, least=-8.0, most=2.0):
    return Case(
        draw(DTYPES),
        dim := draw(st.sampled_from([2, 3, 10])),
        draw(off),
        10 ** draw(st.floats(least, most)),
        10 ** draw(st.floats(-30, 30)),
        draw(st.sampled_from([1.0, dim - 1.0, float(dim), 7.3])),
        draw(st.integers(0, 2**20)),
    )


ANYWHERE = st.floats(0.1, math.pi) | st.just(math.pi)
CLOSE = st.sampled_from(NEAR)


def arrays(case: Case):
    """u, g, h and κ for one chain in the dtype of the case."""
    rng = np.random.default_rng(case.seed)
    e = rng.standard_normal(case.dim)
    e /= np.linalg.norm(e)
    aside = rng.standard_normal(case.dim)
    for _ in range(2):
        aside -= (aside @ e) * e
        aside /= np.linalg.norm(aside)
    u = math.sin(case.off) * aside - math.cos(case.off) * e
    # Keep h clear of the smallest normal float32, where δ would lose its digits.
    h = max(case.delta * case.kappa / case.length, 2e-38)
    return tuple(
        np.asarray(p, case.dtype) for p in (u[None], -case.length * e[None], h, case.kappa)
    )


def errors(case: Case):
    """Errors of u' (largest component), Δr and log_elapsed in ulps of one, and the exact kick."""
    u, g, h, kappa = arrays(case)
    boost = kick.approach(np, u, g, kappa)
    found = kick.turn(np, boost, h), kick.gain(np, boost, h), kick.log_elapsed(np, boost, h)
    assert all(part.dtype == case.dtype for part in found)
    assert all(np.isfinite(part).all() for part in found)
    exact = exact_kick(u[0], g[0], h, kappa)
    truths = exact.u, [exact.gain], [exact.log_elapsed]
    worst = (
        max(abs(DIGITS.mpf(float(p)) - q) for p, q in zip(np.ravel(part), truth, strict=True))
        for part, truth in zip(found, truths, strict=True)
    )
    ulp = float(np.finfo(case.dtype).eps)
    return *(float(error) / ulp for error in worst), float(h), exact


@GENERIC
@given(cases(ANYWHERE))
def test_generic_angles_are_right_to_a_few_ulps(case):
    """u' to 4 ulps, unless the kick itself stretches the angles; Δr to 6 ulps of max(δ, |Δr|).

    The largest seen in 12 000 cases: 1.7 for u' (1.0 of the stretch), 4.5 for Δr, 1.4 for time.
    """
    turn, gain, elapsed, h, exact = errors(case)
    assert turn < 4 * float(1 + exact.amplification + exact.delta * exact.turned)
    if case.off > 0.5:
        assert turn < 4
    assert gain < 6 * float(max(exact.delta, abs(exact.gain)))
    assert elapsed < 4 * float(1 + abs(math.log(h)) + exact.delta)


@GENERIC
@given(cases(CLOSE, most=1.0))
@example(Case(np.float32, 10, 1e-3, 10.0, 1e25, 10.0, 3))
@example(Case(np.float32, 2, 1e-6, 10.0, 1.0, 1.0, 4))
@example(Case(np.float32, 3, 0.0, 10.0, 1.0, 2.0, 5))
def test_close_to_minus_e_no_digit_is_lost_that_rounding_e_does_not_lose(case):
    """An error of one ulp in e is stretched by sin θ'/sin θ. Nothing is added to that."""
    turn, gain, elapsed, h, exact = errors(case)
    assert turn < 3 * float(1 + exact.amplification + exact.delta * exact.turned)
    slope = float(exact.slope)
    assert gain < 6 * float(max(exact.delta, abs(exact.gain))) + 3 * slope
    assert elapsed < 4 * float(1 + abs(math.log(h)) + exact.delta) + 3 * slope


@pytest.mark.parametrize("dim", [2, 3, 10])
def test_a_thousandth_of_a_radian_from_minus_e(dim):
    """float32, δ = 10: the textbook form is off by 3e5 ulps, this one by less than 200."""
    for seed in range(100):
        case = Case(np.float32, dim, 1e-3, 10.0, 10.0 ** (seed % 61 - 30), float(dim), seed)
        turn, gain, *_, exact = errors(case)
        assert turn < 200
        assert gain < 200 * float(max(exact.delta, abs(exact.gain)))


@GENERIC
@given(cases(ANYWHERE | CLOSE))
@example(Case(np.float32, 10, 0.0, 100.0, 1e30, 1.0, 0))
@example(Case(np.float32, 10, 0.0, 100.0, 1e-30, 1.0, 1))
def test_nothing_is_ever_non_finite_and_u_stays_a_unit_vector(case):
    u, g, h, kappa = arrays(case)
    boost = kick.approach(np, u, g, kappa)
    turned, gained = kick.turn(np, boost, h), kick.gain(np, boost, h)
    delta = float(h) * float(np.linalg.norm(g.astype(float))) / float(kappa)
    slack = 8 * np.finfo(case.dtype).eps
    assert np.isfinite(turned).all() and np.isfinite(kick.log_elapsed(np, boost, h)).all()
    assert abs(np.linalg.norm(turned.astype(float)) - 1) < slack
    assert abs(gained[0]) <= delta * (1 + slack)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("delta", [1e-8, 1e-3, 1.0, 16.6, 40.0, 51.0, 100.0])
def test_exactly_along_the_force(dtype, delta):
    """u·e = ∓1 without rounding: u stays, Δr = ∓δ, and the elapsed time is |1 − e^(∓δ)| κ/|g|.

    At δ = 51 and 100 the powers of ζ are subnormal in float32.
    """
    u = np.eye(3, dtype=dtype)[:1]
    h = np.asarray(delta, dtype)
    for sign in (1, -1):
        boost = kick.approach(np, u, sign * 2 * u, dtype(2))
        np.testing.assert_array_equal(kick.turn(np, boost, h), u)
        slack = 8 * np.finfo(dtype).eps
        np.testing.assert_allclose(kick.gain(np, boost, h), [-sign * delta], rtol=slack)
        expected = math.log(abs(math.expm1(-sign * delta)))
        np.testing.assert_allclose(
            kick.log_elapsed(np, boost, h), [expected], rtol=slack, atol=slack * (1 + delta)
        )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_without_force_nothing_turns(dtype):
    """g = 0: u' = u, Δr = 0, and the elapsed time is h."""
    u = np.random.default_rng(0).standard_normal((4, 5))
    u = (u / np.linalg.norm(u, axis=1, keepdims=True)).astype(dtype)
    h = np.asarray(0.3, dtype)
    boost = kick.approach(np, u, np.zeros_like(u), dtype(5))
    np.testing.assert_allclose(kick.turn(np, boost, h), u, atol=2 * np.finfo(dtype).eps)
    np.testing.assert_array_equal(kick.gain(np, boost, h), np.zeros(4, dtype))
    np.testing.assert_array_equal(kick.log_elapsed(np, boost, h), np.full(4, np.log(h)))


@pytest.mark.parametrize("xp", [np, jnp])
@pytest.mark.parametrize("length", [10.0**-k for k in range(16, 324, 7)])
def test_a_force_too_faint_to_be_squared_turns_nothing(xp, length, x64):
    # Saturated models have plateaus like that; a chain must glide over them.
    rng = np.random.default_rng(0)
    u = rng.standard_normal((4, 6))
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    g, h = length * rng.standard_normal((4, 6)), xp.asarray(1.3)
    boost = kick.approach(xp, xp.asarray(u), xp.asarray(g), 5.0)
    assert np.linalg.norm(boost.e, axis=1).max() < 1 + 1e-15
    for turn in (kick.turn, kick.turn_roughly):
        np.testing.assert_allclose(turn(xp, boost, h), u, atol=1e-15)
    np.testing.assert_allclose(kick.gain(xp, boost, h), np.zeros(4), atol=1e-15)


@GENERIC
@given(cases(ANYWHERE, most=1.0), st.floats(0.05, 0.95))
def test_two_kicks_with_the_same_gradient_are_one(case, part):
    u, g, h, kappa = arrays(case._replace(dtype=np.float64))
    whole, gained = kick.kick(np, u, g, h, kappa)
    halfway, first = kick.kick(np, u, g, part * h, kappa)
    end, second = kick.kick(np, halfway, g, (1 - part) * h, kappa)
    stretch = 1 + math.exp(-float(gained[0]))
    np.testing.assert_allclose(end, whole, atol=4e-15 * stretch)
    size = float(h * np.linalg.norm(g) / kappa)
    np.testing.assert_allclose(first + second, gained, atol=4e-15 * size * stretch)


@GENERIC
@given(cases(ANYWHERE, most=0.5))
def test_the_opposite_gradient_undoes_a_kick(case):
    u, g, h, kappa = arrays(case._replace(dtype=np.float64))
    there, gained = kick.kick(np, u, g, h, kappa)
    back, lost = kick.kick(np, there, -g, h, kappa)
    stretch = 1 + math.exp(float(gained[0]))
    np.testing.assert_allclose(back, u, atol=4e-15 * stretch)
    size = float(h * np.linalg.norm(g) / kappa)
    np.testing.assert_allclose(lost, -gained, atol=4e-15 * size * stretch)


@pytest.mark.parametrize("dim", [2, 4, 6])
def test_volume_on_the_sphere(x64, dim):
    """The Jacobian of u → u' is e^(−(d−1)Δr), for any κ."""
    rng = np.random.default_rng(dim)
    kappa = np.asarray([1.0, dim - 1.0, dim, 7.3] * 3)
    u = rng.standard_normal((12, dim))
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    g = np.repeat([0.01, 0.3, 1.0], 4)[:, None] * rng.standard_normal((12, dim))
    h = np.asarray(1.3)

    def turned(u, g, kappa):
        return kick.kick(jnp, u[None], g[None], jnp.asarray(h), kappa)[0][0]

    jacobians = jax.jit(jax.vmap(jax.jacfwd(turned)))(u, g, kappa)
    after, gained = kick.kick(np, u, g, h, kappa[:, None])
    for i, jacobian in enumerate(jacobians):
        volume = log_volume(jacobian, across(u[i]), across(after[i]))
        assert volume == pytest.approx(-(dim - 1) * gained[i], abs=1e-12)


@GENERIC
@given(cases(ANYWHERE | CLOSE))
def test_a_rough_turn_differs_by_rounding_errors_of_its_length(case):
    """Not by more than u itself may be off: 12 ulps, and what an error of e is stretched by."""
    u, g, h, kappa = arrays(case)
    boost = kick.approach(np, u, g, kappa)
    rough, right = kick.turn_roughly(np, boost, h), kick.turn(np, boost, h)
    assert rough.dtype == case.dtype
    length = np.linalg.norm(rough.astype(float))
    stretch = float(1 + exact_kick(u[0], g[0], h, kappa).amplification)
    slack = 12 * float(np.finfo(case.dtype).eps) * stretch
    assert abs(length - 1) < slack
    np.testing.assert_allclose(rough / length, right, atol=4 * np.finfo(case.dtype).eps)


@pytest.mark.parametrize("length", [1e-60, 1e-30, 1.0, 1e150, 1e240])
def test_the_length_of_extreme_gradients(length):
    """float64, beyond where squares under- or overflow."""
    g = np.random.default_rng(0).standard_normal((4, 5))
    g *= length / np.linalg.norm(g, axis=1, keepdims=True)
    found, e = kick.force(np, g)
    np.testing.assert_allclose(found, length, rtol=1e-14)
    np.testing.assert_allclose(e, -g / length, rtol=1e-14)


def test_compiled_in_single_precision_close_to_minus_e():
    """Compiled code takes numbers below the smallest normal one for zero."""
    aside = np.concatenate([[0], np.geomspace(1e-12, 1e-4, 200)]).astype(np.float32)
    u = np.stack([-np.ones_like(aside), aside], axis=1)
    g = np.broadcast_to(np.asarray([-1.0, 0.0], np.float32), u.shape)
    turned = jax.jit(lambda u, g, h: kick.kick(jnp, u, g, h, jnp.float32(2)))
    for delta in (40.0, 100.0, 720.0):
        new, gained = map(np.asarray, turned(u, g, np.float32(2 * delta)))
        assert np.isfinite(gained).all()
        np.testing.assert_allclose(np.linalg.norm(new, axis=1), 1, rtol=1e-6)
