"""The paper's samplers as it ran them, and where each chain is after so many gradients.

A leapfrog step counts as one gradient. HMC moves every k gradients, NUTS whenever a transition is
finished; in between, the chain stays where it was. NUTS is BlackJAX's and counts a transition as
the public code does, its leapfrog steps and one more.
"""

import dataclasses
import functools
import importlib
import math
import zlib
from typing import Any, NamedTuple

import numpy as np

from schuss.algorithms import ESH, HMC, MALA, ULA, Algorithm, NoseHoover, Unscaled
from schuss.core import ergodic
from schuss.engines.width import wide
from schuss.paper.item import Settings
from schuss.plotting import Look, look
from schuss.targets.target import Target
from schuss.trajectory import trajectory


@dataclasses.dataclass(frozen=True)
class NUTS:
    """The No-U-Turn sampler: step .25/d^¼ and identity metric, or tuned by BlackJAX's windows."""

    tuned: bool = False
    warmup: float = 1.5  # transitions of each tuning chain, for each gradient afterwards
    tuners: int = 16  # chains that tune; all chains get their median step and mean metric


SAMPLERS: dict[str, Algorithm | NUTS] = {
    "ESH-leap": ESH(step_size=0.1, weight="speed"),
    "HMC k=5": HMC(step_size=0.01, steps=5),
    "MALA 0.1": MALA(step_size=0.1),
    "NH": NoseHoover(step_size=0.01),
    "NUTS": NUTS(),
    "ULA 0.1": ULA(step_size=0.1),
    "NUTS tuned": NUTS(tuned=True),
    "ESH-leap 0.01": ESH(step_size=0.01, weight="speed"),
    "ESH-leap-orig 0.1": Unscaled(step_size=0.1),
    "ESH-leap-orig 0.01": Unscaled(step_size=0.01),
    "MALA 0.01": MALA(step_size=0.01),
    "ULA 0.01": ULA(step_size=0.01),
}
TABLE = ("ESH-leap", "HMC k=5", "MALA 0.1", "NH", "NUTS", "ULA 0.1")
"""The columns of Table 1, in its order."""
TARGETS = {
    "mog": "2D MOG",
    "mog-prior": "2D MOG-prior",
    "scg": "2D SCG",
    "scg-bias": "2D SCG-bias",
    "icg": "50D ICG",
    "funnel": "20D Funnel",
}
"""The paper's test problems and what it calls them."""
SMALL_STEP = (0, (1, 1))


class Size(NamedTuple):
    """How much work an item is."""

    chains: int
    gradients: int
    targets: tuple[str, ...]


def size(settings: Settings) -> Size:
    """The paper's size, or a tiny one on a single target."""
    if settings.quick:
        return Size(40, 40, ("mog-prior",))
    return Size(500, 200, tuple(TARGETS))


class Chains(NamedTuple):
    """States by gradients spent, (gradients + 1, chains, dim), the start first."""

    name: str
    x: np.ndarray
    speed: np.ndarray | None  # |v| up to a factor for each chain, (gradients + 1, chains)
    time: np.ndarray | None  # of the ESH Hamiltonian, likewise
    every: int  # gradients between two states of the sampler itself
    tuning: float  # gradients that tuning took beforehand, per tuning chain
    divergent: float | None  # share of NUTS transitions that diverged

    @property
    def own(self) -> np.ndarray:
        """The sampler's own states, HMC's without the repeats between its proposals."""
        return self.x[:: self.every]

    def at(self, gradients, seed: int = 0) -> np.ndarray:
        """One sample of each chain after so many gradients each, (len(gradients), chains, dim).

        For ESH at a uniformly random time up to then (Alg. 2), interpolated; else the last state.
        """
        counts = np.asarray(gradients, int)
        if self.time is None:
            return self.x[counts]
        rng = np.random.default_rng([seed, _number(self.name)])
        moments = rng.random((len(counts), self.x.shape[1])) * self.time[counts]
        return _interpolated(self.x, self.time, moments)


def run(
    name: str, target: Target, gradients: int = 200, chains: int = 500, seed: int = 0, init=None
) -> Chains:
    """Run a sampler by its name. Different samplers and targets have different starts and noise."""
    if name not in SAMPLERS:
        raise ValueError(f"name must be one of {', '.join(SAMPLERS)}, got {name!r}")
    own_seed = _number(f"{name}/{target.name}/{seed}")
    if init is None:
        init = target.start(np.random.default_rng(own_seed), chains)
    algorithm = SAMPLERS[name]
    if isinstance(algorithm, NUTS):
        return _run_nuts(name, algorithm, target, gradients, init, own_seed)
    path = trajectory(
        target, init=init, sampler=algorithm, steps=gradients, seed=own_seed, engine="jax"
    )
    speed, time = np.linalg.norm(path.u, axis=-1), None
    if isinstance(algorithm, ESH):
        r = path.r - path.r.max(axis=0)  # keeps e^r from overflowing; time has no unit
        speed, time = np.exp(r), ergodic.clock(np, r, algorithm.step_size, target.dim)
    elif isinstance(algorithm, Unscaled):
        time = path.time
    every = algorithm.steps if isinstance(algorithm, HMC) else 1
    return Chains(name, path.x, speed, time, every, 0.0, None)


