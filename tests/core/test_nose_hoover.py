"""Nosé–Hoover against its differential equation and against Martyna's scheme written out."""

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import schuss
from schuss.core import nose_hoover

from .energies import bowl

MASS = 1.7


def run(epsilon, steps, x, v, mass=MASS):
    return schuss.trajectory(
        value_and_grad=lambda x: bowl(np, x),
        init=x,
        velocity=v,
        sampler=schuss.NoseHoover(step_size=epsilon, mass=mass),
        steps=steps,
    )


def starts(chains=4, dim=3):
    return np.random.default_rng(0).standard_normal((2, chains, dim))


def solve(x, v, time):
    """ẋ = v, v̇ = −g − ξ̇v, ξ̈ = (v² − d)/Q, one chain; returns x, v, ξ and ξ̇."""
    dim = len(x)

    def velocity(_, state):
        x, v, rate = state[:dim], state[dim : 2 * dim], state[-1]
        force = -bowl(np, x[None])[1][0] - rate * v
        return np.concatenate([v, force, [rate, (v @ v - dim) / MASS]])

    begin = np.concatenate([x, v, [0.0, 0.0]])
    end = solve_ivp(velocity, (0, time), begin, method="DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
    return end[:dim], end[dim : 2 * dim], end[-2], end[-1]


def test_follows_the_differential_equation():
    x, v = starts()
    path = run(5e-4, 2000, x, v)
    for i in range(len(x)):
        end_x, end_v, xi, _ = solve(x[i], v[i], 1.0)
        np.testing.assert_allclose(path.x[-1, i], end_x, atol=2e-6)
        np.testing.assert_allclose(path.u[-1, i], end_v, atol=2e-5)
        assert path.r[-1, i] == pytest.approx(xi, abs=2e-6)


def test_steps_of_martyna():
    """Thermostat ε/4, ε/2, ε/4 around a velocity Verlet step, one chain at a time, plain floats."""
    xs, vs = starts()
    epsilon = 0.1
    path = run(epsilon, 10, xs, vs)
    for i, (x, v) in enumerate(zip(xs, vs, strict=True)):
        xi = rate = 0.0
        for t in range(1, 11):
            for half in (0, 1):
                rate += epsilon / 4 * (v @ v - 3) / MASS
                xi += epsilon / 2 * rate
                v = v * math.exp(-epsilon / 2 * rate)
                rate += epsilon / 4 * (v @ v - 3) / MASS
                if half == 0:
                    v = v - epsilon / 2 * bowl(np, x[None])[1][0]
                    x = x + epsilon * v
                    v = v - epsilon / 2 * bowl(np, x[None])[1][0]
            np.testing.assert_allclose(path.x[t, i], x, atol=1e-12)
            np.testing.assert_allclose(path.u[t, i], v, atol=1e-12)
            assert path.r[t, i] == pytest.approx(xi, abs=1e-12)


def test_the_conserved_quantity_to_second_order():
    """E + ½v² + ½Qξ̇² + dξ: the largest error falls fourfold with half the step."""
    x, v = starts(20)

    def worst(steps):
        path = run(2.0 / steps, steps, x, v)
        np.testing.assert_allclose(np.diff(path.hamiltonian, axis=0), path.energy_error, atol=1e-12)
        return np.abs(path.hamiltonian - path.hamiltonian[0]).max()

    assert math.log2(worst(400) / worst(800)) == pytest.approx(2, abs=0.1)


def test_the_thermostat_keeps_its_share_of_the_conserved_quantity():
    """Alone, it keeps ½v² + ½Qξ̇² + dξ, to second order."""
    _, v = starts(50)
    mass = np.asarray(MASS)

    def drift(h):
        w, xi, rate = nose_hoover.thermostat(np, v, np.zeros(50), np.full(50, 0.3), h, mass)
        after = np.sum(w * w, axis=1) / 2 + MASS * rate**2 / 2 + 3 * xi
        return np.abs(after - np.sum(v * v, axis=1) / 2 - MASS * 0.09 / 2).max()

    assert math.log2(drift(0.02) / drift(0.01)) == pytest.approx(3, abs=0.15)
