"""Whole steps: volume, reversal, order, the merged loop, and what is conserved."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from seeds import shifted

import schuss
from schuss.core import flow, refresh
from schuss.core.dynamics import ESH, NEWTON, flip, leap, q_dynamics, start, work
from schuss.core.integrators import INTEGRATORS, LEAPFROG, LONG_STEP, MINIMAL_NORM, two_stage
from schuss.core.kernel import Noise, Point

from .boost import DIGITS, exact_kick
from .energies import bowl, gaussian
from .tangent import across, beside, log_volume

SCHEMES = pytest.mark.parametrize("scheme", INTEGRATORS.values(), ids=INTEGRATORS)


def grad_bowl(x):
    return bowl(np, x)


def starts(dim, chains, dynamics=ESH, energy=bowl):
    rng = np.random.default_rng(dim)
    x, normal = rng.standard_normal((2, chains, dim))
    value, g = energy(np, x)
    return start(np, dynamics, x, value, g, normal)


def volume_cases():
    """All schemes in all dimensions; compiling most of them takes too long for every day."""
    quick = {("leapfrog", 2), ("leapfrog", 4), ("leapfrog", 6), ("minimal-norm", 2)}
    quick |= {("fourth-order", 6)}
    for name, scheme in INTEGRATORS.items():
        for dim in (2, 4, 6):
            marks = () if (name, dim) in quick else pytest.mark.slow
            yield pytest.param(scheme, dim, marks=marks, id=f"{name}-{dim}")


@pytest.mark.parametrize(("scheme", "dim"), list(volume_cases()))
def test_volume_of_a_step(x64, dim, scheme):
    """log|det| of (x, u) → (x', u') is −(d−1)Δr, for any κ."""
    kappa = np.asarray([1.0, dim - 1.0, dim, 7.3])
    before = starts(dim, len(kappa))
    epsilon = 0.1

    def stepped(xu, kappa):
        x, u = xu[None, :dim], xu[None, dim:]
        point = before._replace(x=x, u=u, r=jnp.zeros(1), energy=None, g=bowl(jnp, x)[1])
        point = leap(jnp, lambda x: bowl(jnp, x), ESH, scheme, point, jnp.asarray(epsilon), kappa)
        return jnp.concatenate([point.x[0], point.u[0]])

    both = np.concatenate([before.x, before.u], axis=1)
    jacobians = jax.jit(jax.vmap(jax.jacfwd(stepped)))(both, kappa)
    after = leap(np, grad_bowl, ESH, scheme, before, np.asarray(epsilon), kappa[:, None])
    for i, jacobian in enumerate(jacobians):
        here = beside(np.eye(dim), across(before.u[i]))
        there = beside(np.eye(dim), across(after.u[i]))
        assert abs(after.r[i]) > 1e-4
        expected = -(dim - 1) * after.r[i]
        assert log_volume(jacobian, here, there) == pytest.approx(expected, abs=1e-12)


@SCHEMES
@pytest.mark.parametrize("dynamics", [ESH, NEWTON, q_dynamics(0.5), q_dynamics(1)])
def test_flip_step_flip_goes_back(dynamics, scheme):
    """Ten steps there and ten back, to rounding."""
    begin = starts(5, 20, dynamics)
    epsilon, kappa = np.asarray(0.05), 5.0
    point = begin
    for _ in range(10):
        point = leap(np, grad_bowl, dynamics, scheme, point, epsilon, kappa)
    assert np.abs(point.x - begin.x).max(axis=1).min() > 0.05
    point = flip(point)
    for _ in range(10):
        point = leap(np, grad_bowl, dynamics, scheme, point, epsilon, kappa)
    for ours, theirs in zip(flip(point), begin, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)


def run(scheme, steps, point, kappa, dynamics=ESH):
    epsilon = np.asarray(1.0 / steps)
    for _ in range(steps):
        point = leap(np, grad_bowl, dynamics, scheme, point, epsilon, kappa)
    return np.concatenate([point.x, point.u, point.r[:, None]], axis=1)


@pytest.mark.parametrize(
    ("name", "order"), [("leapfrog", 2), ("minimal-norm", 2), ("long-step", 2), ("fourth-order", 4)]
)
def test_order_of_convergence(name, order):
    """Over a unit of scaled time, from 32 to 64 steps."""
    begin, kappa = starts(3, 10), 3.0
    exact = run(INTEGRATORS["fourth-order"], 1024, begin, kappa)
    coarse, fine = (
        np.linalg.norm(run(INTEGRATORS[name], steps, begin, kappa) - exact) for steps in (32, 64)
    )
    assert np.log2(coarse / fine) == pytest.approx(order, abs=0.2)


@SCHEMES
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("delta", [0.1, 1.0, 3.0, 4.4])
def test_in_a_constant_field_a_step_is_one_kick(scheme, dtype, delta):
    """Kicks with the same gradient add up, so that every scheme gives the exact u' and r.

    A scheme with a kick back in time, of share b, loses digits by e^(|b|δ), but no more.
    """
    digits = np.finfo(dtype).eps * np.exp(delta * max(0.0, -min(scheme.kicks)))
    for seed in range(20):
        u, g, h = field(dtype, seed, delta)
        end = in_a_field(scheme, u, g, h)
        exact = exact_kick(u[0], g[0], h, 1.0)
        found = np.append(end.u[0], end.r[0]).astype(float)
        expected = np.asarray([*exact.u, exact.gain], float)
        np.testing.assert_allclose(found, expected, atol=4 * (1 + delta) * digits)


@SCHEMES
@pytest.mark.parametrize("delta", [10.0, 33.0, 100.0])
def test_a_steep_step_in_float32_is_finite(scheme, delta):
    """Also where the scheme goes back in time, and for any angle between u and the force."""
    for seed in range(20):
        end = in_a_field(scheme, *field(np.float32, seed, delta))
        assert np.isfinite(end.u).all() and np.isfinite(end.r).all()
        assert np.linalg.norm(end.u) == pytest.approx(1, abs=1e-6)


def field(dtype, seed, delta):
    """A velocity, a force of size two, and the time in which it has the strength δ for κ = 1."""
    u, g = np.random.default_rng(seed).standard_normal((2, 1, 3))
    u, g = u / np.linalg.norm(u), 2 * g / np.linalg.norm(g)
    return u.astype(dtype), g.astype(dtype), np.asarray(delta / 2, dtype)


def in_a_field(scheme, u, g, h):
    """One step with the energy g·x."""
    nothing = np.zeros(1, u.dtype)
    point = Point(np.zeros_like(u), u, nothing, nothing, g)
    return leap(np, lambda x: (x @ g[0], g), ESH, scheme, point, h, u.dtype.type(1))


def test_integrators_are_consistent_palindromes():
    for scheme in INTEGRATORS.values():
        assert sum(scheme.kicks) == pytest.approx(1, abs=1e-15)
        assert sum(scheme.drifts) == pytest.approx(1, abs=1e-15)
        assert scheme.kicks == pytest.approx(scheme.kicks[::-1], abs=0)
        assert scheme.drifts == scheme.drifts[::-1]
        assert scheme.gradients == len(scheme.drifts) == len(scheme.kicks) - 1


@pytest.mark.parametrize("name", INTEGRATORS)
def test_order_on_an_oscillator(name):
    """x'' = −x in many digits, at steps so small that a wrong digit of a coefficient shows."""
    scheme, m = INTEGRATORS[name], DIGITS

    def error(epsilon):
        x, v = m.mpf(1), m.mpf(0) - scheme.kicks[0] * epsilon
        for a, b in zip(scheme.drifts, scheme.kicks[1:], strict=True):
            x += a * epsilon * v
            v -= b * epsilon * x
        return m.hypot(x - m.cos(epsilon), v + m.sin(epsilon))

    order = m.log(error(m.mpf("2e-3")) / error(m.mpf("1e-3")), 2) - 1
    assert order > {"fourth-order": 4}.get(name, 2) - 0.01


def test_minimal_norm_has_the_coefficient_of_mclachlan():
    """λ = ½ − c/12 + 1/(6c), c = (2√326 + 36)^(1/3): the root of least error."""
    c = (2 * 326**0.5 + 36) ** (1 / 3)
    assert INTEGRATORS["minimal-norm"].kicks[0] == pytest.approx(
        0.5 - c / 12 + 1 / (6 * c), abs=1e-15
    )


def error_on_a_gaussian(scheme, length, dim=100):
    """The mean square of ΔE + (d − 1)Δr over d, of steps of length·√d from 500 draws."""
    x, u = np.random.default_rng(8).standard_normal((2, 500, dim))
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    gaussian = lambda x: ((x**2).sum(axis=1) / 2, x)  # noqa: E731
    here = Point(x, u, np.zeros(500), *gaussian(x))
    there = leap(np, gaussian, ESH, scheme, here, np.asarray(length * dim**0.5), dim - 1.0)
    return np.mean(work(here, there, dim - 1.0) ** 2) / dim


def test_errors_of_third_order_vanish_on_gaussians():
    """At λ = (3 − √3)/6 errors go with ε⁵, which makes their squares fall by 2¹⁰, not 2⁶."""
    for kick, power in ((3 - 3**0.5) / 6, 10), (MINIMAL_NORM.kicks[0], 6):
        coarse, fine = (error_on_a_gaussian(two_stage(kick), h, 2000) for h in (0.2, 0.1))
        assert np.log2(coarse / fine) == pytest.approx(power, abs=0.5)


@pytest.mark.parametrize("length", [1.2, 1.4, 1.6])
def test_long_steps_err_little_on_gaussians(length):
    """A fiftieth of the minimal norm's error² at √d and more; the two halves are leapfrogs."""
    found = error_on_a_gaussian(LONG_STEP, length)
    assert found < error_on_a_gaussian(MINIMAL_NORM, length) / 50
    assert found < error_on_a_gaussian(two_stage(0.25), length) / 50


