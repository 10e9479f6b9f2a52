"""A course as arrays and plain values by name, and a course made of them again."""

from typing import Any

import numpy as np

from schuss.coordinates import Diagonal, LowRank
from schuss.core import adaptive, persistent
from schuss.sampling.archive import Archive
from schuss.sampling.course import Course
from schuss.sampling.places import Places

PLAIN = (
    *("phase", "window", "x", "u", "energy", "g", "step", "length", "gradients", "history"),
    *("adjusted", "refits", "restarted", "ess", "rhat", "divergences", "accepted", "sizes", "thin"),
    *("local", "knee", "long", "tried", "judged", "lowest", "lowest_x", "steps_tuning"),
    *("begun", "descent"),
)
"""What a run knows besides its draws, by name."""


def pack(course: Course, skip: int = 0) -> dict[str, Any]:
    """All that a run knows, as arrays and plain values; draws without the first `skip`."""
    packed: dict[str, Any] = {name: getattr(course, name) for name in PLAIN}
    packed["rng"] = course.rng.bit_generator.state
    packed["metric"] = type(course.metric).__name__
    packed.update({f"metric.{k}": part for k, part in enumerate(course.metric)})
    packed.update({f"passed.{k}": part for k, part in enumerate(course.passed)})
    host = course.field.engine.to_numpy
    state = () if course.state is None else tuple(host(part) for part in course.state)
    packed["state"] = len(state)
    packed.update({f"state.{k}": part for k, part in enumerate(state)})
    packed["same"] = course.archive is course.tuning
    packed["before"] = course.adapted is not None
    if course.adapted is not None:
        packed.update(course.adapted.pack("adapted"))
    packed.update(course.tuning.pack("tuning"))
    if not packed["same"]:
        packed.update(course.archive.pack("archive", skip))
    return packed


def unpack(course: Course, packed: dict[str, Any], rows: dict[str, np.ndarray] | None) -> None:
    """Make a course the run that was packed."""
    for name in PLAIN:
        setattr(course, name, packed[name])
    course.rng.bit_generator.state = packed["rng"]
    kind = {"Diagonal": Diagonal, "LowRank": LowRank}[packed["metric"]]
    course.metric = kind(*(packed[f"metric.{k}"] for k in range(len(kind._fields))))
    course.passed = Places(*(packed[f"passed.{k}"] for k in range(len(Places._fields))))
    parts = [packed[f"state.{k}"] for k in range(packed["state"])]
    kind = persistent.State if course.exactly else adaptive.State
    course.state = kind(*parts) if parts else None
    course.tuning = Archive.unpack(packed, "tuning")
    course.adapted = Archive.unpack(packed, "adapted") if packed["before"] else None
    same = packed["same"]
    course.archive = course.tuning if same else Archive.unpack(packed, "archive", rows)
