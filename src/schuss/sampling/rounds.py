"""Better coordinates on the way: a run that turns out to be in a funnel goes on outside of it.

A run's own draws and gradients tell whether the others are normal once one or two coordinates are
given, whether a few set the widths of many, or whether some lie along parabolas over others. The
first is looked for as soon as there are draws enough to tell, all of them when the gradients have
doubled since the last look, for as long as parameters may still change. This costs no gradient.
Where a map is found that leaves much less to explain than the present one, the run begins again in
its coordinates, from where the chains are.

A run at a temperature goes on without it where the weights that undo it hang on few draws: where
the hot density has more room than the cold one, as along heavy tails, or a mode too narrow for it.
"""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from schuss.coordinates import Conditional, Curved, Hierarchical
from schuss.sampling import packing
from schuss.sampling.cooling import hang_on_few
from schuss.sampling.course import Course
from schuss.sampling.field import Field
from schuss.sampling.places import Places
from schuss.tuning import conditional, curvature, reparametrise
from schuss.tuning.local_mass import log_mass

FIRST_LOOK, MOST = 2000, 4
"""Gradients before the first look, and how often coordinates change at most."""

LEAST_DRAWS = 400
"""Draws of all chains below which nothing is decided."""

NEAR = 1e-3
"""The distance, in units of the chains' spread, of places that tell how wide a mode is."""

LEAST_GAIN = 0.2
"""The share of the loss that a new map must take away from the present one's."""

Map = Conditional | Hierarchical | Curved

MAPS = {Conditional: conditional, Hierarchical: reparametrise, Curved: curvature}
"""The kinds of maps, the first that is found taken, and where they are fitted."""

EXACT = (Conditional, Curved)
"""Those that leave next to nothing where they are right: what they leave tells where they aren't.
"""

KINDS = {kind.__name__: kind for kind in MAPS}


class Rounds:
    """A run, whatever coordinates it is in."""

    def __init__(self, course: Course):
        self.course = course
        self.next, self.changes = 0, 0

    def run(self, **options) -> Iterator[bool]:
        """Go on, as `Course.run` does, in better coordinates where there are some."""
        steps = self.course.run(**options)
        while True:
            ended = next(steps)
            better = self.better(self.course) if ended else None
            if better is not None:
                self.course, steps = better, better.run(**options)
            yield ended

    def pack(self, skip: int = 0) -> dict[str, Any]:
        """All that the run knows, as arrays and plain values; draws without the first `skip`."""
        frame = _present(self.course)
        packed = {"next": self.next, "changes": self.changes}
        packed["charted"] = "" if frame is None else type(frame).__name__
        packed["temperature"], packed["leg"] = self.course.field.temperature, self.course.field.leg
        if frame is not None:
            packed.update({f"chart.{k}": part for k, part in enumerate(frame)})
        return packed | packing.pack(self.course, skip)

    def unpack(self, packed: dict[str, Any], rows: dict[str, np.ndarray] | None) -> None:
        """Be the run that was packed."""
        self.next, self.changes = packed["next"], packed["changes"]
        field = self.course.field if packed["temperature"] != 1 else self.course.field.cold()
        if packed["charted"]:
            kind = KINDS[packed["charted"]]
            frame = kind(*(packed[f"chart.{k}"] for k in range(len(kind._fields))))
            field = dataclasses.replace(field, chart=(frame,))
        if packed["leg"]:
            field = dataclasses.replace(field, leg=packed["leg"])
            self.course = _anew(self.course, field, self.course.x)
        packing.unpack(self.course, packed, rows)

    def better(self, course: Course) -> Course | None:
        """The run in better coordinates or cold, or None where it should go on as it is."""
        if course.phase not in ("tuning", "adapting"):
            return None
        if course.field.temperature != 1:
            return _cooled(course) if _thin(course) else None
        if course.total < self.next or self.changes >= MOST:
            return None
        y, g = _draws(course, "x", "g", look=course.witnesses.of)
        frame = _present(course)
        kinds = _kinds(frame, course.total, *y.shape)
        if not kinds:
            return None
        self.next = 2 * course.total if course.total >= FIRST_LOOK else FIRST_LOOK
        x = y if frame is None else frame.forward(np, y)
        g = g if frame is None else frame.push(np, y, g)
        rng = np.random.default_rng([course.field.seed, 11, self.changes])
        found = _best_map(x, g, frame, kinds, rng)
        if found is frame:
            return None
        self.changes += 1
        # A worse map is replaced early: draws in the new coordinates are worth more than the old.
        self.next = course.total + FIRST_LOOK
        return _begin_again(course, frame, found)


