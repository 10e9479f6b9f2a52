"""NumPyro models against densities by hand, scipy and quadrature."""

import concurrent.futures
import functools
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats as st
from seeds import shifted

import schuss
from schuss.adapters.over import gradients, over

from .checks import EFFECTS, ERRORS, differences, eight_schools, integral, log_jacobian

numpyro = pytest.importorskip("numpyro")
dist = numpyro.distributions
handlers = numpyro.handlers


def schools_model(errors, effects=None):
    mu = numpyro.sample("mu", dist.Normal(0, 5))
    tau = numpyro.sample("tau", dist.HalfCauchy(5))
    with numpyro.plate("school", len(errors)):
        z = numpyro.sample("z", dist.Normal(0, 1))
        theta = numpyro.deterministic("theta", mu + tau * z)
        numpyro.sample("y", dist.Normal(theta, errors), obs=effects)


def simple_model():
    """s ~ N⁺(2), p ~ Dirichlet(2, 3, 4), with a factor beside the data."""
    s = numpyro.sample("s", dist.HalfNormal(2.0))
    p = numpyro.sample("p", dist.Dirichlet(jnp.array([2.0, 3.0, 4.0])))
    numpyro.factor("more", -(s**4))
    numpyro.sample("y", dist.Normal(p.sum(), s), obs=np.array([0.5, -1.0]))


@pytest.fixture(scope="module")
def schools():
    return schuss.from_numpyro(schools_model, ERRORS, effects=EFFECTS)


@pytest.fixture(scope="module")
def simple():
    return schuss.from_numpyro(simple_model)


def test_log_density_and_gradient_by_hand(schools):
    x = np.random.default_rng(0).normal(size=(20, 10))
    value, gradient = gradients(schools.logdensity)(x)
    np.testing.assert_allclose(value, eight_schools(x), rtol=0, atol=1e-9)
    np.testing.assert_allclose(gradient, differences(eight_schools, x), rtol=1e-6, atol=1e-6)


def test_names_shapes_dims_and_deterministics(schools):
    x = np.random.default_rng(0).normal(size=(2, 3, 10))
    values = schools.constrain(x)
    assert list(values) == ["mu", "tau", "z", "theta"]
    assert [value.shape for value in values.values()] == [(2, 3), (2, 3), (2, 3, 8), (2, 3, 8)]
    assert all(value.dtype == np.float64 for value in values.values())
    np.testing.assert_allclose(values["tau"], np.exp(x[..., 1]), rtol=1e-14)
    theta = x[..., :1] + np.exp(x[..., 1:2]) * x[..., 2:]
    np.testing.assert_allclose(values["theta"], theta, rtol=1e-13)
    assert schools.name == "schools_model"
    assert schools.dims == {"z": ["school"], "theta": ["school"]}
    assert schools.coords == {"school": list(range(8))}


def test_starts_differ_and_are_finite(schools):
    x = schools.start(np.random.default_rng(0), 6)
    assert x.shape == (6, 10) and x.dtype == np.float64
    assert len(np.unique(x)) == 60 and np.abs(x).max() <= 2
    np.testing.assert_array_equal(x, schools.start(np.random.default_rng(0), 6))


def test_parts_sum_to_the_whole(schools, simple):
    rng = np.random.default_rng(0)
    for model in (schools, simple):
        x = rng.normal(size=(10, model.dim))
        whole = over(model.parts.log_prior)(x) + over(model.parts.log_likelihood)(x)
        np.testing.assert_allclose(whole, over(model.logdensity)(x), rtol=0, atol=1e-10)


