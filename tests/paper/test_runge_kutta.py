"""The adaptive integrations against SciPy's, and the count of what they cost."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from schuss.paper.runge_kutta import integrate
from schuss.targets import mog, scg


def _field(target, scaled, dim):
    def f(t, y):
        g = target.gradient(np, y[None, :dim])[0]
        v = y[dim : 2 * dim]
        if scaled:
            return np.concatenate([v, (v * (v @ g) - g) / dim, [-(v @ g) / dim]])
        return np.concatenate([dim * v / (v @ v), -g])

    return f


@pytest.mark.parametrize("target", [mog(), scg()], ids=lambda target: target.name)
@pytest.mark.parametrize("scaled", [True, False], ids=["scaled", "original"])
def test_states_lie_on_the_solution_that_scipy_finds(target, scaled):
    x, u = np.asarray([[0.3, 0.6], [0.9, -0.4]]), np.asarray([[0.6, 0.8], [-1.0, 0.0]])
    found = integrate(target, x, u, scaled=scaled, attempts=40, rtol=1e-8, atol=1e-9)
    for chain in range(2):
        start = np.concatenate([x[chain], u[chain], [0.0] if scaled else []])
        exact = solve_ivp(
            _field(target, scaled, 2),
            (0, found.time[-1, chain]),
            start,
            method="DOP853",
            t_eval=np.unique(found.time[:, chain]),
            rtol=1e-11,
            atol=1e-12,
        )
        _, first = np.unique(found.time[:, chain], return_index=True)
        np.testing.assert_allclose(found.x[first, chain], exact.y[:2].T, atol=2e-5)
        log_speed = exact.y[4] if scaled else np.log(np.linalg.norm(exact.y[2:4], axis=0))
        np.testing.assert_allclose(found.log_speed[first, chain], log_speed, atol=2e-4)


def test_rejected_attempts_are_recorded_and_go_nowhere():
    """From outside the mixture the first step of .01 is far too long for a tight tolerance."""
    x, u = np.asarray([[1.5, 1.0]]), np.asarray([[1.0, 0.0]])
    found = integrate(mog(), x, u, scaled=True, attempts=30, rtol=1e-10, atol=1e-11)
    assert not found.accepted[0, 0]
    moved = np.any(np.diff(found.x, axis=0) != 0, axis=-1)
    np.testing.assert_array_equal(moved, found.accepted)
    np.testing.assert_array_equal(np.diff(found.time, axis=0) > 0, found.accepted)
    np.testing.assert_allclose(
        np.diff(found.time, axis=0)[found.accepted], found.step[found.accepted], rtol=1e-9
    )
    hamiltonian = found.energy + 2 * found.log_speed
    np.testing.assert_allclose(hamiltonian, hamiltonian[0, 0], atol=1e-6)
    np.testing.assert_allclose(found.energy, mog().energy(np, found.x[:, 0])[:, None], rtol=1e-10)
