"""PyMC models against densities by hand, scipy and quadrature."""

import os

import jax
import numpy as np
import pytest
import scipy.stats as st
from seeds import shifted

import schuss
from schuss.adapters.over import gradients, over

from .checks import (
    EFFECTS,
    ERRORS,
    SCHOOLS,
    differences,
    eight_schools,
    integral,
    log_jacobian,
)

pm = pytest.importorskip("pymc")


@pytest.fixture(scope="module")
def schools():
    with pm.Model(coords={"school": SCHOOLS}) as model:
        mu = pm.Normal("mu", 0.0, 5.0)
        tau = pm.HalfCauchy("tau", 5.0)
        z = pm.Normal("z", dims="school")
        theta = pm.Deterministic("theta", mu + tau * z, dims="school")
        pm.Normal("y", theta, ERRORS, observed=EFFECTS, dims="school")
    return schuss.from_pymc(model)


@pytest.fixture(scope="module")
def simple():
    """s ~ N⁺(2), p ~ Dirichlet(2, 3, 4), with a potential beside the data."""
    with pm.Model(name="simple") as model:
        s = pm.HalfNormal("s", 2.0)
        p = pm.Dirichlet("p", [2.0, 3.0, 4.0])
        pm.Potential("more", -(s**4))
        pm.Normal("y", p.sum(), s, observed=[0.5, -1.0])
    return schuss.from_pymc(model)


def test_log_density_and_gradient_by_hand(schools):
    """To 1e-9, up to a constant; PyMC's own constant is in single precision."""
    x = np.random.default_rng(0).normal(size=(20, 10))
    value, gradient = gradients(schools.logdensity)(x)
    expected = eight_schools(x)
    np.testing.assert_allclose(value, expected, atol=1e-6, rtol=0)
    np.testing.assert_allclose(value - value[0], expected - expected[0], atol=1e-9, rtol=0)
    np.testing.assert_allclose(gradient, differences(eight_schools, x), rtol=1e-6, atol=1e-6)


def test_names_shapes_dims_and_deterministics(schools):
    x = np.random.default_rng(0).normal(size=(2, 3, 10))
    values = schools.constrain(x)
    assert {name: value.shape for name, value in values.items()} == {
        "mu": (2, 3),
        "tau": (2, 3),
        "z": (2, 3, 8),
        "theta": (2, 3, 8),
    }
    assert list(values) == ["mu", "tau", "z", "theta"]
    assert all(value.dtype == np.float64 for value in values.values())
    np.testing.assert_allclose(values["tau"], np.exp(x[..., 1]), rtol=1e-14)
    theta = x[..., :1] + np.exp(x[..., 1:2]) * x[..., 2:]
    np.testing.assert_allclose(values["theta"], theta, rtol=1e-13)
    assert schools.dims == {"z": ["school"], "theta": ["school"]}
    assert schools.coords == {"school": SCHOOLS}


def test_starts_differ_and_are_finite(schools):
    x = schools.start(np.random.default_rng(0), 6)
    assert x.shape == (6, 10) and x.dtype == np.float64
    assert len(np.unique(x)) == 60
    assert np.abs(x - [0, np.log(5), *[0] * 8]).max() <= 1
    np.testing.assert_array_equal(x, schools.start(np.random.default_rng(0), 6))


def test_parts_sum_to_the_whole(schools, simple):
    rng = np.random.default_rng(0)
    for model in (schools, simple):
        x = rng.normal(size=(10, model.dim))
        whole = over(model.parts.log_prior)(x) + over(model.parts.log_likelihood)(x)
        np.testing.assert_allclose(whole, over(model.logdensity)(x), rtol=0, atol=1e-10)


