"""The library of posteriors: energies, gradients, and stored moments against independent ones."""

import functools
import importlib.util
import math
import pathlib
import sys

import array_api_compat.torch as torch_xp
import array_api_strict
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from scipy import sparse, stats
from scipy.special import expit
from seeds import shifted
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from schuss.targets import Truth, get, posteriors
from schuss.targets.posteriors.brownian import FIRST, LAST
from schuss.targets.posteriors.eight_schools import EFFECT, ERROR
from schuss.targets.posteriors.gaussian_process import SINES, counts
from schuss.targets.posteriors.hierarchical_regression import data
from schuss.targets.posteriors.item_response import responses
from schuss.targets.posteriors.reference import probe, stored
from schuss.targets.posteriors.sparse_logistic import design
from schuss.targets.posteriors.stochastic_volatility import returns
from schuss.targets.target import Target

NAMES = list(posteriors.POSTERIORS)
EXACT = ("rosenbrock", "banana")


@pytest.fixture(params=NAMES)
def target(request: pytest.FixtureRequest) -> Target:
    return get(request.param)


def points(target: Target, n: int = 6) -> np.ndarray:
    return target.start(np.random.default_rng(1), n)


def close(a, b) -> None:
    a, b = np.asarray(a), np.asarray(b)
    np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11 * (1 + np.abs(b).max()))


def test_gradient_is_that_of_the_energy(target):
    """Against autodiff in float64, coordinate by coordinate."""
    x = points(target)
    with jax.enable_x64(True):
        want = jax.jit(jax.grad(lambda y: jnp.sum(target.energy(jnp, y))))(jnp.asarray(x))
        scale = 1 + np.abs(want)
        assert np.max(np.abs(target.gradient(np, x) - want) / scale) < 1e-10


def test_libraries_agree(target):
    x = points(target)
    energy, gradient = target.energy(np, x), target.gradient(np, x)
    assert energy.shape == (len(x),)
    assert gradient.shape == x.shape == (len(x), target.dim)
    for xp in (torch_xp, array_api_strict):
        for _ in range(2):
            close(target.energy(xp, xp.asarray(x)), energy)
            close(target.gradient(xp, xp.asarray(x)), gradient)
    with jax.enable_x64(True):
        close(jax.jit(lambda y: target.energy(jnp, y))(jnp.asarray(x)), energy)
        close(jax.jit(lambda y: target.gradient(jnp, y))(jnp.asarray(x)), gradient)


@pytest.mark.parametrize("xp", [np, jnp, torch_xp, array_api_strict])
def test_float32_stays(target, xp):
    """Also after float64, which a kept table must not remember."""
    with jax.enable_x64(True):
        wide, x = (xp.asarray(points(target).astype(dtype)) for dtype in (float, np.float32))
        trace = jax.eval_shape if xp is jnp else lambda function, y: function(y)
        trace(lambda y: target.energy(xp, y), wide)
        assert trace(lambda y: target.energy(xp, y), x).dtype == xp.float32
        assert trace(lambda y: target.gradient(xp, y), x).dtype == xp.float32


def test_torch_maps_and_differentiates(target):
    """Twice, since the first call keeps the tables."""
    x = points(target)
    each = torch.func.vmap(torch.func.grad(lambda y: target.energy(torch_xp, y[None, :])[0]))
    for _ in range(2):
        close(each(torch.asarray(x)), target.gradient(np, x))
    y = torch.zeros((1, target.dim), dtype=torch.float64, requires_grad=True)
    (at_zero,) = torch.autograd.grad(target.energy(torch_xp, y).sum(), y)
    close(at_zero, target.gradient(np, np.zeros((1, target.dim))))


@pytest.mark.parametrize("name", ["sparse-logistic", "stochastic-volatility"])
def test_torch_compiles(name):
    target = get(name)
    x = torch.asarray(points(target))
    each = torch.func.vmap(torch.func.grad(lambda y: target.energy(torch_xp, y[None, :])[0]))
    want = each(x)
    close(torch.compile(each, fullgraph=True, backend="aot_eager")(x), want)


def test_registered(target):
    attribute = target.name.replace("-", "_")
    assert get(attribute) is get(target.name) is getattr(posteriors, attribute)()


def test_sizes():
    dims = {name: get(name).dim for name in NAMES}
    assert dims == {
        "eight-schools": 10,
        "eight-schools-centred": 10,
        "brownian": 32,
        "rosenbrock": 36,
        "banana": 2,
        "sparse-logistic": 51,
        "hierarchical-regression": 45,
        "stochastic-volatility": 103,
        "gaussian-process": 50,
        "item-response": 501,
    }