@SCHEMES
@pytest.mark.parametrize("dynamics", [ESH, NEWTON, q_dynamics(0.5), q_dynamics(1)])
@pytest.mark.parametrize("refreshment", ["none", "partial"])
def test_the_merged_loop_makes_the_same_steps(dynamics, scheme, refreshment):
    """One kick between two drifts, against whole steps; noise halfway through each of them."""
    rng = np.random.default_rng(2)
    x, normal = rng.standard_normal((2, 6, 3))
    kappa = 2.5 if dynamics is ESH else 1.0
    params = flow.Params(np.asarray(0.05), np.asarray(kappa), np.asarray(0.2), None, None)
    kernel = flow.kernel(dynamics, scheme, refreshment=refreshment)
    state = kernel.init(np, x, *grad_bowl(x), Noise(normal, None), params)
    point = start(np, dynamics, x, *grad_bowl(x), normal)
    for _ in range(20):
        noise = Noise(rng.standard_normal((6, 3)), None)
        state, info = kernel.step(np, grad_bowl, state, noise, params)
        seen = kernel.observe(np, state, params)
        before = point
        if refreshment == "none":
            point = leap(np, grad_bowl, dynamics, scheme, point, params.step_size, kappa)
        else:
            point = noisy_step(dynamics, scheme, point, noise, params)
        change = point.energy - before.energy + kappa * (point.r - before.r)
        np.testing.assert_allclose(info.energy_error, change, atol=1e-12)
        np.testing.assert_allclose(seen.conserved, point.energy + kappa * point.r, atol=1e-12)
        for ours, theirs in zip(seen[:4], point[:4], strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-12)


