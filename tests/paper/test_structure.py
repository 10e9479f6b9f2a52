"""Volume, reversal and order, against automatic differentiation and textbook formulas."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from schuss.core.dynamics import leap, q_dynamics
from schuss.core.integrators import LEAPFROG
from schuss.core.kernel import Point
from schuss.engines.width import wide
from schuss.paper import structure
from schuss.paper.item import Settings
from schuss.targets import coupled_quartic

from .running import run

TARGET = coupled_quartic()
STATES = np.asarray([[0.4, -0.7, 0.6, 0.8], [-1.1, 0.2, 0.8, -0.6]])


def test_jacobians_are_those_of_automatic_differentiation():
    def one(z):
        def grad_fn(x):
            return TARGET.energy(jnp, x), TARGET.gradient(jnp, x)

        x, v = z[None, :2], z[None, 2:]
        point = Point(x, v, jnp.zeros(1), *grad_fn(x))
        point = leap(jnp, grad_fn, q_dynamics(1), LEAPFROG, point, jnp.asarray(0.05), 2.0)
        return jnp.concatenate([point.x, point.u], axis=1)[0]

    with wide():
        exact = np.stack([np.asarray(jax.jacfwd(one)(jnp.asarray(z))) for z in STATES])
    found = structure.jacobians(structure.leapfrog(TARGET, False, 0.05), STATES)
    np.testing.assert_allclose(found, exact, atol=1e-9)
    np.testing.assert_allclose(np.linalg.det(exact), 1, atol=1e-12)


def test_runge_kutta_is_of_fourth_order():
    exact = structure.flow(TARGET, False, 0.4)(STATES)
    errors = [
        np.abs(structure.runge_kutta(TARGET, step, round(0.4 / step))(STATES) - exact).max()
        for step in (0.02, 0.01)
    ]
    assert errors[0] / errors[1] == pytest.approx(16, rel=0.15)


def test_a_path_of_the_library_takes_one_gradient_a_step():
    assert structure.count_gradients(7) == 8


def test_what_section_2_says():
    found = run(structure.ITEM, Settings(quick=True))
    assert found["volume"]["leapfrog, original"]["log_det"] < 1e-8
    assert found["volume"]["Runge–Kutta, original"]["log_det"] > 1e-8
    assert found["reversal"]["leapfrog, scaled"] < 1e-10
    assert found["order"]["scaled"]["one step"]["slope"] == pytest.approx(3, abs=0.2)
    assert found["order"]["scaled"]["a fixed time"]["slope"] == pytest.approx(2, abs=0.2)
    assert "nan" not in structure.ITEM.tell(found)
