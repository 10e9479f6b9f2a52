"""Runs with a known answer."""

import math

import numpy as np

from schuss.results import Posterior, Stats


def autoregression(seed, chains=4, draws=1000, dim=3, rho=0.6):
    """Stationary chains (chains, draws, dim) with standard normal marginals."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(chains, draws, dim))
    for t in range(1, draws):
        x[:, t] = rho * x[:, t - 1] + math.sqrt(1 - rho**2) * x[:, t]
    return x


def gaussian(x):
    """Energy of a standard normal."""
    return (x**2).sum(axis=-1) / 2


SCHOOLS = ["Choate", "Deer<b>field", "Phillips $x_$", "St. Paul"]


def history(rows=16):
    return tuple(
        {
            "phase": "start" if k < 4 else "tuning" if k < 11 else "adapting",
            "gradients": int(100 * (k + 1) ** 1.5),
            "step_size": 0.05 * 1.3 ** min(k, 8),
            "energy": 3 + 40 * math.exp(-k),
            **({"acceptance": 0.7 + 0.01 * k, "ess": 4.0 * k} if k >= 11 else {}),
        }
        for k in range(rows)
    )


def posterior(seed=0, chains=4, draws=400, x=None, **fields):
    """A posterior of mu, tau = e^x and a vector theta, with everything a run records."""
    x = autoregression(seed, chains, draws, 6) if x is None else x
    chains, draws, _ = x.shape
    rng = np.random.default_rng(seed + 1)
    stats = {
        "energy": gaussian(x),
        "energy_error": 0.1 * rng.normal(size=(chains, draws)),
        "acceptance": rng.uniform(0.8, 1.0, size=(chains, draws)),
        "gradient": x,
        "step_size": 0.9,
        "refresh": 4.0,
        "gradients": {"start": 100, "tuning": 2000, "sampling": 8000},
        "seconds": {"compiling": 2.5, "tuning": 0.5, "sampling": 1.0},
        "frozen": np.zeros(chains, bool),
        "history": history(),
        "sampler": "ESH",
        "seed": 7,
        "engine": "jax",
    } | {name: fields.pop(name) for name in list(fields) if name in Stats.__dataclass_fields__}
    given = {
        "draws": {"mu": x[:, :, 0], "tau": np.exp(x[:, :, 1]), "theta": x[:, :, 2:]},
        "x": x,
        "name": "eight <schools>",
        "dims": {"theta": ["school"]},
        "coords": {"school": SCHOOLS},
    } | fields
    return Posterior(stats=Stats(**stats), **given)