def eight_schools_by_definition(x):
    mu, tau, theta = x[0], np.exp(x[1]), x[0] + np.exp(x[1]) * x[2:]
    prior = stats.norm.logpdf(mu, 0, 5) + stats.halfcauchy.logpdf(tau, scale=5) + np.log(tau)
    seen = stats.norm.logpdf(EFFECT, theta, ERROR).sum()
    return prior + stats.norm.logpdf(x[2:]).sum() + seen


def eight_schools_centred_by_definition(x):
    mu, tau, theta = x[0], np.exp(x[1]), x[2:]
    prior = stats.norm.logpdf(mu, 0, 5) + stats.halfcauchy.logpdf(tau, scale=5) + np.log(tau)
    schools = stats.norm.logpdf(theta, mu, tau).sum()
    return prior + schools + stats.norm.logpdf(EFFECT, theta, ERROR).sum()


def brownian_by_definition(x):
    scale, noise, place = np.exp(x[0]), np.exp(x[1]), x[2:]
    prior = stats.lognorm.logpdf([scale, noise], s=2).sum() + x[0] + x[1]
    walk = stats.norm.logpdf(place[0], 0, scale)
    walk += sum(stats.norm.logpdf(place[t], place[t - 1], scale) for t in range(1, 30))
    first = stats.norm.logpdf(FIRST, place[:10], noise).sum()
    return prior + walk + first + stats.norm.logpdf(LAST, place[20:], noise).sum()


def rosenbrock_by_definition(x):
    a, b = x[:18], x[18:]
    return stats.norm.logpdf(a, 1, 1).sum() + stats.norm.logpdf(b, a**2, math.sqrt(0.1)).sum()


def banana_by_definition(x):
    bend = 0.03 * (x[0] ** 2 - 100)
    return stats.norm.logpdf(x[0], 0, 10) + stats.norm.logpdf(x[1], bend, 1)


def sparse_logistic_by_definition(x):
    bunch = load_breast_cancer()
    features = StandardScaler().fit_transform(bunch.data[:, :24])
    features = np.hstack([np.ones((569, 1)), features])
    total, local, w = np.exp(x[0]), np.exp(x[1:26]), x[26:]
    prior = stats.gamma.logpdf(np.append(local, total), 0.5, scale=2).sum() + x[:26].sum()
    chance = expit(features @ (total * local * w))
    wrong = expit(-(features @ (total * local * w)))
    seen = np.where(bunch.target == 1, np.log(chance), np.log(wrong)).sum()
    return prior + stats.norm.logpdf(w).sum() + seen


def hierarchical_regression_by_definition(x):
    group, predictor, outcome = data()
    tau_a, tau_b, sigma = np.exp(x[2:5])
    a, b = x[0] + tau_a * x[5:25], x[1] + tau_b * x[25:]
    prior = stats.norm.logpdf(x[:2], 0, 5).sum() + stats.norm.logpdf(x[5:]).sum()
    prior += stats.halfnorm.logpdf([tau_a, tau_b, sigma]).sum() + x[2:5].sum()
    return prior + stats.norm.logpdf(outcome, a[group] + b[group] * predictor, sigma).sum()


def stochastic_volatility_by_definition(x):
    phi, mean, sigma, z = expit(x[0]), x[1], np.exp(x[2]), x[3:]
    prior = stats.beta.logpdf(phi, 20, 1.5) + np.log(phi * (1 - phi))
    prior += stats.norm.logpdf(mean, 0, 3) + stats.halfnorm.logpdf(sigma) + x[2]
    h = [mean + sigma * z[0] / math.sqrt(1 - phi**2)]
    for shock in z[1:]:
        h.append(mean + phi * (h[-1] - mean) + sigma * shock)
    seen = stats.norm.logpdf(returns(), 0, np.exp(np.array(h) / 2)).sum()
    return prior + stats.norm.logpdf(z).sum() + seen


def gaussian_process_by_definition(x):
    alpha, length, z = np.exp(x[1]), np.exp(x[2]), x[3:]
    place, log_rate = np.linspace(-1, 1, 100), np.full(100, x[0])
    for k in range(1, 48):
        omega = k * math.pi / 3
        density = alpha**2 * math.sqrt(2 * math.pi) * length * np.exp(-((length * omega) ** 2) / 2)
        wave = np.sin(omega * (place + 1.5)) / math.sqrt(1.5)
        log_rate = log_rate + math.sqrt(density) * z[k - 1] * wave
    prior = stats.norm.logpdf(x[:3], [0, 0, -1], [2, 1, 0.5]).sum() + stats.norm.logpdf(z).sum()
    return prior + stats.poisson.logpmf(counts(), np.exp(log_rate)).sum()