def noisy_step(dynamics, scheme, point, noise, params):
    """A step written out, with the operation in its middle cut in two around the noise."""
    moves = [("kick", scheme.kicks[0])]
    for a, b in zip(scheme.drifts, scheme.kicks[1:], strict=True):
        moves += [("drift", a), ("kick", b)]
    middle = len(moves) // 2
    kind, share = moves[middle]
    moves[middle : middle + 1] = [(kind, share / 2), ("noise", None), (kind, share / 2)]
    for kind, share in moves:
        if kind == "noise":
            point = point._replace(u=dynamics.nudge(np, point.u, noise.normal, params.nu))
            continue
        h = share * params.step_size
        if kind == "drift":
            x = dynamics.drift(np, point.x, point.u, h)
            energy, g = grad_bowl(x)
            point = point._replace(x=x, energy=energy, g=g)
        else:
            boost = dynamics.approach(np, point.u, point.g, params.kappa)
            r = point.r + dynamics.gain(np, boost, h)
            point = point._replace(u=dynamics.turn(np, boost, h), r=r)
    return point


def test_angular_momentum_is_conserved_on_a_round_gaussian():
    """Leapfrog conserves e^r (x_i u_j − x_j u_i), which is why the flow is not ergodic there."""
    point = starts(5, 20, energy=gaussian)

    def momentum(point):
        outer = point.x[:, :, None] * point.u[:, None, :]
        return np.exp(point.r)[:, None, None] * (outer - np.swapaxes(outer, 1, 2))

    begin = momentum(point)
    for _ in range(1000):
        point = leap(np, lambda x: gaussian(np, x), ESH, LEAPFROG, point, np.asarray(0.1), 5.0)
    np.testing.assert_allclose(momentum(point), begin, atol=1e-13 * np.abs(begin).max())
    assert np.abs(point.r).max() > 0.1


