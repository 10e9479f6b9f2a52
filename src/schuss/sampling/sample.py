"""`schuss.sample`: draws that can be trusted, or a plain word that they can't be yet."""

import contextlib
import dataclasses
import math
import time
from typing import Any

import numpy as np

from schuss.adapters.question import Question, ask
from schuss.algorithms import checked
from schuss.arguments import a_path, one_of, whole_seed
from schuss.engines.engine import check_weights
from schuss.keywords import explained
from schuss.problem import over_devices
from schuss.progress import reporting
from schuss.results import Posterior
from schuss.results.verdict import WRONG
from schuss.sampling import fixed
from schuss.sampling.checkpoint import saving
from schuss.sampling.initialise import evaluate
from schuss.sampling.result import posterior
from schuss.sampling.run import Plan, monitored, rows_kept, run
from schuss.sampling.state import RunState
from schuss.sampling.stopping import Clock, StoppingRule, line, stopping_rule

REHEARSAL = 1 / 8
"""The share of a time after which the end of the run is rehearsed, which takes time as well."""

DOUBT, DOUBTS = 50_000, 3
"""Gradients after which the density may be found improper, and how often this has to be found, at
twice as many gradients each time, before a run ends for that reason."""

PATIENCE = 4
"""How many times the gradients a run takes at most after which there were draws enough, but its
verdict had something against them."""


@dataclasses.dataclass(frozen=True)
class View:
    """A run on its way."""

    question: Question
    plan: Plan
    state: RunState
    rule: StoppingRule
    clock: Clock
    keep: str

    @property
    def phase(self) -> str:
        """What it is doing."""
        return self.state.phase

    @property
    def gradients(self) -> int:
        """Gradients so far, of all chains and phases."""
        return self.state.counts.gradients + self.question.spent

    @property
    def ess(self) -> float:
        """The smallest effective sample size when it was last assessed."""
        return self.state.mixing.ess

    @property
    def rhat(self) -> float:
        """The largest R-hat when it was last assessed."""
        return self.state.mixing.rhat

    def posterior(self, *, interrupted: bool = False) -> Posterior:
        """What the run would give if it ended here."""
        with np.errstate(over="ignore", invalid="ignore"):
            result = posterior(
                self.question,
                self.plan,
                self.state,
                self.rule,
                self.clock,
                keep=self.keep,
                interrupted=interrupted,
            )
            _ = result.verdict
        return result


@explained
def sample(
    target: Any = None,
    *,
    logdensity: Any = None,
    energy: Any = None,
    value_and_grad: Any = None,
    init: Any = None,
    draws: int | None = None,
    ess: float | None = None,
    seconds: float | None = None,
    gradients: int | None = None,
    max_gradients: int | None = None,
    chains: int | None = None,
    seed: Any = 0,
    sampler: Any = "auto",
    exact: bool | None = None,
    engine: Any = "auto",
    progress: bool = True,
    checkpoint: Any = None,
    devices: int | None = None,
    keep: str = "draws",
    thin: int | None = None,
    callback: Any = None,
) -> Posterior:
    """Draw from a target, a model, or e^logdensity = e^(−energy), tuned by itself and exactly.

    target: one of `schuss.targets`, or a model from `schuss.from_pymc`, `schuss.from_numpyro` or
        `schuss.from_value_and_grad`. Functions are given as `logdensity=` or `energy=` (JAX or
        PyTorch), or `value_and_grad=` (NumPy; energies and their gradients).
    init: a point (dim,), which chains start around; a batch (chains, dim); a dict or nest of
        arrays; or a function (rng, chains) → starts. Targets and models have their own.
    draws, ess, seconds, gradients: one wish. So many draws of each chain (1000 if nothing is
        said), an effective sample size for the worst of x, (x − m)² and E, a time, or a number
        of gradients in all.
    max_gradients: the number of gradients, of all chains, after which a run ends whatever it has:
        1,000 for each draw or effective draw asked for, and at least 2 million, if nothing is said.
    seed: a whole number, a NumPy Generator or SeedSequence, or a JAX key. A Generator is advanced,
        so that the next run differs; the others repeat a run, as `post.stats.seed` does.
    sampler: "auto", or a fixed algorithm such as `schuss.HMC(step_size=0.1)`.
    exact: True unless a fixed sampler says otherwise, and True refuses a fixed one that nothing
        corrects. With False the unadjusted flow is sampled, with a bias that the energy error keeps
        below the scatter of the estimates.
    checkpoint: a folder, say "run.zarr": a run that was killed goes on there by the same call.
    devices: chains are spread over this many devices (all there are, where they divide evenly).
    keep: "draws", or "moments" for constant memory (a fixed sampler reduces its path at the end).
    thin: keep every so many-th state.
    callback: called every now and then with a `View` of the run: its `phase`, `gradients`, `ess`
        and `rhat`, and its `posterior()` so far. The run ends where it returns True.
    """
    rule = stopping_rule(draws, ess, seconds, gradients, max_gradients, thin)
    one_of("keep", keep, ("draws", "moments"))
    seed = whole_seed(seed)
    if checkpoint is not None:
        a_path("checkpoint", checkpoint)
    one_of("exact", exact, (None, True, False))
    auto = isinstance(sampler, str) and sampler == "auto"
    algorithm = None if auto else checked("sampler", sampler, auto=True)
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be a function of a view, got {callback!r}")
    question = ask(
        target,
        energy=energy,
        logdensity=logdensity,
        value_and_grad=value_and_grad,
        init=init,
        chains=chains,
        seed=seed,
        engine=engine,
    )
    problem = over_devices(question.problem, devices)
    question = dataclasses.replace(question, problem=problem)
    if algorithm is not None:
        for name, given in (("checkpoint", checkpoint), ("callback", callback)):
            if given is not None:
                raise ValueError(f"{name} works with sampler='auto' only; leave it out")
        result = fixed.run(question, algorithm, rule, seed, progress, keep, exact)
        result.verdict.warn(stacklevel=3)
        return result
    clock, exact = Clock(), exact is None or exact
    x = _finite_starts(problem)
    most = rows_kept(rule, keep, *x.shape)
    plan = Plan(problem, seed, exact, most, keep == "moments", monitored(len(x)))
    settings = {"exact": plan.exact, "keep": keep}
    with saving(checkpoint, plan, x, settings) as save, reporting(progress) as report:
        result = _followed(question, plan, x, rule, clock, keep, save, report, callback)
    result.verdict.warn(stacklevel=3)
    return result


