"""Models that people have, as plain JAX functions, with synthetic data of a fixed seed.

`MODELS` gives for each name a function that makes a `Model`: a log-density of a dict and a point
that chains start around, or one of an array and a function (rng, chains) → starts. Scales are
sampled as logarithms, probabilities as logits, with their Jacobians.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jax.scipy.special import gammaln, logsumexp

SEED = 26


class Model(NamedTuple):
    """A log-density, its starts, and a point from which NUTS is warmed up."""

    logdensity: Callable[[Any], Any]
    init: Any
    centre: Any


def _at(logdensity: Callable, centre: dict) -> Model:
    """A model whose chains start around a point, a dict."""
    return Model(logdensity, centre, centre)


def _spread(logdensity: Callable, centre: dict, wide: float | dict, known: dict | None = None):
    """A model of a flat array whose chains start uniform within ±`wide` of a point."""
    names, shapes = sorted(centre), {name: np.shape(centre[name]) for name in centre}
    ends = np.cumsum([int(np.prod(shapes[name])) for name in names])

    def flat(point):
        return np.concatenate([np.ravel(point[name]) for name in names]).astype(float)

    def named(x):
        parts = jnp.split(x, ends[:-1])
        return {k: part.reshape(shapes[k]) for k, part in zip(names, parts, strict=True)}

    sides = wide if isinstance(wide, dict) else dict.fromkeys(names, wide)
    side = flat({name: np.full(shapes[name], sides[name]) for name in names})

    def starts(rng, chains):
        return flat(centre) + side * rng.uniform(-1, 1, (chains, len(side)))

    return Model(lambda x: logdensity(named(x)), starts, flat(known or centre))


def _uniform(logdensity: Callable, known: dict) -> Model:
    """A model whose chains start uniform in (−2, 2) in every coordinate, as Stan's do."""
    centre = {name: np.zeros(np.shape(value)) for name, value in known.items()}
    return _spread(logdensity, centre, 2.0, known)


def _normal(x, mean: Any = 0.0, sd: Any = 1.0):
    """Σ log N(x; mean, sd²) without log √2π."""
    return jnp.sum(-(((x - mean) / sd) ** 2) / 2 - jnp.log(sd) * jnp.ones_like(x))


def _half_normal(log_s, scale: float = 1.0):
    """Log-density of log s where s is half-normal."""
    return jnp.sum(log_s - (jnp.exp(log_s) / scale) ** 2 / 2)


def _half_cauchy(log_s, scale=1.0):
    """Log-density of log s where s is half-Cauchy."""
    return jnp.sum(log_s - jnp.log1p((jnp.exp(log_s) / scale) ** 2))


def _bernoulli(y, logit):
    return jnp.sum(y * logit - jax.nn.softplus(logit))


def _rng() -> np.random.Generator:
    return np.random.default_rng(SEED)


def _expit(x):
    return 1 / (1 + np.exp(-x))


def _hierarchical_logistic(centred: bool) -> Model:
    """Intercepts and slopes of 20 groups of 20 rows, d = 44."""
    rng, groups = _rng(), 20
    group = np.repeat(np.arange(groups), 20)
    x = rng.standard_normal(len(group))
    a, b = -0.5 + 0.8 * rng.standard_normal(groups), 1 + 0.5 * rng.standard_normal(groups)
    y = (rng.random(len(group)) < _expit(a[group] + b[group] * x)).astype(float)

    def logdensity(p):
        tau = jnp.exp(p["log_tau"])
        if centred:
            effects, prior = p["effects"], _normal(p["effects"], p["mu"], tau)
        else:
            effects, prior = p["mu"] + tau * p["effects"], _normal(p["effects"])
        prior += _normal(p["mu"], 0.0, 2.5) + _half_normal(p["log_tau"])
        return prior + _bernoulli(y, effects[group, 0] + effects[group, 1] * x)

    centre = {"mu": np.zeros(2), "log_tau": np.zeros(2), "effects": np.zeros((groups, 2))}
    return _at(logdensity, centre)


def hierarchical_logistic_centred() -> Model:
    """Logistic regression with effects of groups, centred."""
    return _hierarchical_logistic(True)


def hierarchical_logistic() -> Model:
    """Logistic regression with effects of groups, non-centred."""
    return _hierarchical_logistic(False)


