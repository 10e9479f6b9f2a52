"""The un-scaled q-family: its equations, its limits, and the clock of the scaled flow."""

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import schuss
from schuss.core.dynamics import kinetic, leap, log_q, q_dynamics, start
from schuss.core.integrators import LEAPFROG

from .energies import bowl


def grad_bowl(x):
    return bowl(np, x)


def solve(x, v, q, time):
    """ẋ = v/(v²/d)^q, v̇ = −g, one chain, by an adaptive method of eighth order."""
    dim = len(x)

    def velocity(_, state):
        x, v = state[:dim], state[dim:]
        return np.concatenate([v / (v @ v / dim) ** q, -bowl(np, x[None])[1][0]])

    begin = np.concatenate([x, v])
    found = solve_ivp(velocity, (0, time), begin, method="DOP853", rtol=1e-12, atol=1e-12)
    return found.y[:dim, -1], found.y[dim:, -1]


@pytest.mark.parametrize("q", [0.0, 0.3, 1.0])
def test_follows_the_differential_equation(q):
    """Over half a unit of time with ε = 1/2000; q = 1 has d/v² in its drift (Eq. 2)."""
    rng = np.random.default_rng(1)
    x, v = rng.standard_normal((2, 3, 4))
    point = start(np, q_dynamics(q), x, *grad_bowl(x), v)
    for _ in range(1000):
        point = leap(np, grad_bowl, q_dynamics(q), LEAPFROG, point, np.asarray(5e-4), None)
    for i in range(3):
        end_x, end_v = solve(x[i], v[i], q, 0.5)
        np.testing.assert_allclose(point.x[i], end_x, atol=3e-6)
        np.testing.assert_allclose(point.u[i], end_v, atol=3e-6)


def test_q_0_is_newtons_leapfrog():
    rng = np.random.default_rng(2)
    x, v = rng.standard_normal((2, 5, 3))
    path = schuss.trajectory(
        value_and_grad=grad_bowl,
        init=x,
        velocity=v,
        sampler=schuss.Unscaled(step_size=0.1, q=0),
        steps=30,
    )
    for t in range(31):
        np.testing.assert_allclose(path.x[t], x, atol=1e-12)
        np.testing.assert_allclose(path.u[t], v, atol=1e-12)
        v = v - 0.05 * bowl(np, x)[1]
        x = x + 0.1 * v
        v = v - 0.05 * bowl(np, x)[1]
    np.testing.assert_allclose(path.time[:, 0], 0.1 * np.arange(31), atol=1e-14)


def test_kinetic_energies_and_their_limits():
    """K_0 = ½v² − d/2, K_1 = d/2 log(v²/d), and the derivative of K_q is the velocity."""
    v = np.random.default_rng(3).standard_normal((50, 6))
    square = np.sum(v * v, axis=1)
    np.testing.assert_allclose(kinetic(np, v, 0), (square - 6) / 2, rtol=1e-13)
    np.testing.assert_allclose(kinetic(np, v, 1), 3 * np.log(square / 6), rtol=1e-13)
    np.testing.assert_allclose(kinetic(np, v, 1 - 1e-6), kinetic(np, v, 1), atol=2e-5)
    assert log_q(np, np.asarray(math.e), 1) == pytest.approx(1)
    for q in (0, 0.3, 1):
        for axis in range(6):
            aside = np.zeros(6)
            aside[axis] = 1e-5
            slope = (kinetic(np, v + aside, q) - kinetic(np, v - aside, q)) / 2e-5
            drift = q_dynamics(q).drift(np, np.zeros_like(v), v, np.asarray(1.0))
            np.testing.assert_allclose(slope, drift[:, axis], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("q", [0.0, 0.5, 1.0])
def test_the_gain_is_the_kinetic_energy(q):
    rng = np.random.default_rng(4)
    v, g = rng.standard_normal((2, 9, 3))
    boost, h = (v, g), np.asarray(0.7)
    gained = q_dynamics(q).gain(np, boost, h)
    np.testing.assert_allclose(gained, kinetic(np, v - 0.7 * g, q) - kinetic(np, v, q), atol=1e-13)


@pytest.mark.parametrize("q", [0.0, 0.5, 1.0])
def test_energy_error_is_of_second_order(q):
    """The largest error of E + K over a stretch of time falls fourfold with half the step."""
    rng = np.random.default_rng(5)
    x, v = rng.standard_normal((2, 20, 4))
    v *= 2 / np.linalg.norm(v, axis=1, keepdims=True)

    def worst(steps):
        path = schuss.trajectory(
            value_and_grad=grad_bowl,
            init=x,
            velocity=v,
            sampler=schuss.Unscaled(step_size=0.3 / steps, q=q),
            steps=steps,
        )
        total = path.energy + kinetic(np, path.u, q)
        np.testing.assert_allclose(
            path.hamiltonian - path.hamiltonian[0], total - total[0], atol=1e-10
        )
        return np.abs(total - total[0]).max()

    assert math.log2(worst(200) / worst(400)) == pytest.approx(2, abs=0.1)


def test_the_scaled_flow_takes_the_same_road_at_another_pace():
    """The scaled flow at its clock's time t is where the un-scaled ESH flow is at t.

    With |v(0)| = 1, as r(0) = 0 says. The clock is a trapezoid sum: all is right to O(ε²).
    """
    rng = np.random.default_rng(6)
    x, u = rng.standard_normal((2, 3, 4))
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    path = schuss.trajectory(
        value_and_grad=grad_bowl,
        init=x,
        velocity=u,
        sampler=schuss.ESH(step_size=1e-3),
        steps=2000,
    )
    np.testing.assert_allclose(path.time[0], 0)
    for i in range(3):
        for t in (500, 2000):
            end_x, end_v = solve(x[i], u[i], 1.0, path.time[t, i])
            momentum = np.exp(path.r[t, i]) * path.u[t, i]
            np.testing.assert_allclose(path.x[t, i], end_x, atol=1e-5)
            np.testing.assert_allclose(momentum, end_v, atol=1e-5 * np.abs(end_v).max())
    assert np.ptp(path.time[-1]) > 0.01


def test_leapfrogs_of_both_clocks_agree():
    """Both integrators reach the same place at the same time; the original has to crawl there."""
    rng = np.random.default_rng(7)
    x, u = rng.standard_normal((2, 1, 3))
    u /= np.linalg.norm(u)
    scaled = schuss.trajectory(
        value_and_grad=grad_bowl, init=x, velocity=u, sampler=schuss.ESH(step_size=1e-3), steps=1000
    )
    time = scaled.time[-1, 0]
    original = schuss.trajectory(
        value_and_grad=grad_bowl,
        init=x,
        velocity=u,
        sampler=schuss.Unscaled(step_size=time / 4000),
        steps=4000,
        every=4000,
    )
    np.testing.assert_allclose(original.x[-1], scaled.x[-1], atol=1e-4)
    assert original.time[-1, 0] == pytest.approx(time)
