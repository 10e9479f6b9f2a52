"""The command line that long runs share, without any library that a GPU machine may lack."""

import argparse
import math
import pathlib
import time
from collections.abc import Callable
from typing import Any

FINISHED, UNFINISHED = "finished", "not finished: give the same command again"


def run_parser(description: str, *, needs_data: bool = True) -> argparse.ArgumentParser:
    """Where the data and the work are, and how long the command may take."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", type=pathlib.Path, required=needs_data)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument(
        "--minutes", type=float, default=math.inf, help="stop after so long; go on later"
    )
    parser.add_argument("--quick", action="store_true")
    return parser


def sized_parser(description: str) -> argparse.ArgumentParser:
    """The same for runs that have a `Size`, whose iterations can be given."""
    parser = run_parser(description)
    parser.add_argument("--iterations", type=int)
    return parser


def sized(given: argparse.Namespace, full, small):
    """The size of a run, whole or quick, with the iterations that were asked for."""
    size = small if given.quick else full
    return size if given.iterations is None else size._replace(iterations=given.iterations)


def session(given: argparse.Namespace) -> dict[str, Any]:
    """Arguments of every run: when time is up, and how it tells how far it is."""
    until = time.monotonic() + 60 * given.minutes
    return {"until": until, "progress": True, "advance": timed()}


def tell_end(finished: bool) -> None:
    """Say whether the command has to be given again."""
    print(FINISHED if finished else UNFINISHED)


def timed() -> Callable[[str], None]:
    """Print what is done, with the seconds since now before it."""
    begun = time.monotonic()
    return lambda done: print(f"{time.monotonic() - begun:6.1f} s  {done}", flush=True)