def poisson_crossed() -> Model:
    """Counts of 30 subjects at 12 items, with effects of both, centred, d = 46."""
    rng, subjects, items = _rng(), 30, 12
    x = rng.standard_normal((subjects, items))
    u, v = 0.5 * rng.standard_normal((subjects, 1)), 0.3 * rng.standard_normal(items)
    y = rng.poisson(np.exp(0.7 + 0.3 * x + u + v)).astype(float)

    def logdensity(p):
        eta = p["alpha"] + p["beta"] * x + p["subject"][:, None] + p["item"]
        prior = _normal(p["alpha"], 0.0, 2.5) + _normal(p["beta"]) + _half_normal(p["log_sd"])
        prior += _normal(p["subject"], 0.0, jnp.exp(p["log_sd"][0]))
        prior += _normal(p["item"], 0.0, jnp.exp(p["log_sd"][1]))
        return prior + jnp.sum(y * eta - jnp.exp(eta))

    centre = {
        "alpha": np.zeros(()),
        "beta": np.zeros(()),
        "log_sd": np.zeros(2),
        "subject": np.zeros(subjects),
        "item": np.zeros(items),
    }
    return _at(logdensity, centre)


def student_t_regression() -> Model:
    """120 rows with outliers and 6 correlated predictors, the degrees of freedom unknown, d = 9."""
    rng, rows, columns = _rng(), 120, 6
    x = rng.standard_normal((rows, columns)) + 1.5 * rng.standard_normal((rows, 1))
    slope = np.array([1.0, -0.5, 0.0, 0.3, 0.0, 2.0])
    y = 0.5 + x @ slope + 0.7 * rng.standard_t(3, rows)

    def logdensity(p):
        nu, sigma = jnp.exp(p["log_nu"]), jnp.exp(p["log_sigma"])
        z = (y - p["alpha"] - x @ p["beta"]) / sigma
        each = gammaln((nu + 1) / 2) - gammaln(nu / 2) - jnp.log(nu) / 2 - p["log_sigma"]
        prior = _normal(p["alpha"], 0.0, 5.0) + _normal(p["beta"], 0.0, 2.5)
        prior += _half_normal(p["log_sigma"], 2.5) + 2 * p["log_nu"] - 0.1 * nu
        return prior + jnp.sum(each - (nu + 1) / 2 * jnp.log1p(z**2 / nu))

    centre = {
        "alpha": np.zeros(()),
        "beta": np.zeros(columns),
        "log_sigma": np.zeros(()),
        "log_nu": np.ones(()),
    }
    return _at(logdensity, centre)


def zero_inflated_negative_binomial() -> Model:
    """300 counts, of which some are zero for another reason, with regressions of both, d = 6."""
    rng, rows = _rng(), 300
    x = np.stack([np.ones(rows), rng.standard_normal(rows), rng.standard_normal(rows)], axis=-1)
    mean, size = np.exp(x @ [1.0, 0.5, -0.4]), 1.5
    count = rng.poisson(mean * rng.gamma(size, 1 / size, rows))
    y = np.where(rng.random(rows) < _expit(x[:, :2] @ [-1.0, 0.8]), 0, count).astype(float)

    def logdensity(p):
        eta, logit, phi = x @ p["beta"], x[:, :2] @ p["gamma"], jnp.exp(p["log_phi"])
        total = jnp.logaddexp(eta, p["log_phi"])
        counted = gammaln(y + phi) - gammaln(phi) + phi * (p["log_phi"] - total) + y * (eta - total)
        structural = jax.nn.log_sigmoid(logit)
        counted += jax.nn.log_sigmoid(-logit)
        seen = jnp.where(y == 0, jnp.logaddexp(structural, counted), counted)
        prior = _normal(p["beta"], 0.0, 2.5) + _normal(p["gamma"], 0.0, 2.5)
        return prior + _normal(p["log_phi"]) + jnp.sum(seen)

    return _at(logdensity, {"beta": np.zeros(3), "gamma": np.zeros(2), "log_phi": np.zeros(())})


