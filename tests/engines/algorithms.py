"""Every sampler and variant, on one Gaussian on which nothing is chaotic."""

import numpy as np
import pytest

import schuss
from schuss import ESH, HMC, MALA, ULA, NoseHoover, Unscaled

VARIANCES = np.array([0.5, 1.0, 1.5, 2.0, 3.0])
TARGET = schuss.targets.gaussian(VARIANCES)
CHAINS, DIM = 4, 5
START = np.random.default_rng(0).standard_normal((CHAINS, DIM))

BOX = (-2.6, [1.0, 1.5, 2.0, np.inf, 2.5])

ALGORITHMS = {
    "esh": ESH(0.3),
    "esh-kappa": ESH(0.3, kappa=DIM - 1.0),
    "esh-refresh": ESH(0.3, refresh=4.0),
    "esh-minimal-norm": ESH(0.5, integrator="minimal-norm"),
    "esh-fourth-order": ESH(0.8, integrator="fourth-order"),
    "esh-minimal-norm-refresh": ESH(0.5, integrator="minimal-norm", refresh=4.0),
    "esh-speed": ESH(0.3, weight="speed"),
    "esh-time": ESH(0.3, weight="time"),
    "esh-box": ESH(0.3, box=BOX),
    "esh-clamp": ESH(0.3, box=BOX, boundary="clamp"),
    "esh-clip": ESH(0.3, gradient_clip=0.5),
    "esh-metric": ESH(0.3, metric=np.sqrt(VARIANCES)),
    "esh-each-its-step": ESH([0.2, 0.25, 0.3, 0.35], refresh=4.0),
    "esh-endpoint": ESH(0.8, adjust="endpoint", steps=3),
    "esh-orbit": ESH(0.8, adjust="orbit", steps=4),
    "esh-persistent": ESH(1.6, kappa=DIM - 1.0, adjust="persistent", refresh=4.0),
    "esh-endpoint-box": ESH(0.8, adjust="endpoint", steps=3, box=BOX),
    "ula": ULA(0.3),
    "ula-box": ULA(0.6, box=BOX),
    "ula-clamp": ULA(0.6, box=BOX, boundary="clamp", gradient_clip=0.5),
    "mala": MALA(0.8),
    "hmc": HMC(0.5, steps=3),
    "hmc-box": HMC(0.5, steps=3, box=BOX),
    "nose-hoover": NoseHoover(0.1),
    "nose-hoover-box": NoseHoover(0.1, box=BOX),
    "unscaled-0": Unscaled(0.1, q=0.0),
    "unscaled-half": Unscaled(0.1, q=0.5),
    "unscaled-1": Unscaled(0.05, q=1.0),
}

DETERMINISTIC = (
    "esh",
    "esh-kappa",
    "esh-minimal-norm",
    "esh-fourth-order",
    "esh-speed",
    "esh-time",
    "esh-box",
    "esh-clamp",
    "esh-clip",
    "esh-metric",
    "nose-hoover",
    "nose-hoover-box",
    "unscaled-0",
    "unscaled-half",
    "unscaled-1",
)
"""Samplers that draw nothing after the first velocity."""

SERIES = ("x", "u", "r", "energy", "hamiltonian")
STEPS = ("log_weight", "energy_error", "acceptance", "complete")

_QUICK_IN_JAX = ("esh-refresh", "esh-orbit")

CASES = [
    pytest.param(
        name,
        engine,
        marks=[pytest.mark.slow] if engine == "jax" and name not in _QUICK_IN_JAX else [],
        id=f"{name}-{engine}",
    )
    for engine in ("numpy", "jax", "torch")
    for name in ALGORITHMS
]
"""Every algorithm on every engine; compiling all of them in JAX takes minutes."""