@pytest.mark.parametrize(("epsilon", "expected"), [(0.01, 0.035), (0.1, 3.9)])
def test_drift_of_the_hamiltonian_on_the_mixture(epsilon, expected):
    """Mean |H(t) − H(0)| over 1000 steps of 500 chains in float64, to a third."""
    path = schuss.trajectory(
        schuss.targets.get("mog"),
        chains=500,
        sampler=schuss.ESH(step_size=epsilon),
        steps=1000,
        engine="numpy",
    )
    drift = np.abs(path.hamiltonian - path.hamiltonian[0]).mean()
    assert drift == pytest.approx(expected, rel=1 / 3)


def test_noise_forgets_the_direction_over_its_length():
    """In many dimensions u·u₀ is e^(−t/L): the mean of 2000 chains at t = L, to 5 sigma and 2 %."""
    chains, dim, epsilon, length = 2000, 100, 0.1, 2.0
    nu = np.asarray(refresh.amount(epsilon, length, dim))
    rng = np.random.default_rng(shifted(0))
    u = first = refresh.direction(np, rng.standard_normal((chains, dim)))
    for _ in range(20):
        u = refresh.partial(np, u, rng.standard_normal((chains, dim)), nu)
    cosine = np.sum(u * first, axis=1)
    np.testing.assert_allclose(np.linalg.norm(u, axis=1), 1, rtol=1e-14)
    slack = 0.02 * np.exp(-1) + 5 * cosine.std() / chains**0.5
    assert cosine.mean() == pytest.approx(np.exp(-1), abs=slack)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("length", [1e-300, 1e-3, 0.01])
def test_noise_over_next_to_no_length_gives_a_fresh_direction(dtype, length):
    rng = np.random.default_rng(0)
    u, normal = rng.standard_normal((2, 50, 300)).astype(dtype)
    nu = np.asarray(refresh.amount(0.5, length, 300), dtype)
    new = refresh.partial(np, u, normal, nu)
    np.testing.assert_allclose(new, refresh.direction(np, normal), rtol=1e-5, atol=1e-6)


def test_noise_on_newtons_velocity_keeps_it_standard_normal():
    """αv + βz with α² + β² = 1."""
    one, zero, nu = np.ones((1, 1)), np.zeros((1, 1)), np.asarray(0.7)
    kept, fresh = NEWTON.nudge(np, one, zero, nu), NEWTON.nudge(np, zero, one, nu)
    assert (kept**2 + fresh**2).item() == pytest.approx(1, abs=1e-15)
    assert (fresh / kept).item() == pytest.approx(0.7)