def item_response_by_definition(x):
    answer = responses()
    student, question = np.nonzero(answer)
    assert len(student) == 30_105
    logit = x[0] + x[1 + student] - x[401 + question]
    seen = stats.bernoulli.logpmf(answer[student, question] > 0, expit(logit)).sum()
    return stats.norm.logpdf(x[0], 0.75) + stats.norm.logpdf(x[1:]).sum() + seen


def test_energy_is_the_model(target):
    """E + log p is the same at every point, with log p written out through SciPy."""
    log_density = globals()[f"{target.name.replace('-', '_')}_by_definition"]
    x = 0.5 * points(target, 4)
    if target.name == "stochastic-volatility":
        x[:, 0] += 4  # φ near 1, where a day is felt to the end
    want = np.array([log_density(one) for one in x])
    total = target.energy(np, x) + want
    np.testing.assert_allclose(total, total[0], rtol=1e-10, atol=1e-10 * np.abs(want).max())


def test_sines_make_the_kernel():
    """Σ s_k² sin_k(s) sin_k(t) is e^{−(s − t)²/2ℓ²} away from the ends of [−1.5, 1.5]."""
    length, place = 0.3, np.linspace(-1, 1, 100)
    omega = math.pi * np.arange(1, 48) / 3
    density = math.sqrt(2 * math.pi) * length * np.exp(-((length * omega) ** 2) / 2)
    kernel = (SINES * density) @ SINES.T
    want = np.exp(-((place[:, None] - place) ** 2) / (2 * length**2))
    assert np.abs(kernel - want).max() < 0.005


def blend(weight, mean, variance):
    """First, second and fourth moments of Gaussians (grid, …) mixed by weights (grid,)."""
    second = mean**2 + variance
    fourth = mean**4 + 6 * mean**2 * variance + 3 * variance**2
    return [np.tensordot(weight, m, 1) for m in (mean, second, fourth)]


@functools.cache
def eight_schools_quadrature():
    """Given τ, all else is Gaussian: (μ, t) and (μ, θ) on a grid of log τ."""
    log_tau = np.linspace(-25, 8, 2001)[:, None]
    tau, y, s = np.exp(log_tau), np.array(EFFECT), np.array(ERROR)
    wide = s**2 + tau**2
    mu_variance = 1 / (1 / 25 + (1 / wide).sum(axis=-1, keepdims=True))
    mu = mu_variance * (y / wide).sum(axis=-1, keepdims=True)
    log_weight = (np.log(mu_variance) + mu**2 / mu_variance)[:, 0] / 2
    log_weight -= (np.log(wide) + y**2 / wide).sum(axis=-1) / 2
    log_weight += (log_tau - np.log1p(tau**2 / 25))[:, 0]
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    # t_j and θ_j are Gaussian given μ, with a mean linear in it.
    t_slope, t_variance = -tau / wide, s**2 / wide
    t = [-t_slope * (y - mu), t_variance + t_slope**2 * mu_variance]
    th_slope, th_variance = s**2 / wide, s**2 * tau**2 / wide
    theta = [th_slope * mu + (1 - th_slope) * y, th_variance + th_slope**2 * mu_variance]
    shared = np.concatenate([mu, log_tau], axis=-1)
    shared_variance = np.concatenate([mu_variance, 0 * log_tau], axis=-1)
    return {
        name: blend(
            weight,
            np.concatenate([shared, mean], axis=-1),
            np.concatenate([shared_variance, variance], axis=-1),
        )
        for name, (mean, variance) in (("eight-schools", t), ("eight-schools-centred", theta))
    }


