"""Latent factor inference (section 5): posteriors of the factors of digits, by four samplers.

    x = m + Wz + σξ,    E(z) = |x − m − Wz|²/(2σ²) + Σ log cosh(πz_i/2)

W are the principal directions of scikit-learn's digits, σ² what they leave, and the prior of a
factor is the hyperbolic secant of variance one. Every image has chains of its own. The truth is a
long run of HMC; each sampler has the best of three steps.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from schuss.algorithms import ESH, HMC, MALA, ULA, Algorithm
from schuss.paper.item import Advance, Item, Settings, short
from schuss.paper.markdown import table
from schuss.trajectory import trajectory

FACTORS, GRADIENTS = 10, 200
STEPS = (0.03, 0.1, 0.3)
LONG, LONG_STEP, LEAPS = 20_000, 0.15, 10
KINDS: dict[str, Callable[[float], Algorithm]] = {
    "ESH": lambda step: ESH(step_size=step),
    "ESH, refreshed": lambda step: ESH(step_size=step, refresh=2 * math.sqrt(FACTORS)),
    "HMC k=5": lambda step: HMC(step_size=step, steps=5),
    "MALA": lambda step: MALA(step_size=step),
    "ULA": lambda step: ULA(step_size=step),
}


def model(images: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Centred images (images, 64), W (64, factors) and σ²."""
    from sklearn.datasets import load_digits

    x = np.asarray(load_digits().data, float) / 8 - 1  # pyright: ignore
    x -= x.mean(axis=0)
    values, vectors = np.linalg.eigh(np.cov(x.T))
    noise = float(values[:-FACTORS].sum() / (x.shape[1] - FACTORS))
    weights = vectors[:, -FACTORS:] * np.sqrt(values[-FACTORS:] - noise)
    return x[:images], weights, noise


def posterior(x: np.ndarray, weights: np.ndarray, noise: float) -> Callable:
    """Energies and gradients of factors z, one row for each row of x."""

    def value_and_grad(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        residual, scaled = x - z @ weights.T, math.pi / 2 * z
        prior = np.logaddexp(scaled, -scaled) - math.log(2)
        energy = np.sum(residual**2, axis=1) / (2 * noise) + prior.sum(axis=1)
        return energy, -residual @ weights / noise + math.pi / 2 * np.tanh(scaled)

    return value_and_grad


def _moments(path, images: int, *, weighted: bool) -> np.ndarray:
    """Means of z and z² for each image over the second half of its chains, (2, images, factors)."""
    half = len(path.x) // 2
    x, energy = path.x[half:], path.energy[half:]
    logs = -energy / FACTORS if weighted else np.zeros_like(energy)

    def by_image(values):
        return values.reshape(len(values), -1, images, *values.shape[2:])

    x, logs = by_image(x), by_image(logs)
    share = np.exp(logs - logs.max(axis=(0, 1)))[..., None]
    share /= share.sum(axis=(0, 1))
    return np.stack([(share * x**power).sum(axis=(0, 1)) for power in (1, 2)])


def _compute(settings: Settings, advance: Advance) -> dict[str, Any]:
    images, chains, long = (4, 2, 500) if settings.quick else (50, 8, LONG)
    x, weights, noise = model(images)
    given: dict[str, Any] = {
        "value_and_grad": posterior(np.tile(x, (chains, 1)), weights, noise),
        "init": np.random.default_rng(settings.seed).standard_normal((chains * images, FACTORS)),
        "seed": settings.seed,
    }
    exact = trajectory(
        sampler=HMC(step_size=LONG_STEP, steps=LEAPS), steps=long, every=LEAPS, **given
    )
    truth = _moments(exact, images, weighted=False)
    sd = np.sqrt(truth[1] - truth[0] ** 2)
    advance("truth")
    rows: dict[str, Any] = {}
    for name, kind in KINDS.items():
        rows[name] = {}
        for step in STEPS:
            path = trajectory(sampler=kind(step), steps=GRADIENTS, **given)
            found = _moments(path, images, weighted=name.startswith("ESH"))
            off = np.abs(found - truth) / np.stack([sd, sd**2])
            rows[name][f"{step:g}"] = {
                "mean": short(np.sqrt(np.mean(off[0] ** 2))),
                "square": short(np.sqrt(np.mean(off[1] ** 2))),
            }
        advance(name)
    accepted = exact.acceptance_rate.mean()
    return {"images": images, "chains": chains, "accepted": short(accepted), "rows": rows}


def best(rows: dict[str, Any]) -> tuple[str, dict[str, float]]:
    """The step with the smallest error of the mean and of the square together."""
    step = min(rows, key=lambda s: rows[s]["mean"] + rows[s]["square"])
    return step, rows[step]


def _tell(result: dict[str, Any]) -> str:
    lines = []
    for name, rows in result["rows"].items():
        step, row = best(rows)
        lines.append((name, step, f"{row['mean']:.3f}", f"{row['square']:.3f}"))
    heads = ("sampler", "best step", "error of E[z]", "error of E[z²]")
    return "\n\n".join(
        [
            f"Root mean square errors of the posterior moments of {FACTORS} factors of "
            f"{result['images']} digits, in posterior standard deviations and variances, after "
            f"{GRADIENTS} gradients of {result['chains']} chains for each image from N(0, I), the "
            "second half counted. The truth is HMC's after "
            f"{LONG} gradients ({result['accepted']:.0%} accepted).",
            table(heads, lines),
        ]
    )


ITEM = Item(
    name="factors",
    title="Latent factors of digits",
    place="Section 5",
    compute=_compute,
    draw=lambda result, folder: [],
    tell=_tell,
    parts=lambda settings: 1 + len(KINDS),
)