def _present(course: Course) -> Map | None:
    return course.field.chart[0] if course.field.chart else None


def _kinds(frame: Map | None, total: int, draws: int, dim: int) -> list[type]:
    """The maps to look for after so many gradients, with so many draws."""
    early, late = draws >= conditional.least(dim), total >= FIRST_LOOK and draws >= LEAST_DRAWS
    others = [Hierarchical, Curved] if frame is None else [type(frame)]
    return list(dict.fromkeys([Conditional] * early + others * late))


def _best_map(x, g, frame, kinds, rng) -> Map | None:
    """The present map, or what is better: the first of any kind, one that gains much, or none."""
    wrong = isinstance(frame, EXACT) and MAPS[type(frame)].wrong(x, g, frame)
    if isinstance(frame, Conditional) and not wrong:
        return frame
    for kind in kinds:
        found = MAPS[kind].fit(x, g, rng)
        if found is not None and (wrong or _gains(x, g, frame, found)):
            return found
    return None if wrong else frame


def _draws(course: Course, *names: str, look: Callable = lambda values: values) -> list[np.ndarray]:
    """Those of tuning that count and those of the exact phase, in order of time, flat."""
    skip = course.skip() if course.tuning.size >= 16 else course.tuning.size
    parts = [[look(course.tuning.stack(name, skip))] for name in names]
    if course.archive is not course.tuning and course.archive.size:
        for name, part in zip(names, parts, strict=True):
            part.append(look(course.archive.stack(name)))
    joined = (np.concatenate(part) for part in parts)
    return [part.reshape(-1, *part.shape[2:]) for part in joined]


def _thin(course: Course) -> bool:
    """Whether the draws of a hot run are too few where the cold density is."""
    (energy,) = _draws(course, "energy")
    if len(energy) < LEAST_DRAWS:
        return False
    return hang_on_few(energy, course.lowest, course.field.temperature)


def _gains(x, g, frame, found) -> bool:
    if frame is None:
        return True
    with np.errstate(all="ignore"):
        before, after = (MAPS[type(found)].loss(x, g, one) for one in (frame, found))
    return after < (1 - LEAST_GAIN) * before - reparametrise.LEAST_TOTAL


def _begin_again(course: Course, frame, found) -> Course:
    x = course.x if frame is None else frame.forward(np, course.x)
    field = dataclasses.replace(course.field, chart=() if found is None else (found,))
    return _continued(course, field, x if found is None else found.inverse(np, x))


def _cooled(course: Course) -> Course:
    """The run without its temperature, one of its chains from the lowest place met."""
    x, cold = course.x.copy(), course.field.cold()
    x[np.argmax(course.energy)] = course.lowest_x
    new = _continued(course, cold, x, descent=True)
    # What is typical there, should the chain that begins there be thrown out at once.
    near = course.lowest_x + NEAR * np.std(course.x, axis=0) * course.u
    energy, g = cold.evaluate(near)
    mass, error = log_mass(near, g, energy)
    new.gradients["pilot"] += course.chains
    typical = np.array([energy.min() + course.dim / 2])
    new.passed = Places(course.lowest_x[None], typical, np.array([mass - error]))
    return new


def _continued(course: Course, field: Field, x: np.ndarray, descent: bool = False) -> Course:
    """A run in another field that keeps count of what this one took."""
    field = dataclasses.replace(field, leg=course.field.leg + 1)
    new = _anew(course, field, x, descent)
    new.gradients = {"pilot": course.total} | new.gradients
    new.history = list(course.history)
    new.passed = course.passed
    return new


def _anew(course: Course, field: Field, x: np.ndarray, descent: bool = False) -> Course:
    return Course(field, x, exact=course.exact, descent=descent, freeze=course.freeze)