def appearance(name: str) -> Look:
    """How a sampler is drawn; its smaller step is dotted."""
    algorithm = SAMPLERS[name]
    seen = look(algorithm)
    if name in ("NUTS tuned",) or name.endswith("0.01"):
        return seen._replace(dash=SMALL_STEP)
    return seen


def _number(text: str) -> int:
    return zlib.crc32(text.encode())


def _interpolated(x, time, moments):
    """Linearly between the states, for times (states, chains) and moments (draws, chains)."""
    after = np.sum(time[None] < moments[:, None], axis=1).clip(1, len(time) - 1)
    chain = np.arange(x.shape[1])
    t0, t1 = time[after - 1, chain], time[after, chain]
    share = np.divide(moments - t0, t1 - t0, out=np.zeros_like(t0), where=t1 > t0)[..., None]
    return (1 - share) * x[after - 1, chain] + share * x[after, chain]


def _blackjax():
    try:
        return importlib.import_module("blackjax")
    except ImportError as error:
        raise ImportError(
            "NUTS needs BlackJAX, which isn't installed; run pip install 'schuss[paper]'"
        ) from error


def _run_nuts(name, algorithm: NUTS, target, gradients, init, seed) -> Chains:
    blackjax = _blackjax()
    import jax

    with wide():
        key, tuning_key = jax.random.split(jax.random.key(seed))
        step, metric, tuning = 0.25 / target.dim**0.25, np.ones(target.dim), 0.0
        if algorithm.tuned:
            keys = jax.random.split(tuning_key, len(init[: algorithm.tuners]))
            warmup = max(20, round(algorithm.warmup * gradients))
            found = _tuner(blackjax, target.energy, warmup)(keys, init[: len(keys)])
            steps, metrics, spent = map(np.asarray, found)
            step, metric = float(np.median(steps)), metrics.mean(axis=0)
            tuning = float(spent.sum(axis=1).mean())
        out = _transitions(blackjax, target.energy, gradients)(key, init, step, metric)
        x, divergences, transitions = map(np.asarray, out)
    share = float(divergences.sum() / max(transitions.sum(), 1))
    return Chains(name, x, None, None, 1, tuning, share)


@functools.cache
def _transitions(blackjax, energy, gradients):
    """Transitions of all chains until each has spent the gradients: where they were, divergences.

    A tree of more leapfrog steps than there are gradients never counts, so none grows further.
    """
    import jax
    import jax.numpy as jnp

    depth = min(10, math.ceil(math.log2(gradients + 2)))
    kernel = blackjax.nuts.build_kernel()
    logdensity = _logdensity(energy)
    counts = jnp.arange(gradients + 1)[:, None, None]

    @jax.jit
    def all_chains(key, init, step_size, metric):
        def one(key, state):
            return kernel(key, state, logdensity, step_size, metric, depth)

        def busy(carry):
            return jnp.any(carry[2] <= gradients)

        def advance(carry):
            number, state, spent, path, divergences, transitions = carry
            keys = jax.random.split(jax.random.fold_in(key, number), len(init))
            state, info = jax.vmap(one)(keys, state)
            spent = spent + info.num_integration_steps + 1
            path = jnp.where(counts >= spent[None, :, None], state.position[None], path)
            counted = spent <= gradients
            divergences = divergences + (counted & info.is_divergent)
            return number + 1, state, spent, path, divergences, transitions + counted

        state = jax.vmap(lambda x: blackjax.nuts.init(x, logdensity))(init)
        path = jnp.broadcast_to(state.position, (gradients + 1, *init.shape))
        nothing = jnp.zeros(len(init), jnp.int64)
        carry = (0, state, nothing, path, nothing, nothing)
        *_, path, divergences, transitions = jax.lax.while_loop(busy, advance, carry)
        return path, divergences, transitions

    return all_chains


@functools.cache
def _tuner(blackjax, energy, warmup):
    """Tunes each chain by itself: its step, its diagonal metric, the gradients it took."""
    import jax

    adaptation = blackjax.window_adaptation(blackjax.nuts, _logdensity(energy), max_num_doublings=8)

    @jax.jit
    @jax.vmap
    def tune(key, x):
        (_, found), info = adaptation.run(key, x, num_steps=warmup)
        return found["step_size"], found["inverse_mass_matrix"], info.info.num_integration_steps

    return tune


def _logdensity(energy) -> Any:
    import jax.numpy as jnp

    return lambda x: -energy(jnp, x[None])[0]
