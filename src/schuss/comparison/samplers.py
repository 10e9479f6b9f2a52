"""The samplers by name: each is set up for a subject and a budget, then run for a seed.

Ours take four chains that share the budget. The others take one chain, as they are documented, with
the whole of it. The fixed ones have the paper's steps, or those that were asked for (`hmc:0.1`),
and leave out their first fifth.
"""

import contextlib
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from schuss import algorithms
from schuss.comparison.outcome import Outcome, prefixes, record, thin
from schuss.comparison.subject import Subject
from schuss.results import NotConverged, Posterior
from schuss.results.verdict import judge

FIXED: dict[str, Callable[..., Any]] = {
    "ula": algorithms.ULA,
    "mala": algorithms.MALA,
    "hmc": algorithms.HMC,
    "esh": algorithms.ESH,
}
PEERS = ("nuts", "mclmc", "mams", "nutpie")
SAMPLERS: dict[str, str] = {
    "auto": "schuss, exact, tuned by itself",
    "unadjusted": "schuss with exact=False, tuned by itself",
    "nuts": "BlackJAX's NUTS after window adaptation",
    "mclmc": "BlackJAX's MCLMC with its tuner, unadjusted",
    "mams": "BlackJAX's adjusted MCLMC with its tuner",
    "nutpie": "nutpie's NUTS, its density called from Python",
    "ula": "unadjusted Langevin with a fixed step",
    "mala": "Metropolis-adjusted Langevin with a fixed step",
    "hmc": "Hamiltonian Monte Carlo, five leapfrogs of a fixed step",
    "esh": "the paper's ESH flow with a fixed step",
}
FURTHER = 1.2
"""Between two looks at a run on its way its gradients grow at least by this factor."""

NEAR = 0.75
"""From this share of the budget on every state of a run is looked at."""

FIRST = 32
"""Draws of a chain before the first look."""

LEAST_WARM_UP, DRAW = 100, 40
"""NUTS warms up over a draw for each so many gradients of the budget, at most its 1000 draws."""


def names(text: str) -> list[str]:
    """The samplers of "auto,nuts,hmc:0.1", or a sentence about what isn't one."""
    found = list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not found:
        raise ValueError(f"samplers must name one of {', '.join(SAMPLERS)}; got none")
    for full in found:
        name, colon, step = full.partition(":")
        if name not in SAMPLERS:
            raise ValueError(f"samplers must be among {', '.join(SAMPLERS)}, got {name!r}")
        if colon and name not in FIXED:
            raise ValueError(f"{name} finds its own step; leave out {colon + step!r}")
        if colon:
            _algorithm(full)
    return found


def prepare(name: str, subject: Subject, gradients: int) -> Callable[[int], Outcome]:
    """A sampler, compiled where that can be done ahead, as a function of a seed."""
    if name in ("auto", "unadjusted"):
        return lambda seed: _auto(name, subject, gradients, seed)
    if name in PEERS:
        return _peer(name, subject, gradients)
    return lambda seed: _fixed(name, subject, gradients, seed)