def ordered_logistic() -> Model:
    """250 answers in five categories, three predictors; cuts c₁ and the logs of gaps, d = 7."""
    rng, rows = _rng(), 250
    x = rng.standard_normal((rows, 3))
    latent = x @ [1.0, -0.7, 0.2] + rng.logistic(size=rows)
    y = np.searchsorted([-2.0, -0.5, 0.4, 1.8], latent)

    def logdensity(p):
        gaps = jnp.exp(p["log_gap"])
        cuts = p["first"] + jnp.concatenate([jnp.zeros(1), jnp.cumsum(gaps)])
        ends = jnp.concatenate([jnp.full(1, -jnp.inf), cuts, jnp.full(1, jnp.inf)])
        eta = x @ p["beta"]
        # σ(b) − σ(a) = σ(b) σ(−a) (1 − e^{a − b}), with a and b finite where it matters.
        upper, lower = ends[y + 1] - eta, ends[y] - eta
        inside = (y > 0) & (y < 4)
        apart = jnp.where(inside, upper - lower, 1.0)
        upper, lower = jnp.where(y < 4, upper, 1e3), jnp.where(y > 0, lower, -1e3)
        seen = jax.nn.log_sigmoid(upper) + jax.nn.log_sigmoid(-lower)
        seen += jnp.where(inside, jnp.log(-jnp.expm1(-apart)), 0.0)
        prior = _normal(p["beta"], 0.0, 2.5) + _normal(cuts, 0.0, 5.0) + jnp.sum(p["log_gap"])
        return prior + jnp.sum(seen)

    return _at(logdensity, {"beta": np.zeros(3), "first": -np.ones(()), "log_gap": np.zeros(3)})


def arma() -> Model:
    """y_t = μ + φ y_{t−1} + θ ε_{t−1} + ε_t, 200 points, φ .95, θ −.2, σ 1; d = 4."""
    rng, points = _rng(), 200
    noise, y = rng.standard_normal(points), np.zeros(points)
    y[0] = noise[0]
    for t in range(1, points):
        y[t] = 0.95 * y[t - 1] - 0.2 * noise[t - 1] + noise[t]

    def logdensity(p):
        def error(last, pair):
            before, now = pair
            found = now - p["mu"] - p["phi"] * before - p["theta"] * last
            return found, found

        first = y[0] - p["mu"] - p["phi"] * p["mu"]
        _, rest = jax.lax.scan(error, first, (jnp.asarray(y[:-1]), jnp.asarray(y[1:])))
        errors = jnp.append(rest, first)
        prior = _normal(p["mu"], 0.0, 10.0) + _normal(p["phi"], 0.0, 2.0)
        prior += _normal(p["theta"], 0.0, 2.0) + _half_cauchy(p["log_sigma"], 2.5)
        return prior + _normal(errors, 0.0, jnp.exp(p["log_sigma"]))

    return _uniform(logdensity, {"mu": 0.0, "phi": 0.95, "theta": -0.2, "log_sigma": 0.0})


def garch() -> Model:
    """σ²_t = α₀ + α₁ (y_{t−1} − μ)² + β₁ σ²_{t−1} with α₁ + β₁ < 1, 300 points, d = 4."""
    rng, points = _rng(), 300
    y, variance = np.zeros(points), 2.0
    for t in range(points):
        y[t] = 0.5 + np.sqrt(variance) * rng.standard_normal()
        variance = 0.2 + 0.25 * (y[t] - 0.5) ** 2 + 0.65 * variance

    def logdensity(p):
        total, share = jax.nn.sigmoid(p["total"]), jax.nn.sigmoid(p["share"])
        alpha0, alpha1, beta1 = jnp.exp(p["log_alpha0"]), total * share, total * (1 - share)

        def next_variance(last, now):
            found = alpha0 + alpha1 * (now - p["mu"]) ** 2 + beta1 * last
            return found, found

        first = jnp.asarray(np.var(y))
        _, rest = jax.lax.scan(next_variance, first, jnp.asarray(y[:-1]))
        variances = jnp.concatenate([first[None], rest])
        # α₁ and α₁ + β₁ are uniform on their triangle: the Jacobian of (total, share).
        jacobian = 2 * jnp.log(total) + jnp.log1p(-total) + jnp.log(share) + jnp.log1p(-share)
        prior = _normal(p["mu"], 0.0, 5.0) + _half_normal(p["log_alpha0"], 2.0) + jacobian
        return prior - jnp.sum((y - p["mu"]) ** 2 / variances + jnp.log(variances)) / 2

    zero = np.zeros(())
    return _uniform(logdensity, {"mu": zero, "log_alpha0": zero, "total": zero, "share": zero})


