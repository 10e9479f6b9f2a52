"""Training under a clock: it stops when time is up, and a later call goes on."""

import math
import pathlib
import time

from schuss.ebm import checkpoint
from schuss.ebm.trainer import Trainer

SPENT = "seconds"


def fit_until(trainer: Trainer, goal: int, until: float) -> bool:
    """Train up to the iteration `goal`; False where `until`, on time.monotonic's clock, is past."""
    while trainer.iteration < goal:
        left = (until - time.monotonic()) / 60
        if left > 0:
            trainer.fit(goal - trainer.iteration, None if math.isinf(left) else left)
        if time.monotonic() > until:
            return False
    return True


def train(trainer: Trainer, until: float) -> bool:
    """Go on from the checkpoint, if there is one, to the end of the run; False where time is up.

    `spent` tells the seconds of all calls together.
    """
    assert trainer.folder is not None
    before, begun = spent(trainer.folder), time.monotonic()
    if checkpoint.exists(trainer.folder):
        trainer.resume()
    try:
        done = fit_until(trainer, trainer.iterations, until)
    finally:
        trainer.folder.mkdir(parents=True, exist_ok=True)
        (trainer.folder / SPENT).write_text(f"{before + time.monotonic() - begun}\n")
    return done and time.monotonic() < until


def spent(folder: pathlib.Path) -> float:
    """Seconds of training so far."""
    try:
        return float((folder / SPENT).read_text())
    except FileNotFoundError:
        return 0.0