def brownian_quadrature():
    """Given both scales the places are Gaussian: a grid over the two logarithms."""
    a, b = np.meshgrid(np.linspace(-6, 0.5, 40), np.linspace(-14, 1, 90), indexing="ij")
    a, b = a.ravel(), b.ravel()
    bend = 2 * np.eye(30) - np.eye(30, k=1) - np.eye(30, k=-1)
    bend[-1, -1] = 1
    seen = np.concatenate([np.ones(10), np.zeros(10), np.ones(10)])
    y = np.concatenate([FIRST, np.zeros(10), LAST])
    noise = np.exp(-2 * b)
    precision = np.exp(-2 * a)[:, None, None] * bend + noise[:, None, None] * np.diag(seen)
    covariance = np.linalg.inv(precision)
    place = noise[:, None] * (covariance @ y)
    log_weight = -(a**2 + b**2) / 8 - 30 * a - 20 * b - np.linalg.slogdet(precision)[1] / 2
    log_weight -= noise * (y @ y - place @ y) / 2
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    variance = np.diagonal(covariance, axis1=1, axis2=2)
    return blend(
        weight,
        np.concatenate([a[:, None], b[:, None], place], axis=-1),
        np.concatenate([np.zeros((len(a), 2)), variance], axis=-1),
    )


@pytest.mark.parametrize("name", ["eight-schools", "eight-schools-centred", "brownian"])
def test_references_by_quadrature(name):
    """Two ways to the same integral; Var[x²] of the noise is a quarter less without its tail."""
    exact = brownian_quadrature() if name == "brownian" else eight_schools_quadrature()[name]
    mean, second, fourth = exact
    truth = get(name).truth
    near = 1e-3 * np.sqrt(truth.variance)
    assert np.all(np.abs(truth.mean - mean) < near)
    np.testing.assert_allclose(truth.second_moment, second, rtol=1e-3)
    np.testing.assert_allclose(truth.variance, second - mean**2, rtol=1e-3)
    np.testing.assert_allclose(truth.second_variance, fourth - second**2, rtol=1e-3)


def volatility_likelihood(p, m, sigma):
    """log p(returns | φ, m, σ) for one logit φ and all (m, σ), filtered on a grid of v.

    The grid reaches 7 standard deviations of v at .9 of a day's shock; a step reaches 7 shocks.
    """
    phi, s = expit(p), 1 / math.sqrt(expit(-p) * (1 + expit(p)))
    v = np.linspace(-7 * s, 7 * s, max(60, math.ceil(14 * s / 0.9)))
    apart = v[:, None] - phi * v
    step = sparse.csr_array(np.where(abs(apart) < 7, stats.norm.pdf(apart), 0) * (v[1] - v[0]))
    density = np.tile(stats.norm.pdf(v, 0, s)[:, None] * (v[1] - v[0]), len(m))
    h = np.maximum(m + sigma * v[:, None], -60)
    total = np.zeros(len(m))
    for day, square in enumerate(returns() ** 2):
        density = step @ density if day else density
        log_seen = -(h + square * np.exp(-h)) / 2
        top = log_seen.max(axis=0)
        density = density * np.exp(log_seen - top)
        mass = np.maximum(density.sum(axis=0), 1e-300)
        density, total = density / mass, total + np.log(mass) + top
    return total


@pytest.mark.slow
def test_volatility_reference_by_filtering():
    """φ, m and σ by quadrature, their tails included; 5 standard errors of 6 moments."""
    p, sides = np.arange(-1.5, 10.1, 0.5), (np.arange(-12, 12.1, 0.6), np.arange(-5, 1.6, 0.4))
    m, log_sigma = (side.ravel() for side in np.meshgrid(*sides, indexing="ij"))
    sigma = np.exp(log_sigma)
    prior = -(m**2) / 18 - sigma**2 / 2 + log_sigma
    persistence = 20 * np.log(expit(p)) + 1.5 * np.log(expit(-p))
    log_weight = np.array([volatility_likelihood(one, m, sigma) for one in p])
    log_weight = log_weight + prior + persistence[:, None]
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    name = "stochastic-volatility"
    truth, error = get(name).truth, posteriors.reference_error(name)
    for i, x in enumerate((p[:, None], m, log_sigma)):
        assert abs((weight * x).sum() - truth.mean[i]) < 5 * error.mean[i]
        assert abs((weight * x**2).sum() - truth.second_moment[i]) < 5 * error.second_moment[i]


