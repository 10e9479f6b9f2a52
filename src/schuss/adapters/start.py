"""Where chains start: around a centre, where the log-density and its gradient are finite."""

from collections.abc import Callable

import numpy as np

_TRIES = 100
_SHRINK = 0.9


def uniform(radius: float) -> Callable:
    """Deviations that are uniform between −radius and radius."""
    return lambda rng, shape: rng.uniform(-radius, radius, shape)


def normal(deviation: float) -> Callable:
    """Deviations from N(0, deviation²)."""
    return lambda rng, shape: deviation * rng.standard_normal(shape)


def around(
    centre: np.ndarray, deviate: Callable, value_and_grad: Callable, remedy: str
) -> Callable:
    """(rng, chains) → starts (chains, dim) at the centre plus a deviation.

    Chains whose log-density or gradient isn't finite there try again, each time nearer the centre.
    `value_and_grad` maps (chains, dim) to log p (chains,) and gradients (chains, dim).
    """

    def start(rng: np.random.Generator, chains: int) -> np.ndarray:
        shape = (chains, len(centre))
        x, wrong = centre + deviate(rng, shape), np.ones(chains, bool)
        for attempt in range(_TRIES):
            value, gradient = value_and_grad(x)
            wrong = ~(np.isfinite(value) & np.isfinite(gradient).all(axis=-1))
            if not wrong.any():
                return x
            nearer = centre + _SHRINK ** (attempt + 1) * deviate(rng, shape)
            x = np.where(wrong[:, None], nearer, x)
        raise ValueError(
            f"the log-density or its gradient is not finite near the start for {wrong.sum()} of "
            f"{chains} chains; {remedy}"
        )

    return start


def finite(draw: Callable) -> Callable:
    """(rng, n) → (n, dim) draws of a prior, without those whose values underflow to a bound."""

    def sample(rng: np.random.Generator, n: int) -> np.ndarray:
        x = draw(rng, n)
        for _ in range(_TRIES):
            if np.isnan(x).any():
                raise ValueError(
                    "draws of the prior fall outside the support of the model's transforms, so "
                    "prior and likelihood can't be told apart"
                )
            wrong = np.isinf(x).any(axis=-1)
            if not wrong.any():
                return x
            x = np.where(wrong[:, None], draw(rng, n), x)
        raise ValueError(
            "draws of the prior keep falling on the bounds of its support; give it less mass there"
        )

    return sample
