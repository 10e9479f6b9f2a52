"""`schuss.evidence`: log Z of a target, with a standard error and a verdict."""

import contextlib
import dataclasses
import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from schuss.algorithms import ESH, checked
from schuss.arguments import entropy, numbers, one_of, seed_or_generator, whole
from schuss.diagnostics import max_weight, normalise, weight_ess
from schuss.engines.engine import Engine
from schuss.evidence import smc
from schuss.evidence.groups import by_group, combine, interval, log_mean
from schuss.evidence.jarzynski import flow
from schuss.evidence.moves import Space
from schuss.evidence.references import Prior, Reference, Uniform
from schuss.evidence.result import Evidence
from schuss.evidence.verdict import judge_smc, judge_weights
from schuss.keywords import explained
from schuss.model import Model
from schuss.problem import check_target, over_devices, pose

LEVEL = 0.95
FEWEST = 4
"""Particles in a group."""


@explained
def evidence(
    target=None,
    *,
    energy: Callable | None = None,
    logdensity: Callable | None = None,
    value_and_grad: Callable | None = None,
    reference: Reference | None = None,
    method: str = "smc",
    particles: int = 256,
    groups: int = 8,
    sampler: ESH | None = None,
    steps: int | None = None,
    max_gradients: int | None = None,
    seed: Any = 0,
    engine: str | Engine = "auto",
    like: Any = None,
    devices: int | None = None,
    progress: bool = True,
) -> Evidence:
    """log Z = log ∫ e^(−E) of a target, a function, or a model's marginal likelihood.

    `reference` is a normalised density near the target: `schuss.Normal`, `schuss.Uniform` or
    `schuss.Prior`. A model that knows its prior apart from its likelihood needs none.
    method="smc" tempers from the reference to the target. The particles form `groups` that are
    estimates of their own, which gives the standard error. `max_gradients` for each particle
    limits the work. `seed` is a whole number, a NumPy Generator (which is advanced) or
    SeedSequence, a JAX key, or with PyTorch a torch.Generator.
    method="jarzynski" is the paper's Algorithm 4 with `sampler` (an un-adjusted `ESH`) for `steps`
    steps: right for low dimensions, and its verdict says where it isn't.
    `like` is a tensor whose dtype and device the particles shall have; with JAX they are spread
    over `devices` devices, or over all there are where they divide evenly. A verdict against the
    result is a `NotConverged` warning as well. A mode far narrower than all else, which no particle
    meets on its way, can't be told: let the reference know of it.
    """
    one_of("method", method, ("smc", "jarzynski"))
    seed, begun = seed_or_generator(seed), time.perf_counter()
    particles, groups = _counts(particles, groups)
    if like is not None and not hasattr(like, "dtype"):
        raise TypeError(f"like must be a tensor or an array, got {type(like).__name__}")
    given, model, start = _target(target, energy, logdensity, value_and_grad, reference)
    number = entropy(seed)
    rng = np.random.default_rng([number, 2])
    draws = _draws(start, rng, particles)
    problem = pose(**given, init=_placed(given, draws, engine, like), seed=seed, engine=engine)
    problem = over_devices(problem, devices)
    chosen = problem.engine
    space = Space(
        chosen,
        problem.grad_fn,
        start.grad_fn(chosen, problem.x),
        start.frames,
        problem.x,
    )
    _check_reference(space, start, draws)
    common = {"method": method, "seed": number, "engine": chosen.name, "model": model}
    common["name"] = getattr(target, "name", "")
    if method == "jarzynski":
        if max_gradients is not None:
            raise ValueError("max_gradients belongs to method='smc'; here steps says it all")
        result = _by_flow(
            given, problem, space, start, draws, groups, sampler, steps, progress, begun, common
        )
        result.verdict.warn(stacklevel=3)
        return result
    if sampler is not None or steps is not None:
        raise ValueError("sampler and steps belong to method='jarzynski'; leave them out")
    most = math.inf if max_gradients is None else whole("max_gradients", max_gradients, 1)
    with _bar(progress) as told:
        outcome = smc.run(
            space, start.sample, particles, groups, number, max_gradients=most, told=told
        )
    result = _by_tempering(outcome, space, start, particles, groups, begun, common)
    result.verdict.warn(stacklevel=3)
    return result


