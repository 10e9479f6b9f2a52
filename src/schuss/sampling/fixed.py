"""A fixed algorithm through the same call: nothing is tuned, and nothing is corrected."""

import dataclasses

import numpy as np

from schuss.adapters.question import Question
from schuss.algorithms import Algorithm, transition
from schuss.problem import launch
from schuss.progress import reporting
from schuss.results import Moments, Posterior, Stats
from schuss.sampling.stopping import Clock, StoppingRule
from schuss.trajectory import Path, follow

WARM_UP = 0.2
"""The share of the states that is left out at the beginning."""

CHUNK = 256


def run(
    question: Question,
    algorithm: Algorithm,
    rule: StoppingRule,
    seed: int,
    progress: bool,
    keep: str,
    exact: bool | None,
) -> Posterior:
    """Follow an algorithm until there is what was asked for; the first fifth is left out."""
    problem, clock, interrupted = question.problem, Clock(), False
    adjust = getattr(algorithm, "adjust", None)
    if adjust == "orbit" and rule.thin is not None:
        raise ValueError(
            "thin can't be given with adjust='orbit', whose states count with weights that "
            "belong to whole windows; leave it out"
        )
    proposal = 1 if adjust in ("orbit", "persistent") else transition(algorithm)
    every = proposal * (rule.thin or 1)
    job, state, first = launch(problem, algorithm, seed)
    # Without a uniform number nothing is ever rejected.
    if exact and not job.kernel.uniforms:
        raise ValueError(
            f"exact=True contradicts sampler={algorithm!r}, which nothing corrects; leave exact "
            "out, or use sampler='auto' or an adjusted one: MALA, HMC or ESH(adjust='endpoint')"
        )
    seen = [[problem.engine.to_numpy(part)[None] for part in first]]
    states = CHUNK
    if rule.gradients is not None:
        cost = every * job.kernel.gradients * len(problem.x)
        states = min(CHUNK, -(-rule.gradients // cost))
    path = follow(problem, job, state, seen, algorithm, 0, states * every, every)
    with reporting(progress) as report:
        try:
            while not _enough(path, rule, clock):
                more = _more(path, rule)
                path = path.extend(more * every)
                clock.lap("sampling")
                report(f"sampling  {len(path.x) - 1} states × {path.x.shape[1]} chains")
        except KeyboardInterrupt:
            interrupted = True
    clock.lap("sampling")
    return _posterior(question, path, rule, clock, keep, seed, every, interrupted)


def _states(rule: StoppingRule) -> int:
    return int(np.ceil((rule.draws or 0) / (1 - WARM_UP)))


def _more(path: Path, rule: StoppingRule) -> int:
    """States to add: what is missing, where that is known, or half as many again."""
    have = len(path.x) - 1
    if rule.draws is not None:
        return max(_states(rule) - have, 1)
    if rule.gradients is not None:
        spent = path.gradients * path.x.shape[1]
        return -(-(rule.gradients - spent) * have // spent)
    return max(have // 2, 1)


def _enough(path: Path, rule: StoppingRule, clock: Clock) -> bool:
    have, chains = len(path.x) - 1, path.x.shape[1]
    if rule.draws is not None:
        return have >= _states(rule)
    if rule.gradients is not None:
        return path.gradients * chains >= rule.gradients
    if rule.seconds is not None:
        return clock.total >= rule.seconds
    from schuss.diagnostics.vectorised import fast_ess

    skip = int(WARM_UP * have)
    x = path.x[1 + skip :].reshape(have - skip, chains, -1)
    columns = np.concatenate([x, (x - x.mean(axis=(0, 1))) ** 2], axis=2)
    sizes = fast_ess(columns, path.weights[skip:])
    return bool(sizes.min() >= (rule.ess or 0)) or have >= 10**6


def chains_first(values: np.ndarray) -> np.ndarray:
    """From (n, chains, …), as states are made, to (chains, n, …), as users have them."""
    return np.ascontiguousarray(np.swapaxes(values, 0, 1))


def _gradients(question: Question, path: Path) -> dict[str, int]:
    """By phase, of all chains."""
    checked = {"start": question.spent} if question.spent else {}
    return checked | {"sampling": path.gradients * path.x.shape[1]}


def _posterior(question, path: Path, rule, clock, keep, seed, every, interrupted) -> Posterior:
    have = len(path.x) - 1
    skip = max(have - rule.draws, 0) if rule.draws is not None else int(WARM_UP * have)
    cut = slice(skip, None)
    x = np.asarray(path.x[1:][cut]).reshape(have - skip, path.x.shape[1], -1)
    x, energy, error = (
        chains_first(values) for values in (x, path.energy[1:][cut], path.energy_error[cut])
    )
    weights = path.weights[cut].T
    flat = bool(np.all(weights == weights[0, 0]))
    adjusted = getattr(path.algorithm, "adjust", None) is not None
    decided = np.isfinite(path.acceptance).any()
    stats = Stats(
        energy=energy,
        energy_error=error,
        acceptance=chains_first(path.acceptance[cut]) if decided else None,
        step_size=path.algorithm.step_size,
        gradients=_gradients(question, path),
        seconds=clock.seconds,
        frozen=np.asarray(path.frozen),
        thin=every,
        exact=bool(adjusted or decided),
        sampler=repr(path.algorithm),
        seed=seed,
        engine=question.problem.engine.name,
        interrupted=interrupted,
        reached=rule.reached(x.shape[1]),
    )
    common = {"name": question.name, "dims": question.dims, "coords": question.coords}
    weights = None if flat else weights / weights.mean()
    result = Posterior(stats=stats, draws=question.restore(x), x=x, weights=weights, **common)
    if keep == "draws":
        return result
    w = np.ones(x.shape[:2]) if weights is None else weights
    total = w.sum(axis=1)
    mean = np.einsum("cn,cni->ci", w, x) / total[:, None]
    variance = np.einsum("cn,cni->ci", w, (x - mean[:, None]) ** 2) / total[:, None]
    moments = Moments(mean, variance, total)
    return dataclasses.replace(result, draws=None, x=None, weights=None, moments=moments)