def gaussian_process_regression() -> Model:
    """40 points, squared-exponential kernel, its size, length and the noise unknown, d = 3."""
    rng, points = _rng(), 40
    x = np.sort(rng.uniform(-4, 4, points))
    y = np.sin(1.3 * x) + 0.3 * rng.standard_normal(points)
    square = (x[:, None] - x) ** 2

    def logdensity(p):
        size, length, noise = (jnp.exp(p[k]) for k in ("log_size", "log_length", "log_noise"))
        kernel = size**2 * jnp.exp(-square / (2 * length**2))
        root = jnp.linalg.cholesky(kernel + (noise**2 + 1e-8) * jnp.eye(points))
        z = solve_triangular(root, jnp.asarray(y), lower=True)
        # The length is inverse-gamma (5, 5).
        prior = _half_normal(p["log_size"], 2.0) + _half_normal(p["log_noise"])
        prior += -5 * p["log_length"] - 5 / length
        return prior - jnp.sum(z**2) / 2 - jnp.sum(jnp.log(jnp.diagonal(root)))

    zero = np.zeros(())
    return _at(logdensity, {"log_size": zero, "log_length": zero, "log_noise": zero})


def hidden_markov() -> Model:
    """Two states, seen through normals of unknown means and common sd, 150 points, d = 5."""
    rng, points = _rng(), 150
    stay, mean, state = (0.9, 0.8), (0.0, 2.5), 0
    y = np.zeros(points)
    for t in range(points):
        y[t] = mean[state] + rng.standard_normal()
        state = state if rng.random() < stay[state] else 1 - state

    def logdensity(p):
        log_stay, log_go = jax.nn.log_sigmoid(p["stay"]), jax.nn.log_sigmoid(-p["stay"])
        step = jnp.stack([jnp.stack([log_stay[0], log_go[0]]), jnp.stack([log_go[1], log_stay[1]])])
        means = p["low"] + jnp.stack([jnp.zeros(()), jnp.exp(p["log_gap"])])
        sd = jnp.exp(p["log_sd"])
        seen = -(((jnp.asarray(y)[:, None] - means) / sd) ** 2) / 2 - p["log_sd"]

        def forward(last, now):
            return logsumexp(last[:, None] + step, axis=0) + now, None

        last, _ = jax.lax.scan(forward, seen[0] - jnp.log(2.0), seen[1:])
        # Probabilities of staying are Beta(2, 1).
        prior = jnp.sum(2 * log_stay + log_go) + _half_normal(p["log_sd"], 2.0)
        prior += _normal(p["low"], 0.0, 3.0) + _half_normal(p["log_gap"], 3.0)
        return prior + logsumexp(last)

    zero = np.zeros(())
    centre = {"stay": np.ones(2), "low": zero, "log_gap": zero, "log_sd": zero}
    return _uniform(logdensity, centre)


YEARS, SUBSTEPS = 20, 10


def _predators(log_rates, log_start):
    """Lotka–Volterra by Runge–Kutta in logarithms, (years + 1, 2), where nothing turns negative."""
    a, b, c, d = (jnp.exp(log_rates[k]) for k in range(4))
    h = 1 / SUBSTEPS

    def slope(z):
        hares, lynxes = jnp.exp(z[0]), jnp.exp(z[1])
        return jnp.stack([a - b * lynxes, d * hares - c])

    def substep(z, _):
        k1 = slope(z)
        k2 = slope(z + h / 2 * k1)
        k3 = slope(z + h / 2 * k2)
        k4 = slope(z + h * k3)
        return z + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None

    def year(z, _):
        z, _ = jax.lax.scan(substep, z, None, length=SUBSTEPS)
        return z, z

    _, rest = jax.lax.scan(year, log_start, None, length=YEARS)
    return jnp.concatenate([log_start[None], rest])


def lotka_volterra() -> Model:
    """Hares and lynxes over 20 years, log-normal noise, a Runge–Kutta ODE, d = 8."""
    rng = _rng()
    log_rates, log_start = np.log([0.55, 0.028, 0.8, 0.024]), np.log([33.0, 6.0])
    path = np.asarray(_predators(jnp.asarray(log_rates), jnp.asarray(log_start)))
    y = path + 0.25 * rng.standard_normal(path.shape)
    median = np.log([1.0, 0.05, 1.0, 0.05])

    def logdensity(p):
        sd = jnp.exp(p["log_sd"])
        prior = _normal(p["log_rates"], median, np.array([0.5, 0.5, 0.5, 0.5]))
        prior += _normal(p["log_start"], np.log(10.0), 1.0) + _normal(p["log_sd"], -1.0, 1.0)
        return prior + _normal(_predators(p["log_rates"], p["log_start"]) - y, 0.0, sd)

    centre = {"log_rates": median, "log_start": np.full(2, np.log(10.0)), "log_sd": -np.ones(2)}

    # Some of these rates give paths far off.
    wide = {"log_rates": 1.0, "log_start": 2.0, "log_sd": 2.0}
    known = {"log_rates": log_rates, "log_start": log_start, "log_sd": np.log([0.25, 0.25])}
    return _spread(logdensity, centre, wide, known)