def _by_tempering(outcome, space, reference, particles, groups, begun, common) -> Evidence:
    value, error = combine(outcome.log_z)
    if outcome.stopped:
        value, error = math.nan, math.inf
    x, gap = outcome.pool
    states = by_group(x, groups)
    # A path that was left half-way has no states of the target to weigh by groups.
    weights = np.ones(groups) if outcome.stopped else normalise(outcome.log_z)
    weights = np.repeat(weights[:, None], states.shape[1], axis=1)
    weights = weights / weights.sum()
    reference_energy = space.energies(space.reference, x)
    rows = outcome.rows
    spent = np.cumsum([smc.FIRST, *(row.gradients for row in rows)])[1:]
    names = (
        "temperature",
        "conditional_ess",
        "acceptance",
        "step_size",
        "moves",
        "correlation_time",
    )
    stats = {
        "particles": particles,
        "groups": groups,
        "gradients": outcome.gradients,
        "seconds": time.perf_counter() - begun,
        **{name: [getattr(row, name) for row in rows] for name in names},
        "bridged_log_z": combine(outcome.bridged)[0],
        "max_weight": float(weights.max()),
        "weight_ess": float(weights.sum() ** 2 / (weights**2).sum()),
        "history": [
            {
                "phase": "tempering",
                "gradients": int(total) * particles,
                "step_size": row.step_size,
                "acceptance": row.acceptance,
            }
            for row, total in zip(rows, spent, strict=True)
        ],
    }
    return Evidence(
        log_z=value,
        error=error,
        interval=interval(value, error, groups - 1, LEVEL),
        x=states,
        weights=weights,
        energy=by_group(gap + reference_energy, groups),
        verdict=judge_smc(outcome, states, weights, reference),
        group_log_z=outcome.log_z,
        stats=stats,
        **common,
    )


def _by_flow(
    given, problem, space, reference, draws, groups, sampler, steps, progress, begun, common
) -> Evidence:
    algorithm = ESH() if sampler is None else checked("sampler", sampler)
    if not isinstance(algorithm, ESH) or algorithm.adjust is not None:
        raise ValueError("sampler must be an un-adjusted ESH flow; pass e.g. schuss.ESH(0.1)")
    if isinstance(reference, Uniform) and algorithm.box is None:
        algorithm = dataclasses.replace(algorithm, box=(reference.lower, reference.upper))
    steps = whole("steps", 200 if steps is None else steps, 1)
    start = space.energies(space.reference, draws[None])[0]
    try:
        end = flow(
            given | {"engine": problem.engine},
            problem.restore(problem.x),
            start,
            algorithm,
            steps,
            common["seed"],
            progress,
        )
    except ValueError:
        outside = int(np.sum(~np.isfinite(space.energies(space.target, draws[None])[0])))
        if not outside:
            raise
        raise ValueError(
            f"the energy isn't finite at {outside} of {len(draws)} draws of the reference, where "
            "no flow can begin; use method='smc', or a reference within the support of the target"
        ) from None
    by_group = end.log_weight.reshape(groups, -1)
    verdict = judge_weights(end.log_weight)
    value, error = combine(log_mean(by_group))
    # The spread of degenerate weights says nothing of their error.
    error = error if verdict.converged else math.inf
    paper, paper_error = combine(log_mean(end.paper.reshape(groups, -1)))
    stats = {
        "particles": len(draws),
        "groups": groups,
        "gradients": end.gradients + 1,
        "seconds": time.perf_counter() - begun,
        "max_weight": float(max_weight(end.log_weight)),
        "weight_ess": float(weight_ess(end.log_weight)),
        "paper_log_z": paper,
        "paper_error": paper_error,
        "paper_max_weight": float(max_weight(end.paper)),
        "paper_weight_ess": float(weight_ess(end.paper)),
    }
    return Evidence(
        log_z=value,
        error=error,
        interval=interval(value, error, groups - 1, LEVEL),
        x=end.x.reshape(groups, -1, problem.dim),
        weights=normalise(end.log_weight).reshape(groups, -1),
        energy=end.energy.reshape(groups, -1),
        verdict=verdict,
        group_log_z=log_mean(by_group),
        stats=stats,
        **common,
    )


def _counts(particles, groups) -> tuple[int, int]:
    groups = whole("groups", groups, 2)
    particles = whole("particles", particles, 1)
    if groups % 2:
        raise ValueError(f"groups must be even, for two halves, got {groups}; pass e.g. groups=8")
    if particles % groups or particles < FEWEST * groups:
        raise ValueError(
            f"particles must be a multiple of groups={groups} and at least {FEWEST * groups}, as "
            f"the error comes from comparing groups; got {particles}, pass e.g. particles=256"
        )
    return particles, groups


