"""A run on disk: the whole of its state after every window, and its draws as they come."""

import contextlib
import importlib.metadata
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from schuss.sampling.archive import FIELDS, chains_first
from schuss.sampling.course import Course
from schuss.sampling.question import Question
from schuss.sampling.rounds import Rounds


@contextlib.contextmanager
def saving(path: Any, rounds: Rounds, question: Question, settings: dict) -> Iterator[Callable]:
    """A function that commits the run, after taking up one that was begun before."""
    if path is None:
        yield lambda: None
        return
    from schuss.checkpoint import Checkpoint
    from schuss.checkpoint.errors import understood

    with Checkpoint.open(path, identity(rounds.course, question, settings)) as store:
        committed = 0
        found = store.load()
        if found is not None:
            with understood(path):
                committed = _take_up(rounds, *found)

        def save():
            nonlocal committed
            committed = _commit(store, rounds, committed)

        yield save


def identity(course: Course, question: Question, settings: dict) -> dict[str, Any]:
    """What makes two runs the same run: the model where it starts, and all settings."""
    from schuss.checkpoint import fingerprint

    # At places that neither the seed nor the number of chains has a part in.
    place = np.random.default_rng(0).standard_normal(course.x.shape[1])
    places = [np.broadcast_to(scale * place, course.x.shape) for scale in (0.1, 1.0)]
    energies = [course.field.evaluate(x)[0][:1] for x in places]
    problem = question.problem
    return {
        "model": fingerprint(np.concatenate(energies), problem.dim),
        "start": fingerprint(course.field.evaluate(course.x)[0], problem.dim),
        "dim": problem.dim,
        "chains": course.chains,
        "seed": course.field.seed,
        "engine": problem.engine.name,
        "dtype": str(problem.x.dtype),
        "schuss": importlib.metadata.version("schuss"),
        **settings,
    }


def _commit(store, rounds: Rounds, committed: int) -> int:
    """In the last phase draws are appended; before, all there is is part of the state."""
    archive = rounds.course.archive
    if rounds.course.phase != "sampling" or archive.limit is not None:
        store.commit(rounds.pack(), {})
        return 0
    size = archive.size
    rows = {
        name: chains_first(archive.stack(name, committed)) for name in FIELDS if size > committed
    }
    store.commit(rounds.pack(skip=size), rows)
    return size


def _take_up(rounds: Rounds, state: dict, rows: dict) -> int:
    rounds.unpack(state, rows or None)
    return rounds.course.archive.size if rows else 0
