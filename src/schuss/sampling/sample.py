"""`schuss.sample`: draws that can be trusted, or a plain word that they can't be yet."""

import dataclasses
import math
import time
from typing import Any

import numpy as np

from schuss.algorithms import checked
from schuss.arguments import a_path, one_of, whole, whole_seed
from schuss.engines.engine import check_weights
from schuss.keywords import explained
from schuss.problem import over_devices
from schuss.results import Posterior, Verdict
from schuss.sampling import fixed
from schuss.sampling.cooling import raw_draws
from schuss.sampling.course import Course
from schuss.sampling.field import Field
from schuss.sampling.gather import gather
from schuss.sampling.progress import line, telling
from schuss.sampling.question import Question, ask
from schuss.sampling.rounds import Rounds
from schuss.sampling.save import saving
from schuss.sampling.wish import Clock, Wish, wish

HOT = 8.0
"""The temperature at which lines and planes are sampled: paths cross from mode to mode, and weights
undo it."""


MOST = 200_000
"""Draws of each chain after which a wish for an effective sample size is given up."""

REHEARSAL = 1 / 8
"""The share of a time after which the end of the run is rehearsed, which takes time as well."""

HELD = 1000
"""Draws of each chain that are held for the verdict when only moments are kept."""


@dataclasses.dataclass(frozen=True)
class View:
    """A run on its way."""

    question: Question
    course: Course
    clock: Clock
    asked: Wish
    keep: str

    @property
    def phase(self) -> str:
        """Which phase it is in."""
        return self.course.phase

    @property
    def gradients(self) -> int:
        """Gradients so far, of all chains and phases."""
        return self.course.total

    @property
    def ess(self) -> float:
        """The smallest effective sample size when it was last looked at."""
        return self.course.ess

    @property
    def rhat(self) -> float:
        """The largest R-hat when it was last looked at."""
        return self.course.rhat

    def posterior(self) -> Posterior:
        """What the run would give if it ended here; an error before it has draws."""
        return gather(self.question, self.course, self.asked, self.clock, self.keep, False)


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
    seed: a whole number, a NumPy Generator or SeedSequence, or a JAX key. A Generator is advanced,
        so that the next run differs; the others repeat a run, as `post.stats.seed` does.
    sampler: "auto", or a fixed algorithm such as `schuss.HMC(step_size=0.1)`.
    exact: True unless a fixed sampler says otherwise, and True refuses a fixed one that nothing
        corrects. With False the draws of tuning count too, and where steps are long, or many make
        a draw, the unadjusted flow is sampled on: quicker, with a bias that the energy error keeps
        below the scatter of the estimates.
    checkpoint: a folder, say "run.zarr": a run that was killed goes on there by the same call.
    devices: chains are spread over this many devices (all there are, where they divide evenly).
    keep: "draws", or "moments" for constant memory (a fixed sampler reduces its path at the end).
    thin: keep every so many-th state.
    callback: called every now and then with a `View` of the run: its `phase`, `gradients`, `ess`
        and `rhat`, and its `posterior()` so far.
    """
    asked = wish(draws, ess, seconds, gradients)
    one_of("keep", keep, ("draws", "moments"))
    seed = whole_seed(seed)
    if thin is not None:
        thin = whole("thin", thin, 1)
    one_of("exact", exact, (None, True, False))
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be a function of a view, got {callback!r}")
    auto = isinstance(sampler, str) and sampler == "auto"
    fixed_one = None if auto else checked("sampler", sampler, auto=True)
    if checkpoint is not None:
        a_path("checkpoint", checkpoint)
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
    if fixed_one is not None:
        for name, given in (("checkpoint", checkpoint), ("callback", callback)):
            if given is not None:
                raise ValueError(f"{name} works with sampler='auto' only; leave it out")
        result = fixed.run(question, fixed_one, asked, seed, progress, keep, thin, exact)
        return _warned(result)

    exact = True if exact is None else exact
    field = Field.over(problem, seed, 1.0)
    x = _checked(field, _start(problem, seed))
    temperature = HOT if problem.dim <= 2 and steep(field, x, 2 * HOT) else 1.0
    field = Field.over(problem, seed, temperature)
    course = Course(field, x, exact=exact, freeze=_freeze(asked))
    course.gradients["start"] += question.spent
    rounds = Rounds(course)
    clock, interrupted = Clock(), False
    limit = _held(asked, len(x)) if keep == "moments" else None
    settings = {"exact": exact, "keep": keep, "thin": thin, "temperature": temperature}
    with (
        saving(checkpoint, rounds, question, settings) as save,
        telling(progress) as tell,
        # Chains that run away are told of by the verdict.
        np.errstate(over="ignore", invalid="ignore"),
    ):
        try:
            if not _granted(rounds.course, asked, clock, True):
                phase = rounds.course.phase
                for ended in rounds.run(thin=thin, limit=limit):
                    course = rounds.course
                    clock.lap(phase)
                    phase = course.phase
                    if ended:
                        save()
                    if callback is not None:
                        callback(View(question, course, clock, asked, keep))
                    tell(line(course, asked, clock))
                    _rehearse(View(question, course, clock, asked, keep))
                    if _granted(course, asked, clock, ended) or _hopeless(course, asked):
                        break
        except KeyboardInterrupt:
            interrupted = True
        result = gather(question, rounds.course, asked, clock, keep, interrupted)
    return _warned(result)


def _warned(result: Posterior) -> Posterior:
    _judged(result).warn(stacklevel=4)
    return result


def _judged(result: Posterior) -> Verdict:
    with np.errstate(over="ignore", invalid="ignore"):
        return result.verdict


def _start(problem, seed):
    """The starting positions on the host, with one more coordinate on a line."""
    x = np.asarray(problem.engine.to_numpy(problem.x), float)
    if problem.dim == 1:
        extra = np.random.default_rng([seed, 1]).standard_normal((len(x), 1))
        x = np.concatenate([x, extra], axis=1)
    return x


def _checked(field, x):
    """Starts that are finite: a few that aren't are moved to others, all of them are refused."""
    energy, g = field.evaluate(x)
    bad = ~(np.isfinite(energy) & np.isfinite(g).all(axis=-1))
    if bad.all():
        check_weights(field.engine, field.grad_fn)
        raise ValueError(
            "the energy or its gradient is not finite at the start of any chain; move init to "
            "where the log-density is finite, and check the model there"
        )
    if bad.any():
        x = x.copy()
        x[bad] = x[~bad][np.arange(bad.sum()) % (~bad).sum()]
    return x