def test_prior_is_the_density_of_its_values(simple):
    """log p(s) + log p(p) + log |∂(s, p₁, p₂)/∂x|, the last by differences."""
    x = np.random.default_rng(shifted(0)).normal(size=(10, 3))
    values = {name: value[:, 0] for name, value in simple.constrain(x[:, None]).items()}
    s, p = values["s"], values["p"]
    np.testing.assert_allclose(p.sum(-1), 1, rtol=1e-14)
    density = st.halfnorm.logpdf(s, 0, 2) + st.dirichlet.logpdf(p.T, [2.0, 3.0, 4.0])
    jacobian = log_jacobian(
        simple, lambda v: np.concatenate([v["s"][..., None], v["p"][..., :2]], axis=-1), x
    )
    np.testing.assert_allclose(over(simple.parts.log_prior)(x), density + jacobian, atol=1e-6)
    y = st.norm.logpdf([[0.5], [-1.0]], 1.0, s).sum(0) - s**4
    np.testing.assert_allclose(over(simple.parts.log_likelihood)(x), y, rtol=1e-10)


def test_prior_integrates_to_one(simple):
    assert integral(simple.parts.log_prior, 9.0, 61, 3) == pytest.approx(1, abs=1e-4)


def test_prior_draws(simple):
    """Kolmogorov-Smirnov tests of 4000 draws, wrong once in 10⁵ each."""
    x = simple.parts.sample_prior(np.random.default_rng(shifted(0)), 4000)
    assert x.shape == (4000, 3) and x.dtype == np.float64
    values = simple.constrain(x[:, None])
    assert st.kstest(values["s"].ravel(), st.halfnorm(0, 2).cdf).pvalue > 1e-5
    for i, a in enumerate((2.0, 3.0, 4.0)):
        assert st.kstest(values["p"][..., i].ravel(), st.beta(a, 9.0 - a).cdf).pvalue > 1e-5
    again = simple.parts.sample_prior(np.random.default_rng(shifted(0)), 4000)
    np.testing.assert_array_equal(again, x)


def test_supports_and_matrices():
    """The LKJ prior of a 2 × 2 correlation, η = 2: r is 2 Beta(2, 2) − 1."""

    def model():
        top = numpyro.sample("top", dist.HalfNormal(1.0))
        numpyro.sample("below", dist.Uniform(0.0, top))
        base = dist.Normal(jnp.zeros(3), 1.0).to_event(1)
        numpyro.sample("a", dist.TransformedDistribution(base, dist.transforms.OrderedTransform()))
        numpyro.sample("chol", dist.LKJCholesky(2, 2.0))

    adapted = schuss.from_numpyro(model)
    assert adapted.dim == 1 + 1 + 3 + 1
    values = adapted.constrain(np.random.default_rng(0).normal(size=(4, 50, adapted.dim)))
    assert np.all((values["below"] > 0) & (values["below"] < values["top"]))
    assert np.all(np.diff(values["a"], axis=-1) > 0)
    chol = values["chol"]
    np.testing.assert_allclose(np.sum(chol**2, axis=-1), 1, rtol=1e-12)
    r = adapted.constrain(adapted.parts.sample_prior(np.random.default_rng(0), 4000)[:, None])
    r = r["chol"][..., 1, 0].ravel()
    assert st.kstest((r + 1) / 2, st.beta(2, 2).cdf).pvalue > 1e-5


def test_plates_name_dims():
    def model():
        with numpyro.plate("row", 3, dim=-2):
            m = numpyro.sample("m", dist.Normal(0, 1))
            with numpyro.plate("column", 2, dim=-1):
                v = numpyro.sample("v", dist.Dirichlet(jnp.ones(4)))
                numpyro.deterministic("sum", m + v[..., 0])
        numpyro.sample("g", dist.Normal(jnp.zeros(3), 1).to_event(1), infer={"event_dims": ["k"]})

    adapted = schuss.from_numpyro(model)
    assert adapted.dims == {
        "m": ["row", "m_dim_1"],
        "v": ["row", "column", "v_dim_2"],
        "g": ["k"],
        "sum": ["row", "column"],
    }
    assert adapted.coords == {"row": [0, 1, 2], "column": [0, 1]}
    values = adapted.constrain(np.zeros((1, 1, adapted.dim)))
    for name, dims in adapted.dims.items():
        assert values[name].ndim - 2 == len(dims)