def test_prior_is_the_density_of_its_values(simple):
    """log p(s) + log p(p) + log |∂(s, p₁, p₂)/∂x|, the last by differences."""
    x = np.random.default_rng(0).normal(size=(10, 3))
    values = {name: value[:, 0] for name, value in simple.constrain(x[:, None]).items()}
    density = st.halfnorm.logpdf(values["simple::s"], 0, 2)
    density += st.dirichlet.logpdf(values["simple::p"].T, [2.0, 3.0, 4.0])
    jacobian = log_jacobian(
        simple,
        lambda v: np.concatenate([v["simple::s"][..., None], v["simple::p"][..., :2]], axis=-1),
        x,
    )
    np.testing.assert_allclose(over(simple.parts.log_prior)(x), density + jacobian, atol=1e-6)
    y = st.norm.logpdf([[0.5], [-1.0]], 1.0, values["simple::s"]).sum(0) - values["simple::s"] ** 4
    np.testing.assert_allclose(over(simple.parts.log_likelihood)(x), y, rtol=1e-6)


def test_prior_integrates_to_one(simple):
    assert integral(simple.parts.log_prior, 9.0, 61, 3) == pytest.approx(1, abs=1e-4)


def test_prior_draws(simple):
    """Kolmogorov-Smirnov tests of 4000 draws, wrong once in 10⁵ each."""
    x = simple.parts.sample_prior(np.random.default_rng(shifted(0)), 4000)
    assert x.shape == (4000, 3) and x.dtype == np.float64
    values = simple.constrain(x[:, None])
    assert st.kstest(values["simple::s"].ravel(), st.halfnorm(0, 2).cdf).pvalue > 1e-5
    for i, a in enumerate((2.0, 3.0, 4.0)):
        marginal = st.beta(a, 9.0 - a).cdf
        assert st.kstest(values["simple::p"][..., i].ravel(), marginal).pvalue > 1e-5
    again = simple.parts.sample_prior(np.random.default_rng(shifted(0)), 10)
    np.testing.assert_array_equal(again, x[:10])


def test_parts_can_be_built_while_jax_traces():
    """They are built at their first call, which may be inside a compiled function."""
    with pm.Model() as model:
        pm.Dirichlet("p", [2.0, 3.0, 4.0])
    parts = schuss.from_pymc(model).parts
    with jax.enable_x64(True):
        first = jax.jit(parts.log_prior)(np.zeros(2))
        np.testing.assert_allclose(parts.log_prior(np.zeros(2)), first, rtol=1e-14)
        assert parts.log_likelihood(np.zeros(2)) == 0


def test_supports_and_matrices():
    """Values lie where they must; a prior that isn't normalised there has no parts."""
    with pm.Model() as model:
        pm.Uniform("u", -1.0, 2.0)
        top = pm.HalfNormal("top", 1.0)
        pm.Uniform("below", 0.0, top)
        pm.Normal("a", shape=3, transform=pm.distributions.transforms.ordered, initval=[-1, 0, 1])
        sd = pm.Exponential.dist(1.0, shape=2)
        chol, _, _ = pm.LKJCholeskyCov("c", n=2, eta=2.0, sd_dist=sd)
        pm.MvNormal("y", np.zeros(2), chol=chol, observed=np.eye(2))
    adapted = schuss.from_pymc(model)
    assert adapted.dim == 1 + 1 + 1 + 3 + 3
    x = np.random.default_rng(0).normal(size=(4, 50, adapted.dim))
    values = adapted.constrain(x)
    assert set(values) == {"u", "top", "below", "a", "c", "c_corr", "c_stds"}
    assert np.all((values["u"] > -1) & (values["u"] < 2))
    assert np.all((values["below"] > 0) & (values["below"] < values["top"]))
    assert np.all(np.diff(values["a"], axis=-1) > 0)
    corr, sds, packed = values["c_corr"], values["c_stds"], values["c"]
    lower = np.zeros((4, 50, 2, 2))
    lower[..., 0, 0], lower[..., 1, 0], lower[..., 1, 1] = np.moveaxis(packed, -1, 0)
    covariance = corr * sds[..., None] * sds[..., None, :]
    np.testing.assert_allclose(lower @ np.swapaxes(lower, -1, -2), covariance, rtol=1e-10)
    value, gradient = gradients(adapted.logdensity)(adapted.start(np.random.default_rng(0), 4))
    assert np.isfinite(value).all() and np.isfinite(gradient).all()
    assert adapted.parts is None


