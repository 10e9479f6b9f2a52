"""From the end of a run to what its user gets."""

import numpy as np

from schuss.problem import Problem
from schuss.results import Moments, Posterior, Stats
from schuss.sampling.archive import FIELDS, chains_first
from schuss.sampling.cooling import cooled, raw_draws
from schuss.sampling.course import Course
from schuss.sampling.home import home, uncharted
from schuss.sampling.question import Question
from schuss.sampling.wish import Clock, Wish
from schuss.tuning.local_mass import log_mass

FEWEST = 4
"""Draws of a chain below which there is nothing to give back."""

SOME, MOST = 20_000, 1000.0
"""Draws that tell what is out of reach, and the largest share that is taken for one: far out on a
flat slope, where chains are still coming down, there seems to be any amount of mass."""


def gather(
    question: Question, course: Course, asked: Wish, clock: Clock, keep: str, interrupted: bool
) -> Posterior:
    """The draws that count, in the user's coordinates, with all that is known of them."""
    kept = _kept(course, frozen=asked.draws is not None)
    if asked.draws is not None:
        count = asked.draws * raw_draws(course.field.temperature)
        kept = {name: values[:count] for name, values in kept.items()}
    if len(kept["energy"]) < FEWEST:
        if interrupted:
            raise KeyboardInterrupt("the run was interrupted before it had draws to give back")
        counted = "" if asked.seconds is None else ", compilation included,"
        raise ValueError(
            f"{asked.text}{counted} ended the run in its {course.phase} phase, after "
            f"{course.total} gradients, before there were draws; ask for more"
        )
    field, problem = course.field, question.problem
    if field.temperature != 1:
        kept = cooled(kept, field.temperature, asked.draws)
    y, pull = kept["x"], kept["g"]
    x, energy, g = map(chains_first, home(field, y, kept["energy"], pull))
    # Where there are walls, the identities that gradients are checked by don't hold; errors in a
    # chart may be infinite without any.
    walls = bool(np.isinf(kept["error"]).any())
    checked = field.chart or not walls
    sampling, adjusted = course.phase == "sampling", course.exactly and not _barely_exact(course)
    precision = problem.engine.to_numpy(problem.x).dtype
    stats = Stats(
        energy=energy.astype(precision),
        # The errors of steps that a Metropolis test decided on are no bias.
        energy_error=chains_first(kept["error"]) if course.exact or not adjusted else None,
        acceptance=chains_first(kept["acceptance"]) if adjusted else None,
        gradient=g if checked else None,
        step_size=course.step,
        refresh=course.length,
        gradients=course.gradients,
        seconds=clock.seconds,
        divergences=course.divergences,
        restarted=course.restarted,
        thin=course.thin if sampling else 1,
        history=tuple(course.history),
        exact=course.exact and adjusted,
        cut_short=course.exact and not adjusted,
        sampler="auto" if course.exact else "auto, exact=False",
        coordinates=field.chart[0].meaning if field.chart else "",
        leaders=tuple(np.flatnonzero(field.chart[0].leaders).tolist()) if field.chart else (),
        seed=field.seed,
        engine=problem.engine.name,
        interrupted=interrupted,
        reached=asked.reached(_count(course, x, keep)),
        left_behind=0.0 if walls else _left_behind(course, kept),
        outward=1.0 if walls or field.chart else _outward(course, y, pull, problem.dim),
    )
    common = {
        "name": question.name,
        "dims": question.dims,
        "coords": question.coords,
        "start_groups": _groups(problem),
    }
    if keep == "moments":
        return Posterior(stats=stats, moments=_moments(course, x), **common)
    return Posterior(stats=stats, draws=question.restore(x), x=x, **common)


def _groups(problem: Problem) -> np.ndarray | None:
    """A label for each chain, the same for those that began at one place; None if none did."""
    starts = problem.engine.to_numpy(problem.x)
    places, labels = np.unique(starts.reshape(len(starts), -1), axis=0, return_inverse=True)
    return labels.reshape(-1) if 1 < len(places) < len(starts) else None