def test_scan_and_fixed_parameters():
    """A random walk, x_t ~ N(w x_{t−1}, s), with w a parameter that isn't sampled."""
    scan = pytest.importorskip("numpyro.contrib.control_flow").scan
    y = np.array([0.5, -1.0, 2.0])

    def model():
        w = numpyro.param("w", lambda key: 0.5 + 0 * jax.random.uniform(key))
        s = numpyro.sample("s", dist.LogNormal(0.0, 1.0))

        def step(before, observed):
            x = numpyro.sample("x", dist.Normal(w * before, s))
            numpyro.sample("y", dist.Normal(x, 1.0), obs=observed)
            return x, None

        scan(step, jnp.zeros(()), y)

    adapted = schuss.from_numpyro(model)
    z = np.random.default_rng(0).normal(size=(5, 4))
    x = z[:, 1:]
    before = np.concatenate([np.zeros((5, 1)), x[:, :-1]], axis=-1)
    prior = st.norm.logpdf(z[:, 0]) + st.norm.logpdf(x, before / 2, np.exp(z[:, :1])).sum(-1)
    likelihood = st.norm.logpdf(y, x, 1.0).sum(-1)
    np.testing.assert_allclose(over(adapted.logdensity)(z), prior + likelihood, rtol=1e-12)
    np.testing.assert_allclose(over(adapted.parts.log_prior)(z), prior, rtol=1e-12)
    np.testing.assert_allclose(over(adapted.parts.log_likelihood)(z), likelihood, rtol=1e-12)
    with jax.enable_x64(True):
        np.testing.assert_allclose(adapted.logdensity(z[0]), (prior + likelihood)[0], rtol=1e-12)


def test_two_threads_may_trace_at_once(schools):
    """As where one compiles the next loop while another runs this one."""
    functions = [schools.logdensity, schools.parts.log_prior, schools.parts.log_likelihood]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def trace(function):
        with jax.enable_x64(True):
            return [jax.make_jaxpr(lambda x: function(x))(np.zeros(10)) for _ in range(10)]

    try:
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            assert all(len(found) == 10 for found in pool.map(trace, functions))
    finally:
        sys.setswitchinterval(interval)


@pytest.mark.parametrize("kind", ["improper", "masked", "scaled"])
def test_no_parts_without_a_normalised_prior(kind):
    normal = dist.Normal(0.0, 1.0)
    anywhere = dist.ImproperUniform(dist.constraints.real, (), ())

    def model():
        sample = functools.partial(numpyro.sample, "x")
        if kind == "improper":
            sample(anywhere)
        elif kind == "masked":
            handlers.mask(sample, mask=False)(normal)
        else:
            handlers.scale(sample, scale=2.0)(normal)

    assert schuss.from_numpyro(model).parts is None


def test_what_cannot_be_sampled_is_named():
    def discrete():
        numpyro.sample("coin", dist.Bernoulli(0.5))
        numpyro.sample("count", dist.Poisson(3.0))
        numpyro.sample("x", dist.Normal(0, 1))

    with pytest.raises(ValueError, match="discrete latent sites, coin, count"):
        schuss.from_numpyro(discrete)
    with pytest.raises(ValueError, match="no latent sites"):
        schuss.from_numpyro(lambda: numpyro.sample("y", dist.Normal(0, 1), obs=1.0))
    with pytest.raises(ValueError, match="site 'x' has a Delta"):
        schuss.from_numpyro(lambda: numpyro.sample("x", dist.Delta(0.5)))
    with pytest.raises(TypeError, match=r"must be a function .* got int"):
        schuss.from_numpyro(3)

    def part(y):
        mu = numpyro.sample("mu", dist.Normal(0, 1))
        with numpyro.plate("data", 6, subsample_size=2) as chosen:
            numpyro.sample("y", dist.Normal(mu, 1), obs=y[chosen])

    with pytest.raises(ValueError, match="plate 'data' takes a subsample"):
        schuss.from_numpyro(part, np.arange(6.0))