def _followed(question, plan, x, rule, clock, keep, save, report, callback) -> Posterior:
    """The posterior when the run has come to its end."""
    view, result, interrupted = None, None, False
    doubted, due, most = 0, DOUBT, math.inf
    try:
        for state in run(plan, x, save.found):
            view, result = View(question, plan, state, rule, clock, keep), None
            clock.lap(state.phase)
            save(state)
            if callback is not None and callback(view) is True:
                break
            report(line(state, rule, clock))
            if _spent(view):
                break
            if rule.open_ended and view.gradients >= due:
                result = view.posterior()
                doubted, due = doubted + 1 if result.verdict.improper else 0, 2 * view.gradients
                if doubted == DOUBTS:
                    break
            if rule.enough(state):
                result = view.posterior()
                if rule.thin is not None or not _contradicted(result):
                    break
                most = min(most, max(PATIENCE * view.gradients, 2 * DOUBT))
                if view.gradients >= most:
                    break
    except KeyboardInterrupt:
        if view is None:
            raise
        interrupted, result = True, None
    assert view is not None
    return result or view.posterior(interrupted=interrupted)


def _contradicted(result: Posterior) -> bool:
    """Whether something is wrong with the draws, other than that few were asked for."""
    return any(reason.kind == WRONG for reason in result.verdict.reasons)


def _spent(view: View) -> bool:
    """Whether the run has to end now, be it finished or not."""
    clock, rule = view.clock, view.rule
    if rule.seconds is not None and not clock.ending and clock.total > REHEARSAL * rule.seconds:
        begun = time.perf_counter()
        with contextlib.suppress(ValueError):
            view.posterior()
        clock.ending = time.perf_counter() - begun
    if rule.seconds is not None and clock.total + clock.ending >= rule.seconds:
        return True
    return view.gradients >= rule.budget(len(view.state.chains.energy))


def _finite_starts(problem) -> np.ndarray:
    """Starts on the host: a few that aren't finite are moved to others, all of them are refused."""
    x = np.asarray(problem.engine.to_numpy(problem.x), float)
    energy, grad = evaluate(problem, x)
    bad = ~(np.isfinite(energy) & np.isfinite(grad).all(axis=-1))
    if bad.all():
        check_weights(problem.engine, problem.grad_fn)
        raise ValueError(
            "the energy or its gradient is not finite at the start of any chain; move init to "
            "where the log-density is finite, and check the model there"
        )
    if bad.any():
        x = x.copy()
        x[bad] = x[~bad][np.arange(bad.sum()) % (~bad).sum()]
    return x
