"""Progress of a training run: a bar in a terminal, lines elsewhere."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

import numpy as np

from schuss.ebm.history import STATISTICS

PAUSE = 15.0
"""Seconds between two lines where there is no terminal."""


LEGEND = (
    "E₊, E₋ energies of data and of negatives, which should stay together · δ turn of a sampler "
    "step, .05 to .5 (Langevin .3 to 2) · |∇| of the loss · ΔH energy error of the sampler · "
    "frozen chains"
)
"""What the numbers of a line are."""


def line(row: np.ndarray, speed: float) -> str:
    """The numbers of an iteration in words."""
    now = dict(zip(STATISTICS, row, strict=True))
    parts = [
        f"E₊ {now['energy_data']:.3g}",
        f"E₋ {now['energy_negative']:.3g}",
        f"δ {now['delta']:.2g}",
        f"|∇| {now['grad_norm']:.2g}",
    ]
    if np.isfinite(now["energy_error"]):
        parts.append(f"ΔH {now['energy_error']:.2g}")
    if np.isfinite(now["accuracy"]):
        parts.append(f"accuracy {now['accuracy']:.2f}")
    return "  ".join([*parts, f"frozen {100 * now['frozen']:.0f} %", f"{speed:.0f} images/s"])


@contextlib.contextmanager
def watching(show: bool, done: int, total: int) -> Iterator[Callable]:
    """A function of (iteration, row, speed) to be called at each look."""
    if not show:
        yield lambda iteration, row, speed: None
        return
    if not sys.stderr.isatty():
        said = [-PAUSE]
        print(LEGEND, flush=True)

        def say(iteration, row, speed):
            if time.monotonic() - said[0] > PAUSE or iteration == total:
                said[0] = time.monotonic()
                print(f"{iteration}/{total}  {line(row, speed)}", flush=True)

        yield say
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        MofNCompleteColumn(),
        BarColumn(20),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    console = Console(stderr=True)
    console.print(LEGEND, style="dim", highlight=False)
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("", total=total, completed=done)
        yield lambda iteration, row, speed: bar.update(
            task, completed=iteration, description=line(row, speed)
        )
