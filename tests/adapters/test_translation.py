"""PyTensor's operations in JAX against mpmath, and PyMC's distributions against PyMC itself."""

import jax
import mpmath
import numpy as np
import pytest

import schuss
from schuss.adapters.over import gradients, over

pm = pytest.importorskip("pymc")
pytensor = pytest.importorskip("pytensor")

POINTS = np.concatenate(
    [np.linspace(-26.4, 30, 80), np.logspace(1.5, 12, 20), [-1e-9, -0.0, 0.0, 1e-9]]
)


def erfcx(x):
    x = mpmath.mpf(float(x))
    return mpmath.exp(x * x) * mpmath.erfc(x)


def derivatives(x):
    """erfcx′ = 2x erfcx − 2/√π, and the derivative of that."""
    x, value = mpmath.mpf(float(x)), erfcx(x)
    first = 2 * x * value - 2 / mpmath.sqrt(mpmath.pi)
    return value, first, 2 * value + 2 * x * first


def test_erfcx_and_its_derivatives():
    """Exponents of 700 cost three digits, and each derivative two more where they are smallest."""
    from schuss.adapters.erfcx import erfcx as function

    orders = function, jax.grad(function), jax.grad(jax.grad(function))
    found = [over(lambda x, f=f: f(x[0]))(POINTS[:, None]) for f in orders]
    with mpmath.workdps(60):
        exact = zip(*map(derivatives, POINTS), strict=True)
        for values, known, error in zip(found, exact, (2e-13, 5e-12, 5e-10), strict=True):
            far = [abs(mpmath.mpf(float(v)) / k - 1) for v, k in zip(values, known, strict=True)]
            assert max(far) < error


def test_where_erfcx_overflows_nothing_is_nan():
    from schuss.adapters.erfcx import erfcx as function

    x = np.array([[-np.inf], [-1e200], [-27.0], [1e200], [np.inf]])
    value, slope = gradients(lambda x: function(x[0]))(x)
    assert np.all(value[:3] > 1e308) and np.isfinite(value).all() and value[-1] == 0
    assert np.abs(slope).max() < 1e-3


DISTRIBUTIONS = {
    "Censored": lambda x: pm.Censored(
        "y", pm.Normal.dist(x, 1.0), lower=-1.0, upper=2.0, observed=[-1.0, 0.5, 2.0, 1.0]
    ),
    "Truncated": lambda x: pm.Truncated(
        "y", pm.Normal.dist(x, 1.5), lower=-1.0, upper=2.0, observed=[0.1, 0.2]
    ),
    "TruncatedNormal": lambda x: pm.TruncatedNormal(
        "y", mu=x, sigma=1.0, lower=0.0, upper=1.0, observed=[0.1]
    ),
    "ExGaussian": lambda x: pm.ExGaussian("y", mu=x, sigma=1.0, nu=0.5, observed=[0.1]),
    "OrderedProbit": lambda x: pm.OrderedProbit(
        "y", eta=x, cutpoints=[-1.0, 1.0], observed=[1, 2, 0]
    ),
    "erfcinv": lambda x: pm.Potential("y", pytensor.tensor.erfcinv(pm.math.sigmoid(x / 10))),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_distributions_with_tails_of_the_normal(name):
    """Far out, too, where of the two branches of a condition one overflows."""
    with pm.Model() as model:
        DISTRIBUTIONS[name](pm.Normal("x"))
    places = np.array([-30.0, -9.0, -1.0, 0.3, 9.0, 30.0])
    value, gradient = gradients(schuss.from_pymc(model).logdensity)(places[:, None])
    with pytensor.config.change_flags(cxx=""):
        theirs = model.compile_logp(mode="FAST_COMPILE"), model.compile_dlogp(mode="FAST_COMPILE")
        known = [[float(np.squeeze(f({"x": x}))) for x in places] for f in theirs]
    np.testing.assert_allclose(value, known[0], rtol=1e-11)
    np.testing.assert_allclose(gradient[:, 0], known[1], rtol=1e-9)


def test_a_matrix_is_checked():
    """Whether it is positive definite, which a compiled function can't refuse."""
    with pm.Model() as model:
        s = pm.LogNormal("s", 0.0, 1.0)
        pm.MvNormal("y", np.zeros(2), cov=s * np.eye(2), observed=[1.0, 2.0])
    value = over(schuss.from_pymc(model).logdensity)(np.zeros((1, 1)))
    assert value[0] == pytest.approx(-2.5 - 1.5 * np.log(2 * np.pi), abs=1e-6)


def test_what_has_no_gradient_is_refused():
    with pm.Model() as model:
        shape = pm.LogNormal("shape")
        pm.Censored("y", pm.Beta.dist(shape, 2.0), lower=0.1, upper=0.9, observed=[0.1, 0.5])
    with pytest.raises(NotImplementedError, match=r"JAX has no gradient for: Betainc"):
        schuss.from_pymc(model)
