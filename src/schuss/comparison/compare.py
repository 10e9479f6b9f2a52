"""Run samplers one after the other on one subject, and hold what they gave."""

import math
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from schuss.arguments import whole
from schuss.comparison import samplers as known
from schuss.comparison.outcome import Outcome, thin
from schuss.comparison.subject import Subject, subject
from schuss.targets.target import Truth

LONGER = 10
"""How many times the budget a reference run has, where no truth is known."""


class Reference(NamedTuple):
    """What estimates are held against: the truth, or a long run; or nothing to be trusted."""

    truth: Truth | None
    words: str
    ess: float = float("inf")


class Comparison(NamedTuple):
    """Outcomes by sampler, in the order asked for, and the seconds that each took in all."""

    name: str
    dim: int
    gradients: int
    reference: Reference
    outcomes: dict[str, list[Outcome]]
    seconds: dict[str, float]
    finished: bool

    def b2max(self, outcome: Outcome) -> float:
        """At the last record within the budget; nan where there is none, or no truth."""
        within = sum(record.gradients <= self.gradients for record in outcome.records)
        if self.reference.truth is None or not within:
            return float("nan")
        return float(outcome.b2max(self.reference.truth)[within - 1])


def compare(
    arguments: dict[str, Any],
    samplers: Sequence[str],
    gradients: int,
    *,
    seeds: int = 1,
    seed: int = 0,
    tell: Callable[[str], None] = lambda line: None,
) -> Comparison:
    """Every sampler for every seed, from the same law of starts, at the same cost in gradients.

    `arguments` are what `schuss.sample` takes: target, or logdensity or energy, and init. A sampler
    that fails says why and the others go on; an interruption keeps what there is.
    """
    gradients, seeds = whole("gradients", gradients, 100), whole("seeds", seeds, 1)
    samplers = known.names(",".join(samplers))
    about = subject(arguments)
    outcomes: dict[str, list[Outcome]] = {name: [] for name in samplers}
    seconds = dict.fromkeys(samplers, 0.0)
    reference, finished = Reference(None, "The run was interrupted before a reference."), False
    try:
        for name in samplers:
            # Nobody profits from what was compiled for another.
            jax.clear_caches()
            tell(f"{name}: setting up")
            begun = time.perf_counter()
            run = _prepared(name, about, gradients)
            seconds[name] = time.perf_counter() - begun
            for number in range(seed, seed + seeds):
                tell(f"{name}: seed {number}")
                outcome = _run(run, name, number)
                outcomes[name].append(outcome)
                seconds[name] += 0.0 if math.isnan(outcome.seconds) else outcome.seconds
                if outcome.interrupted:
                    raise KeyboardInterrupt
        tell("the truth")
        reference = _reference(about, gradients, seed + seeds)
        finished = True
    except KeyboardInterrupt:
        if about.target.truth is not None:
            reference = _reference(about, gradients, seed + seeds)
    return Comparison(
        about.target.name, about.target.dim, gradients, reference, outcomes, seconds, finished
    )


def _prepared(name: str, about: Subject, gradients: int) -> Callable[[int], Outcome]:
    """A sampler, or one that always says why there is none."""
    try:
        return known.prepare(name, about, gradients)
    except (ValueError, ImportError) as error:
        told = str(error)
        return lambda seed: Outcome(name, seed, failure=told)


def _run(run: Callable[[int], Outcome], name: str, seed: int) -> Outcome:
    try:
        return run(seed)
    except ValueError as error:
        return Outcome(name, seed, failure=str(error))


def _reference(about: Subject, gradients: int, seed: int) -> Reference:
    """The target's truth, or moments of a long run of `auto` with a seed of its own."""
    if about.target.truth is not None:
        return Reference(about.target.truth, "b²max is against the target's known moments.")
    budget = LONGER * gradients
    try:
        post = known.reference_run(about, budget, seed)
    except ValueError as error:
        return Reference(None, f"No truth is known, and a long run to replace it failed: {error}.")
    size = post.verdict.numbers.get("ess", float("nan"))
    if not post.verdict.converged:
        words = (
            f"No truth is known, and an auto run of {budget:,} gradients can't replace it, since "
            f"its verdict fails: {post.verdict.headline}"
        )
        return Reference(None, words, size)
    assert post.x is not None
    x, weights = thin(post.x, post.weights)
    w = np.ones(x.shape[:2]) if weights is None else weights
    w = w / w.sum()
    mean, second, fourth = (np.einsum("cn,cni->i", w, x**power) for power in (1, 2, 4))
    truth = Truth(mean, second - mean**2, second, fourth - second**2)
    words = (
        f"No truth is known: b²max is against another auto run of {budget:,} gradients, seed "
        f"{seed}, ESS {size:.0f}. It shares auto's faults, if any, and below {1 / size:.1g} b²max "
        "is that run's own error."
    )
    return Reference(truth, words, size)
