"""The command line that long runs share, without any library that a GPU machine may lack."""

import argparse
import pathlib
import time
from collections.abc import Callable


def run_parser(description: str) -> argparse.ArgumentParser:
    """Where the data and the work are, and how long the run is."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--iterations", type=int)
    parser.add_argument("--quick", action="store_true")
    return parser


def sized(given: argparse.Namespace, full, small):
    """The size of a run, whole or quick, with the iterations that were asked for."""
    size = small if given.quick else full
    return size if given.iterations is None else size._replace(iterations=given.iterations)


def timed() -> Callable[[str], None]:
    """Print what is done, with the seconds since now before it."""
    begun = time.monotonic()
    return lambda done: print(f"{time.monotonic() - begun:6.1f} s  {done}", flush=True)