def _outward(course: Course, x: np.ndarray, g: np.ndarray, dim: int) -> float:
    """The upper quartile of (x − x₀)·∇E/d, whose mean is 1 for every density and place x₀.

    Here x₀ is the start. Where it is far from a narrow density, there is much work of both signs.
    """
    with np.errstate(all="ignore"):
        work = ((x - course.begun) * g)[..., :dim].sum(axis=-1) * course.field.temperature
        return float(np.max(np.quantile(work, 0.75, axis=0))) / dim


def _left_behind(course: Course, kept: dict[str, np.ndarray]) -> float:
    """The least mass around places out of the draws' reach that chains were at, against theirs.

    Such a place is further out than any draw, or lower: a narrow mode may lie amid a broad one.
    """
    passed = course.passed
    if not passed.mass.size:
        return 0.0
    step = max(kept["energy"].size // SOME, 1)
    x, g, energy = (
        values.reshape(-1, *values.shape[2:])[::step]
        for values in (kept["x"], kept["g"], kept["energy"])
    )
    # Places are remembered without a chart, and where there is no temperature.
    x, energy, g = uncharted(course.field, x, energy, g)
    lowest = energy.min()
    mean, sd = x.mean(axis=0), x.std(axis=0)
    sd = np.where(sd > 0, sd, 1.0)
    with np.errstate(over="ignore", invalid="ignore"):
        away, reach = (np.sum(((part - mean) / sd) ** 2, axis=1) for part in (passed.x, x))
        share = np.exp(passed.mass - log_mass(x, g, energy).value)
    beyond = (away > reach.max()) | (passed.energy < lowest)
    return float(np.max(share[beyond & (share < MOST)], initial=0.0))


def _kept(course: Course, frozen: bool) -> dict[str, np.ndarray]:
    """Fields of the draws that count, each (n, chains, …).

    Who asks for draws gets those made since all was frozen. Who asks for an effective sample, a
    time or a number of gradients also gets those made while the parameters still moved from window
    to window, which are drawn by Metropolis too, and without `exact` those of tuning, which aren't.
    """
    archive, before = course.archive, course.adapted
    if course.phase in ("start", "burn-in"):
        return {name: np.empty((0, 0)) for name in FIELDS}
    if course.phase == "tuning" or _barely_exact(course):
        tuning = course.tuning
        skip = course.skip() if tuning.size >= 16 else tuning.size
        return {name: tuning.stack(name, skip) for name in FIELDS}
    if frozen and course.phase == "sampling" and archive.size >= FEWEST:
        return {name: archive.stack(name) for name in FIELDS}
    if course.phase == "adapting" and not course.exact:
        before = course.tuning.cut(course.skip())
    parts = [part for part in (before, archive) if part is not None and part.size]
    return {name: np.concatenate([part.stack(name) for part in parts]) for name in FIELDS}


def _barely_exact(course: Course) -> bool:
    """Whether the exact phase has only begun: the draws of tuning are all there is."""
    return course.phase == "adapting" and course.archive.size < FEWEST


def _count(course: Course, x: np.ndarray, keep: str) -> int:
    """Draws of each chain; all that were made where they went into moments."""
    if keep == "moments" and course.phase == "sampling":
        return max(int(course.archive.counts.min()) // course.thin, x.shape[1])
    return x.shape[1]


def _moments(course: Course, x) -> Moments:
    """Of every state where they are plain averages, otherwise of the draws that were held."""
    from schuss.diagnostics.vectorised import fast_ess

    sizes = fast_ess(np.swapaxes(x, 0, 1))
    field = course.field
    plain = field.temperature == 1 and not field.chart
    # A wish may be granted by draws from before all was frozen: then there are none since.
    if plain and course.phase == "sampling" and course.archive.counts.min() > 1:
        dim = x.shape[-1]
        every = course.archive.moments()
        return Moments(every.mean[:, :dim], every.variance[:, :dim], every.states, sizes)
    return Moments(x.mean(axis=1), x.var(axis=1), np.full(len(x), x.shape[1]), sizes)