def horseshoe() -> Model:
    """80 rows, 25 predictors of which 4 matter, half-Cauchy scales, non-centred, d = 53."""
    rng, rows, columns = _rng(), 80, 25
    x = rng.standard_normal((rows, columns))
    slope = np.zeros(columns)
    slope[:4] = [2.0, -1.5, 1.0, 0.7]
    y = 0.5 + x @ slope + rng.standard_normal(rows)

    def logdensity(p):
        beta = p["z"] * jnp.exp(p["log_local"] + p["log_total"])
        prior = _normal(p["z"]) + _half_cauchy(p["log_local"]) + _half_cauchy(p["log_total"], 0.1)
        prior += _half_normal(p["log_sigma"], 2.0) + _normal(p["alpha"], 0.0, 5.0)
        return prior + _normal(y - p["alpha"] - x @ beta, 0.0, jnp.exp(p["log_sigma"]))

    centre = {
        "alpha": np.zeros(()),
        "z": np.zeros(columns),
        "log_local": np.zeros(columns),
        "log_total": -2 * np.ones(()),
        "log_sigma": np.zeros(()),
    }
    return _at(logdensity, centre)


def item_response_2pl() -> Model:
    """100 students, 20 items with discriminations and difficulties, d = 142."""
    rng, students, items = _rng(), 100, 20
    ability, hard = rng.standard_normal((students, 1)), 0.3 + rng.standard_normal(items)
    sharp = np.exp(0.3 * rng.standard_normal(items))
    y = (rng.random((students, items)) < _expit(sharp * (ability - hard))).astype(float)

    def logdensity(p):
        logit = jnp.exp(p["log_sharp"]) * (p["ability"][:, None] - p["hard"])
        prior = _normal(p["ability"]) + _normal(p["log_sharp"], 0.0, 0.5)
        prior += _normal(p["hard"], p["mean"], jnp.exp(p["log_sd"]))
        return prior + _normal(p["mean"]) + _half_normal(p["log_sd"]) + _bernoulli(y, logit)

    centre = {
        "ability": np.zeros(students),
        "log_sharp": np.zeros(items),
        "hard": np.zeros(items),
        "mean": np.zeros(()),
        "log_sd": np.zeros(()),
    }
    return _at(logdensity, centre)


def varying_intercepts_logistic() -> Model:
    """300 groups of 5 rows, non-centred, d = 303."""
    rng, groups = _rng(), 300
    group = np.repeat(np.arange(groups), 5)
    x = rng.standard_normal(len(group))
    intercept = -0.3 + 0.9 * rng.standard_normal(groups)
    y = (rng.random(len(group)) < _expit(intercept[group] + 0.7 * x)).astype(float)

    def logdensity(p):
        intercepts = p["mu"] + jnp.exp(p["log_tau"]) * p["z"]
        prior = _normal(p["mu"], 0.0, 2.5) + _normal(p["beta"], 0.0, 2.5)
        prior += _half_normal(p["log_tau"]) + _normal(p["z"])
        return prior + _bernoulli(y, intercepts[group] + p["beta"] * x)

    zero = np.zeros(())
    return _at(logdensity, {"mu": zero, "beta": zero, "log_tau": zero, "z": np.zeros(groups)})


MODELS: dict[str, Callable[[], Model]] = {
    make.__name__.replace("_", "-"): functools.cache(make)
    for make in (
        hierarchical_logistic,
        hierarchical_logistic_centred,
        poisson_crossed,
        student_t_regression,
        zero_inflated_negative_binomial,
        ordered_logistic,
        arma,
        garch,
        gaussian_process_regression,
        hidden_markov,
        lotka_volterra,
        horseshoe,
        item_response_2pl,
        varying_intercepts_logistic,
    )
}
