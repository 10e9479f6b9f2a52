"""`schuss.Sampler`: a sampler for inner loops, in constant memory however many steps it makes."""

import dataclasses
from typing import Any

from schuss.algorithms import ESH, Algorithm, checked, transition
from schuss.arguments import entropy, mixed, one_of, positive_number, seed_or_generator, whole
from schuss.core.collect import KEEP, collecting
from schuss.core.moments import Moments
from schuss.engines.engine import Job
from schuss.keywords import explained
from schuss.problem import Conditional, Problem, Scaled, clamped, launch, pose
from schuss.progress import chunks
from schuss.targets.target import Target

CHUNK = 10_000
"""Steps between two looks at the keyboard."""


@dataclasses.dataclass(frozen=True)
class Run:
    """The end of a run. Arrays are of the kind and shape that the starting positions had."""

    x: Any  # the sample: the last states, or the reservoir's
    last: Any
    moments: Moments | None  # with keep="moments": per chain, Σw in units of its own unless
    # weight="energy"
    frozen: Any  # (chains,) which met a non-finite energy or gradient and were stopped
    gradients: int  # for each chain, the one at the start not counted
    _sampler: "Sampler" = dataclasses.field(repr=False)
    _problem: Problem = dataclasses.field(repr=False)
    _job: Job = dataclasses.field(repr=False)
    _state: Any = dataclasses.field(repr=False)
    _kept: Any = dataclasses.field(repr=False)
    _steps: int = dataclasses.field(repr=False)

    def extend(self, steps: int) -> "Run":
        """The same run, `steps` steps longer: the numbers of one that was never interrupted."""
        return self._sampler._continue(
            self._problem, self._job, self._state, self._kept, self._steps, whole("steps", steps, 1)
        )


class Sampler:
    """An algorithm, a number of steps and what to keep: "last", "reservoir" or "moments".

    Calling it gives samples; `run` gives all there is to know. The noise of a call depends on
    `seed` and on the number of calls before it, so that two batches never share it. It samples
    e^(−scale · E) with scale = `energy_scale`. `seed` is a
    whole number, a NumPy Generator (advanced once, when the sampler is made) or SeedSequence, a JAX
    key, or a `torch.Generator`, which every call advances.
    """

    @explained
    def __init__(
        self,
        algorithm: Algorithm | None = None,
        *,
        steps: int = 100,
        keep: str = "last",
        energy_scale: float = 1.0,
        seed: Any = 0,
        engine: Any = "auto",
        compile: bool = False,
        gradient_dtype: Any = None,
        progress: bool = False,
    ):
        one_of("keep", keep, KEEP)
        self.algorithm = ESH() if algorithm is None else checked("algorithm", algorithm)
        if keep == "last" and getattr(self.algorithm, "adjust", None) == "persistent":
            raise ValueError(
                "keep='last' isn't a sample with adjust='persistent', whose transitions take "
                "longer in some places than in others; use keep='reservoir' or keep='moments'"
            )
        self.steps, self.keep = whole("steps", steps, 1), keep
        positive_number("energy_scale", energy_scale)
        self.energy_scale = float(energy_scale)
        self.seed = seed_or_generator(seed)
        least = transition(self.algorithm)
        if keep != "last" and self.steps < least:
            raise ValueError(
                f"steps must be at least {least}, the length of one transition of this sampler, "
                f"got {steps}"
            )
        self.engine, self.compile, self.gradient_dtype = engine, compile, gradient_dtype
        self.progress = progress
        self.calls = 0

    def __call__(self, energy=None, init=None, **given):
        """One sample for each starting position, shaped like them; arguments are those of `run`.

        With keep="reservoir" they are samples of e^(−E). The last states of an adjusted sampler
        are too; those of the flow follow e^(−(d−1)E/κ), which is e^(−E) for `ESH(kappa=d - 1)`.
        """
        return self.run(energy, init, **given).x

    @explained
    def run(
        self,
        energy=None,
        init=None,
        *,
        logdensity=None,
        value_and_grad=None,
        target=None,
        chains: int | None = None,
        y=None,
        fixed=None,
    ) -> Run:
        """Make `steps` steps from `init`, on an energy or one of the others.

        A `schuss.targets` one has starts of its own, so many as `chains` says. With conditions `y`,
        one for each chain, the energy is a function of (x, y), in PyTorch. `fixed` is a mask of the
        shape of a position: where it is True coordinates stay as they are in `init`, and the others
        are sampled given these.
        """
        if fixed is not None and self.keep == "moments":
            raise ValueError("fixed doesn't go with keep='moments'; use 'last' or 'reservoir'")
        engine = self.engine
        if y is not None:
            energy, engine = _conditional(energy, y, init, engine), "torch"
        seed = self._next_seed()
        if target is None and isinstance(energy, Target):
            energy, target = None, energy
        problem = pose(
            target,
            energy=energy,
            logdensity=logdensity,
            value_and_grad=value_and_grad,
            init=init,
            chains=chains,
            seed=seed,
            engine=engine,
            compile=self.compile,
            gradient_dtype=self.gradient_dtype,
        )
        if fixed is not None:
            problem = clamped(problem, fixed)
        if self.energy_scale != 1:
            scaled = Scaled(problem.grad_fn, self.energy_scale)
            problem = dataclasses.replace(problem, grad_fn=scaled)
        job, state, _ = launch(
            problem,
            self.algorithm,
            seed,
            speed=False,
            weighted=self.keep != "last",
        )
        return self._continue(problem, job, state, None, 0, self.steps)

    def _next_seed(self) -> int:
        """A seed for one call: of starts, velocities and noise."""
        if not isinstance(self.seed, int):
            return entropy(self.seed)
        self.calls += 1
        return mixed(self.seed, self.calls)

    def _continue(self, problem, job, state, kept, done, steps) -> Run:
        engine = problem.engine
        collection = collecting(self.keep, windowed=job.kernel.windowed)
        for count in chunks(steps, CHUNK, self.keep, self.progress):
            state, source, kept = engine.collect(job, state, kept, done, count, collection)
            job, done = job._replace(source=source), done + count
        last, collected, moments = problem.restore(kept.last), kept.collected, None
        if self.keep == "moments":
            collected = getattr(collected, "done", collected)
            shaped = [problem.restore(part) for part in collected[:2]]
            moments = Moments(*shaped, *(problem.export(part) for part in collected[2:]))
        return Run(
            x=problem.restore(collected.x) if self.keep == "reservoir" else last,
            last=last,
            moments=moments,
            frozen=problem.export(~job.kernel.alive(engine.xp, state)),
            gradients=done * job.kernel.gradients,
            _sampler=self,
            _problem=problem,
            _job=job,
            _state=state,
            _kept=kept,
            _steps=done,
        )


def _conditional(energy, y, init, engine):
    """An energy of x alone, with conditions; refuses what can't have them."""
    if engine not in ("auto", "torch") or not callable(energy) or isinstance(energy, Target):
        raise ValueError("y is for an energy of (x, y) on engine='torch'; pass that as energy=")
    import torch

    y = torch.as_tensor(y)
    if isinstance(init, torch.Tensor):
        y = y.to(init.device)
    if y.dim() == 0 or len(y) != len(init):
        raise ValueError(
            f"y must have an entry for each of the {len(init)} chains, got shape {tuple(y.shape)}"
        )
    return Conditional(energy, y)