def _target(target, energy, logdensity, value_and_grad, reference):
    """What `pose` takes, the model if it is one, and the reference."""
    given = {"energy": energy, "logdensity": logdensity, "value_and_grad": value_and_grad}
    given = {name: value for name, value in given.items() if value is not None}
    if target is None and not given:
        raise ValueError(
            "target is missing; pass a model, a target, or a function as energy= or logdensity="
        )
    if target is not None:
        check_target("target", target)
    model = target if isinstance(target, Model) else None
    if model is None:
        if target is not None:
            given["target"] = target
    elif given:
        raise ValueError(f"pass a model or {', '.join(given)}, not both")
    elif model.value_and_grad is not None:
        given["value_and_grad"] = model.value_and_grad
    else:
        given["logdensity"] = model.logdensity
    if reference is None and model is not None and model.parts is not None:
        parts = model.parts
        reference = Prior(parts.log_prior, parts.sample_prior, model.dim)
    if reference is None:
        more = ", since the model doesn't tell its prior apart" if model is not None else ""
        raise ValueError(
            f"reference is missing{more}; pass a normalised density near the target, e.g. "
            "reference=schuss.Normal(dim=10)"
        )
    parts = ("sample", "grad_fn", "frames")
    if isinstance(reference, type) or not all(hasattr(reference, name) for name in parts):
        got = f"the class {reference.__name__}" if isinstance(reference, type) else repr(reference)
        raise TypeError(
            "reference must be a density such as schuss.Normal(dim=10), schuss.Uniform(0, 1, "
            f"dim=2) or schuss.Prior(…), got {got}"
        )
    return given, model, reference


def _draws(reference: Reference, rng, particles: int) -> np.ndarray:
    """Positions of the reference's draws, whose shape and finiteness its user answers for."""
    draws = numbers("the draws of reference.sample", reference.sample(rng, particles))
    if draws.ndim != 2 or len(draws) != particles or draws.shape[1] < 1:
        raise ValueError(
            f"reference.sample(rng, {particles}) must return shape ({particles}, dim), got "
            f"{draws.shape}"
        )
    if reference.dim is not None and draws.shape[1] != reference.dim:
        raise ValueError(
            f"reference has dim={reference.dim}, but its draws have {draws.shape[1]} coordinates; "
            "make the two agree"
        )
    if not np.all(np.isfinite(draws)):
        raise ValueError(
            "reference.sample returned draws that aren't finite; make it draw from log_density"
        )
    return draws


def _placed(given: dict, draws: np.ndarray, engine, like):
    """The draws, as a tensor where PyTorch is meant, of the network's dtype and on its device."""
    name = engine if isinstance(engine, str) else getattr(engine, "name", "")
    function = next(iter(given.values()))
    torch_like = type(like).__module__.partition(".")[0] == "torch"
    module = any(base.__module__.startswith("torch.nn") for base in type(function).__mro__)
    if name != "torch" and not (name == "auto" and (torch_like or module)):
        return draws if like is None else draws.astype(like.dtype)
    import torch

    from schuss.engines.modules import modules

    if like is None:
        weights = (p for part in modules(function, far=False) for p in part.parameters())
        like = next(weights, torch.zeros((), dtype=torch.float64))
    return torch.as_tensor(draws).to(like.device, like.dtype)


def _check_reference(space: Space, reference: Reference, draws: np.ndarray) -> None:
    """Refuse a prior whose draws don't follow its density: E[(x − m) ∂E₀/∂x] = 1."""
    if not isinstance(reference, Prior):
        return
    pull = space.slope(draws) * (draws - draws.mean(axis=0))
    if not np.all(np.isfinite(pull)):
        raise ValueError(
            "reference gives some of its own draws no finite log-density or gradient; make its "
            "sample and its log_density agree"
        )
    error = pull.std(axis=0, ddof=1) / math.sqrt(len(pull))
    off = np.abs(pull.mean(axis=0) - 1)
    if np.any((off > 8 * error) & (off > 0.5)):
        worst = int(np.argmax(off))
        raise ValueError(
            "reference.sample and reference.log_density aren't the same density: (x − m) ∂E₀/∂x "
            f"of coordinate {worst} has the mean {pull.mean(axis=0)[worst]:.2f} where it should "
            "be 1; check scales and Jacobians"
        )


@contextlib.contextmanager
def _bar(show: bool) -> Iterator[Callable[[float], None]]:
    if not show:
        yield lambda beta: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("tempering", total=1.0)
        yield lambda beta: bar.update(task, completed=beta)