def test_rosenbrock_truth():
    """Gauss–Hermite in a, exact for these polynomials; b given a is Gaussian. And its samples."""
    node, weight = np.polynomial.hermite_e.hermegauss(20)
    weight = weight / weight.sum()
    a = 1 + node
    target = posteriors.rosenbrock()
    _, second_a, fourth_a = blend(weight, a, 0 * a)
    mean_b, second_b, fourth_b = blend(weight, a**2, 0.1 + 0 * a)
    truth = target.truth
    np.testing.assert_allclose(truth.mean[[0, 18]], [1, mean_b], rtol=1e-12)
    np.testing.assert_allclose(truth.second_moment[[0, 18]], [second_a, second_b], rtol=1e-12)
    spread = [fourth_a - second_a**2, fourth_b - second_b**2]
    np.testing.assert_allclose(truth.second_variance[[0, 18]], spread, rtol=1e-12)
    np.testing.assert_allclose(truth.variance, truth.second_moment - truth.mean**2)
    # 5 standard errors for 36 coordinates: one false alarm in 50 000 seeds.
    x = target.sample(np.random.default_rng(shifted(0)), 100_000)
    near = 5 / math.sqrt(len(x))
    z = target.whiten(x)
    assert np.abs(z.mean(axis=0)).max() < near
    assert np.abs((z**2).mean(axis=0) - 1).max() < near * math.sqrt(2)
    assert abs(target.energy(np, x).mean() - truth.energy) < near * math.sqrt(18)
    want = -sum(rosenbrock_by_definition(one) for one in x[:3])
    assert target.energy(np, x[:3]).sum() + 3 * truth.log_z == pytest.approx(want, rel=1e-12)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in EXACT])
def test_references_are_whole(name):
    """Every coordinate known to .03 of its spread, for the data that the target has today."""
    target, error = get(name), posteriors.reference_error(name)
    truth = target.truth
    for values in (*truth[:4], *error):
        assert values.shape == (target.dim,)
        assert np.all(np.isfinite(values))
    assert np.all(error.second_moment > 0) or stored()[name]["method"] == "quadrature"
    assert np.all(error.second_moment < 0.03 * np.sqrt(truth.second_variance))
    assert np.all(error.mean < 0.03 * np.sqrt(truth.variance))
    scale = truth.second_moment
    assert np.all(np.abs(scale - truth.mean**2 - truth.variance) < 1e-4 * scale)
    energy = target.energy(np, probe(target.dim))[0]
    assert energy == pytest.approx(stored()[name]["probe"], rel=1e-9)


def test_mean_energy_of_a_convex_one():
    """Item response is log-concave, so E[E] is above E at the mean; if Gaussian, by d/2."""
    target = get("item-response")
    above = target.truth.energy - target.energy(np, target.truth.mean[None, :])[0]
    assert above == pytest.approx(target.dim / 2, rel=0.1)


def test_unknown_reference_is_refused():
    with pytest.raises(ValueError, match="name must have a stored reference, got 'mog'"):
        posteriors.reference_error("mog")


@pytest.mark.parametrize(("arguments", "word"), [({"dim": 3}, "dim"), ({"width": 0.0}, "width")])
def test_bad_rosenbrock_is_refused(arguments, word):
    with pytest.raises(ValueError, match=word):
        posteriors.rosenbrock(**arguments)


def test_scikit_learn_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(ImportError, match=r"schuss\[posteriors\]"):
        design()


@pytest.fixture(scope="module")
def peers():
    path = pathlib.Path(__file__).parents[2] / "benchmarks" / "peers.py"
    spec = importlib.util.spec_from_file_location("peers", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_crossing_by_hand(peers):
    """Medians .5, .009, .02, .005, .001: below .01 for good from the fourth count on."""
    gradients = np.array([100, 200, 300, 400, 500])
    seeds = np.array(
        [
            [0.9, 0.009, 0.02, 0.005, 0.001],
            [0.5, 0.100, 0.03, 0.004, 0.000],
            [0.1, 0.001, 0.01, 9.000, np.inf],
        ]
    )
    assert peers.crossing(gradients, seeds) == 400
    assert peers.crossing(gradients[:3], seeds[:, :3]) == math.inf
    assert peers.crossing(gradients, np.zeros((3, 5))) == 100
    assert peers.crossing(gradients, np.full((3, 5), np.nan)) == math.inf


def test_bias_on_a_grid_by_hand(peers):
    """Two coordinates, two records at 10 and 30 gradients; not a number counts as far away."""
    truth = Truth(np.zeros(2), np.ones(2), np.array([1.0, 4.0]), np.array([1.0, 4.0]))
    run = peers.Run(np.array([10, 30]), np.array([[2.0, 5.0], [np.nan, 4.0]]), 5, 0.0)
    got = peers.bias_on_grid([run], truth, np.array([5, 10, 29, 30, 99]))
    np.testing.assert_array_equal(got, [[np.inf, 1, 1, np.inf, np.inf]])