def warm_up(gradients: int) -> int:
    """Draws over which NUTS adapts."""
    return int(np.clip(gradients // DRAW, LEAST_WARM_UP, 1000))


def reference_run(subject: Subject, gradients: int, seed: int) -> Posterior:
    """A long exact run."""
    return _sampled(subject, seed, gradients=gradients)


def _algorithm(full: str) -> Any:
    name, _, step = full.partition(":")
    if not step:
        return FIXED[name]()
    try:
        return FIXED[name](step_size=float(step))
    except ValueError:
        raise ValueError(
            f"the step of {name} must be a positive number, got {step!r}; pass e.g. {name}:0.1"
        ) from None


def _auto(name: str, subject: Subject, gradients: int, seed: int) -> Outcome:
    """What the run would have given had it ended before, and what it gave."""
    records, looking = [], 0.0

    def look(view) -> None:
        nonlocal looking
        begun = time.perf_counter()
        last = records[-1].gradients if records else 0
        if view.gradients >= min(FURTHER * last, max(last, NEAR * gradients)):
            with contextlib.suppress(ValueError):  # there are no draws yet
                post = view.posterior()
                records.append(record(view.gradients, post.x, post.weights))
        looking += time.perf_counter() - begun

    begun = time.perf_counter()
    post = _sampled(subject, seed, gradients=gradients, exact=name == "auto", callback=look)
    seconds = time.perf_counter() - begun - looking
    assert post.x is not None
    spent = sum(post.stats.gradients.values())
    earlier = [one for one in records if one.gradients < spent]
    records = [*earlier, record(spent, post.x, post.weights)]
    found = _outcome(name, seed, post, records, seconds)
    if name == "auto" and not post.stats.exact:
        told = "the gradients ended before its exact phase, so its draws are unadjusted"
        found = found._replace(note=told)
    return found


def _fixed(name: str, subject: Subject, gradients: int, seed: int) -> Outcome:
    from schuss.adapters.question import CHAINS
    from schuss.sampling.fixed import CHUNK, WARM_UP

    algorithm = _algorithm(name)
    # Of a chain there are at least as many states as one call of the loop makes.
    states = max(gradients // (CHAINS * algorithms.transition(algorithm)), CHUNK)
    draws = int((1 - WARM_UP) * states)
    begun = time.perf_counter()
    post = _sampled(subject, seed, draws=draws, sampler=algorithm)
    seconds = time.perf_counter() - begun
    assert post.x is not None
    n, spent = post.x.shape[1], sum(post.stats.gradients.values())
    costs = spent - algorithms.transition(algorithm) * post.chains * np.arange(n - 1, -1, -1)
    looks = prefixes(costs, gradients, FIRST)
    records = [
        record(
            costs[k - 1],
            post.x[:, :k],
            None if post.weights is None else post.weights[:, :k],
        )
        for k in looks
    ]
    return _outcome(name, seed, post, records, seconds)


def _sampled(subject: Subject, seed: int, **options) -> Posterior:
    from schuss.sampling.sample import sample

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)
        return sample(subject.target, seed=seed, progress=False, **options)


def _outcome(name: str, seed: int, post: Posterior, records, seconds: float) -> Outcome:
    return Outcome(
        sampler=name,
        seed=seed,
        gradients=sum(post.stats.gradients.values()),
        chains=post.chains,
        seconds=seconds,
        records=tuple(records),
        verdict=post.verdict,
        interrupted=post.stats.interrupted,
    )


def _peer(name: str, subject: Subject, gradients: int) -> Callable[[int], Outcome]:
    from schuss import peers

    options: dict[str, Any] = {"keep": True}
    if name == "nuts":
        options["warm_up"] = warm_up(gradients)
    with warnings.catch_warnings():
        # What another library warns of is its own affair.
        warnings.simplefilter("ignore")
        chain = getattr(peers, name)(subject.target, gradients, **options)

    def run(seed: int) -> Outcome:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = chain(seed)
        if not len(found.gradients):
            told = f"tuning alone took {found.tuning:,} gradients, and no draws were left"
            return Outcome(name, seed, found.tuning, 1, found.seconds, failure=told)
        block = len(found.draws) // len(found.gradients)
        x = found.draws[None]
        looks = prefixes(found.gradients, gradients, -(-FIRST // block))
        records = [record(found.gradients[k - 1], x[:, : k * block]) for k in looks]
        kept, _ = thin(x)
        finite = np.isfinite(kept).all(axis=(0, 2))
        energy, g = subject.evaluate(kept[0])
        verdict = judge(
            kept,
            energy[None],
            gradient=g[None] if finite.all() else None,
            exact=name != "mclmc",
        )
        spent = int(found.gradients[-1])
        return Outcome(name, seed, spent, 1, found.seconds, tuple(records), verdict)

    return run
