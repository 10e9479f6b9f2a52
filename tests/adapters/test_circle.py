"""Angles as directions in the plane, against quadrature."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, special
from seeds import shifted

import schuss
from schuss.adapters.circle import WIDTH, Circles

CIRCLES = Circles(np.array([False, True, False, True]))
POSITION = np.array([0.3, 2.5, -7.0, -1.2])


def logdensity(x):
    """Depends on all coordinates together, and on angles as such."""
    return 2 * jnp.cos(x[1] - 1) + jnp.sin(x[3] + x[1]) * x[0] - x[0] ** 2 - (x[2] - x[0]) ** 2


def test_there_and_back():
    planar = CIRCLES.planar(POSITION)
    assert planar.shape == (CIRCLES.planar_dim,) == (6,)
    for xp in (np, jnp):
        with jax.enable_x64(True):
            batch = xp.asarray(np.stack([planar, 1.7 * planar]))
            back = np.asarray(CIRCLES.angles(xp, batch))
        np.testing.assert_allclose(back[0], POSITION, rtol=1e-14)
        np.testing.assert_allclose(back[1, [1, 3]], POSITION[[1, 3]], rtol=1e-14)


def test_the_angle_has_its_own_density():
    """∫ p(r cos θ, r sin θ) r dr = √(2π)σ p(θ), whatever the other coordinates are."""
    circle = Circles(np.array([True, False]))

    def one(x):
        return 3 * jnp.cos(x[0] - 1) * jnp.tanh(x[1]) - x[1] ** 2

    with jax.enable_x64(True):
        planar = circle.logdensity(one)
        for theta, z in ((0.0, 1.0), (2.0, -0.5), (-3.1, 0.2)):

            def mass(log_r, theta=theta, z=z):
                r = np.exp(log_r)
                x = jnp.asarray([r * np.cos(theta), z, r * np.sin(theta)])
                return float(jnp.exp(planar(x))) * r**2

            found, _ = integrate.quad(mass, -3, 3, epsabs=1e-12)
            want = np.sqrt(2 * np.pi) * WIDTH * float(jnp.exp(one(jnp.asarray([theta, z]))))
            assert found == pytest.approx(want, rel=1e-9)


def test_without_angles_nothing_changes():
    plain = Circles(np.zeros(4, bool))
    assert plain.logdensity(logdensity) is logdensity and plain.planar_dim == 4
    np.testing.assert_array_equal(plain.planar(POSITION), POSITION)
    assert plain.angles(np, POSITION) is POSITION


def test_gradients_are_finite_on_the_circle():
    with jax.enable_x64(True):
        g = jax.grad(CIRCLES.logdensity(logdensity))(jnp.asarray(CIRCLES.planar(POSITION)))
    assert np.isfinite(np.asarray(g)).all()


@pytest.mark.parametrize("mu, kappa", [(0.0, 1.0), (3.0, 30.0)])
def test_von_mises_of_pymc(mu, kappa):
    """E cos and E sin to 4.5 standard errors at an effective sample of 1000; across ±π too."""
    pymc = pytest.importorskip("pymc")
    with pymc.Model() as model:
        pymc.VonMises("angle", mu, kappa)
    post = schuss.sample(schuss.from_pymc(model), seed=shifted(1), progress=False)
    assert post.verdict.converged, post.verdict
    angle = post.draws["angle"]
    assert np.abs(angle).max() <= np.pi
    mean = special.i1e(kappa) / special.i0e(kappa)
    for value, truth in ((np.cos(angle - mu), mean), (np.sin(angle - mu), 0.0)):
        assert abs(value.mean() - truth) < 4.5 * value.std() / np.sqrt(1000)