def _held(asked: Wish, chains: int) -> int:
    """Draws of each chain to hold: those left after thinning must show the size that is wished."""
    return HELD if asked.ess is None else max(HELD, math.ceil(2 * asked.ess / chains))


def _freeze(asked: Wish) -> float:
    """The effective sample size at which the step of the unadjusted flow stops shrinking."""
    return 400.0 if asked.ess is None else max(100.0, asked.ess)


def _granted(course: Course, asked: Wish, clock: Clock, ended: bool) -> bool:
    if asked.gradients is not None:
        return course.total >= asked.gradients
    if asked.seconds is not None:
        return clock.total + clock.ending * course.archive.size >= asked.seconds
    if course.phase != "sampling":
        return False
    if asked.draws is not None:
        return _made(course) >= asked.draws * raw_draws(course.field.temperature)
    return ended and course.assess() >= (asked.ess or 0)


def _hopeless(course: Course, asked: Wish) -> bool:
    """An effective sample size that hasn't come by now never will."""
    return asked.ess is not None and course.phase == "sampling" and _made(course) > MOST


def _rehearse(view: View) -> None:
    """Measure once what a draw costs in the end, where a time was asked for."""
    clock, seconds, course = view.clock, view.asked.seconds, view.course
    if seconds is None or clock.ending or course.phase != "sampling":
        return
    if clock.total < REHEARSAL * seconds or course.archive.size < HELD:
        return
    # Once to have everything loaded, and once to be timed.
    for _ in range(2):
        begun = time.perf_counter()
        _judged(view.posterior())
        clock.ending = (time.perf_counter() - begun) / course.archive.size


def _made(course: Course) -> int:
    """Draws of each chain since all was frozen, whether they are held or not."""
    return int(course.archive.counts.min()) // course.thin


def steep(field: Field, x: np.ndarray, least: float) -> bool:
    """Whether the energy grows faster than `least` times log |x| far out, in all directions tried.

    In the plane e^(−E/T) can be normalised where E grows faster than 2T log |x|.
    """
    chains = len(x)
    angles = np.random.default_rng(field.seed).uniform(0, 2 * np.pi, (4, chains))
    rays = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    reach = 1 + np.abs(x).max()
    with np.errstate(all="ignore"):
        near, far = ([field.evaluate(r * reach * ray)[0] for ray in rays] for r in (1e3, 1e5))
        slope = (np.stack(far) - np.stack(near)) / np.log(1e2)
    # Infinite energies are walls. What isn't a number says nothing.
    return bool(np.all((slope > least) | ~np.isfinite(np.stack(far))))