@pytest.mark.parametrize("kind", ["flat", "ordered", "lkj", "written", "circular"])
def test_no_parts_without_a_normalised_prior(kind):
    ordered = pm.distributions.transforms.ordered
    with pm.Model() as model:
        {
            "flat": lambda: pm.Flat("x"),
            "ordered": lambda: pm.Normal("x", shape=2, transform=ordered, initval=[0, 1]),
            "lkj": lambda: pm.LKJCorr("x", n=2, eta=2.0),
            "written": lambda: pm.CustomDist("x", logp=lambda value: -(value**2)),
            "circular": lambda: pm.VonMises("x", 0.0, 1.0),
        }[kind]()
    assert schuss.from_pymc(model).parts is None


def test_missing_data_are_sampled():
    observed = np.ma.masked_invalid([1.0, np.nan, 2.0])
    with pm.Model() as model:
        mu = pm.Normal("mu")
        with pytest.warns(UserWarning, match="missing"):
            pm.Normal("y", mu, 1.0, observed=observed)
    adapted = schuss.from_pymc(model)
    x = np.array([[[0.5, 1.5]]])
    values = adapted.constrain(x)
    np.testing.assert_allclose(values["y"], [[[1.0, 1.5, 2.0]]])
    expected = st.norm.logpdf([0.5, 0.5, 1.0, 1.5]).sum()
    np.testing.assert_allclose(over(adapted.logdensity)(x[0]), [expected], rtol=1e-12)
    np.testing.assert_allclose(
        over(adapted.parts.log_likelihood)(x[0]), [st.norm.logpdf([0.5, 1.5]).sum()], rtol=1e-12
    )


def test_data_are_those_of_now():
    """Data set later change nothing, in the parts neither, which are built later."""
    with pm.Model() as model:
        data = pm.Data("data", np.array([1.0, 2.0]))
        pm.Normal("y", pm.Normal("mu"), 1.0, observed=data)
    adapted = schuss.from_pymc(model)
    model.set_data("data", np.array([100.0, 200.0]))
    x = np.zeros((1, 1))
    expected = st.norm.logpdf([1.0, 2.0]).sum()
    np.testing.assert_allclose(over(adapted.parts.log_likelihood)(x), [expected], rtol=1e-12)
    np.testing.assert_allclose(
        over(adapted.logdensity)(x), [expected + st.norm.logpdf(0)], rtol=1e-12
    )


def test_what_cannot_be_sampled_is_named():
    with pm.Model() as discrete:
        pm.Bernoulli("coin", 0.5)
        pm.Poisson("count", 3.0)
        pm.Normal("x")
    with pytest.raises(ValueError, match=r"discrete free variables, coin, count"):
        schuss.from_pymc(discrete)
    with pm.Model() as empty:
        pm.Normal("y", observed=1.0)
    with pytest.raises(ValueError, match="no free variables"):
        schuss.from_pymc(empty)
    with pytest.raises(TypeError, match=r"must be a pymc\.Model, got int"):
        schuss.from_pymc(3)
    with pm.Model() as partial:
        batch = pm.Minibatch(np.arange(10.0), batch_size=2)
        pm.Normal("y", pm.Normal("mu"), observed=batch, total_size=10)
    with pytest.raises(ValueError, match="pass the whole data"):
        schuss.from_pymc(partial)
    with pm.Model() as curved:
        pm.Interpolated("x", np.linspace(0, 1, 9), np.ones(9))
    with pytest.raises(NotImplementedError, match="can't translate to JAX"):
        schuss.from_pymc(curved)


def test_no_finite_start_is_an_error():
    with pm.Model() as model:
        x = pm.Normal("x")
        pm.Potential("never", -np.inf * (x**2 + 1))
    with pytest.raises(ValueError, match=r"for 3 of 3 chains; give .* initval="):
        schuss.from_pymc(model).start(np.random.default_rng(0), 3)


def test_the_devices_stay_as_they_are(schools):
    """PyMC asks XLA for a hundred of them."""
    assert schools.dim == 10
    assert "device_count=100" not in os.environ.get("XLA_FLAGS", "")
