"""The command line that long runs share, without any library that a GPU machine may lack."""

import argparse
import math
import pathlib
import time
from collections.abc import Callable

from schuss.ebm import checkpoint
from schuss.ebm.trainer import Trainer

SPENT = "seconds"
FINISHED, UNFINISHED = "finished", "not finished: give the same command again"


def run_parser(description: str) -> argparse.ArgumentParser:
    """Where the data and the work are, and how long the run is."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--iterations", type=int)
    parser.add_argument(
        "--minutes", type=float, default=math.inf, help="stop after so long; go on later"
    )
    parser.add_argument("--quick", action="store_true")
    return parser


def sized(given: argparse.Namespace, full, small):
    """The size of a run, whole or quick, with the iterations that were asked for."""
    size = small if given.quick else full
    return size if given.iterations is None else size._replace(iterations=given.iterations)


def train(trainer: Trainer, until: float) -> bool:
    """Go on from the checkpoint, if there is one, to the end of the run; False where time is up.

    `until` is on the clock of time.monotonic. `spent` tells the seconds of all calls together.
    """
    assert trainer.folder is not None
    before, begun = spent(trainer.folder), time.monotonic()
    if checkpoint.exists(trainer.folder):
        trainer.resume()
    try:
        while trainer.iteration < trainer.iterations:
            left = (until - time.monotonic()) / 60
            if left <= 0:
                return False
            trainer.fit(minutes=None if math.isinf(left) else left)
    finally:
        trainer.folder.mkdir(parents=True, exist_ok=True)
        (trainer.folder / SPENT).write_text(f"{before + time.monotonic() - begun}\n")
    return time.monotonic() < until


def spent(folder: pathlib.Path) -> float:
    """Seconds of training so far."""
    try:
        return float((folder / SPENT).read_text())
    except FileNotFoundError:
        return 0.0


def timed() -> Callable[[str], None]:
    """Print what is done, with the seconds since now before it."""
    begun = time.monotonic()
    return lambda done: print(f"{time.monotonic() - begun:6.1f} s  {done}", flush=True)
