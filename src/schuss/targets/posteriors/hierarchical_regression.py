"""Regression with intercepts and slopes that vary by group, as for radon in homes by county."""

import functools

import numpy as np

from schuss.targets.constants import constant
from schuss.targets.draws import normal_start
from schuss.targets.posteriors.reference import reference
from schuss.targets.target import Array, Namespace, Target

GROUPS = 20
SIZES = (3, 3, 4, 4, 5, 5, 6, 6, 7, 8, 9, 10, 12, 14, 16, 20, 25, 30, 40, 60)


def data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The group, the predictor and the outcome of each of 287 rows, drawn with seed 0.

    μ = (1.5, −.7), τ = (.4, .15), σ = .75.
    """
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(GROUPS), SIZES)
    intercept = 1.5 + 0.4 * rng.standard_normal(GROUPS)
    slope = -0.7 + 0.15 * rng.standard_normal(GROUPS)
    predictor = rng.standard_normal(len(group))
    noise = 0.75 * rng.standard_normal(len(group))
    return group, predictor, intercept[group] + slope[group] * predictor + noise


def _fits() -> np.ndarray:
    """Per group: least-squares intercept and slope, then n, Σp, Σp² and the residual Σr²."""
    group, predictor, outcome = data()
    rows = []
    for index in range(GROUPS):
        p, y = predictor[group == index], outcome[group == index]
        slope, intercept = np.polyfit(p, y, 1)
        rest = float(np.sum((y - intercept - slope * p) ** 2))
        rows.append([intercept, slope, len(p), p.sum(), (p**2).sum(), rest])
    return np.array(rows).T


@functools.cache
def hierarchical_regression() -> Target:
    """x = (μ_a, μ_b, log τ_a, log τ_b, log σ, u_1 … u_20, v_1 … v_20), 45-D, non-centred.

    a_j = μ_a + τ_a u_j, b_j = μ_b + τ_b v_j, y ~ N(a_j + b_j p, σ²); μ ~ N(0, 5²), u, v ~ N(0, 1),
    τ and σ ~ HalfNormal(1). With s one of τ_a, τ_b, σ, E = Σ μ²/50 + Σ (s²/2 − log s)
    + ½ Σ (u_j² + v_j²) + N log σ + Σ (y − a_j − b_j p)²/2σ², the last sum expanded about each
    group's least-squares fit.
    """
    fits = _fits()
    fit_a, fit_b, count, first, second = (constant(row) for row in fits[:5])
    rows, rest = float(sum(SIZES)), float(fits[5].sum())
    last = 5 + GROUPS

    def parts(xp: Namespace, x: Array) -> tuple[Array, Array, Array, Array]:
        """τ u, τ v, and the distances of a_j and b_j from the fits."""
        tau = xp.exp(x[:, 2:4])
        u, v = tau[:, :1] * x[:, 5:last], tau[:, 1:] * x[:, last:]
        return u, v, x[:, :1] + u - fit_a(xp, x), x[:, 1:2] + v - fit_b(xp, x)

    def energy(xp: Namespace, x: Array) -> Array:
        _, _, a, b = parts(xp, x)
        square = a * (count(xp, x) * a + 2 * first(xp, x) * b) + second(xp, x) * b**2
        log_scale = x[:, 2:5]
        prior = xp.sum(x[:, :2] ** 2, axis=-1) / 50 + xp.sum(x[:, 5:] ** 2, axis=-1) / 2
        scales = xp.sum(xp.exp(2 * log_scale) / 2 - log_scale, axis=-1)
        misfit = (rest + xp.sum(square, axis=-1)) * xp.exp(-2 * x[:, 4]) / 2
        return prior + scales + rows * x[:, 4] + misfit

    def gradient(xp: Namespace, x: Array) -> Array:
        u, v, a, b = parts(xp, x)
        precision = xp.exp(-2 * x[:, 4:5])
        pull_a = count(xp, x) * a + first(xp, x) * b
        pull_b = first(xp, x) * a + second(xp, x) * b
        square = rest + xp.sum(a * pull_a + b * pull_b, axis=-1, keepdims=True)
        da, db = precision * pull_a, precision * pull_b
        scale = xp.exp(x[:, 2:5])

        def total(values: Array) -> Array:
            return xp.sum(values, axis=-1, keepdims=True)

        return xp.concat(
            [
                x[:, :1] / 25 + total(da),
                x[:, 1:2] / 25 + total(db),
                scale[:, :1] ** 2 - 1 + total(da * u),
                scale[:, 1:2] ** 2 - 1 + total(db * v),
                scale[:, 2:] ** 2 - 1 + rows - precision * square,
                x[:, 5:last] + scale[:, :1] * da,
                x[:, last:] + scale[:, 1:2] * db,
            ],
            axis=-1,
        )

    dim = 5 + 2 * GROUPS
    return Target(
        name="hierarchical-regression",
        dim=dim,
        energy=energy,
        gradient=gradient,
        start=normal_start(dim),
        truth=reference("hierarchical-regression"),
    )
