"""One line that says where a run is: phase, draws, gradients a second, worst R-hat, time left."""

import contextlib
import math
import time

from schuss.sampling.cooling import raw_draws
from schuss.sampling.wish import Clock, Wish

SILENT = 30.0
"""Seconds between two lines where they can't be written over."""


@contextlib.contextmanager
def telling(show: bool):
    """A function that shows a line on the terminal, in place; one that does nothing if unwanted.

    In a file or a pipe it is a line now and then, so that a long run leaves word of itself.
    """
    if not show:
        yield lambda line: None
        return
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console(stderr=True)
    if not (console.is_terminal or console.is_jupyter):
        yield _now_and_then(console)
        return
    with Live(console=console, refresh_per_second=8, transient=True) as live:
        yield lambda line: live.update(Text(line))


def _now_and_then(console):
    last = time.monotonic()

    def tell(line: str) -> None:
        nonlocal last
        if time.monotonic() - last >= SILENT:
            last = time.monotonic()
            console.print(line, soft_wrap=True, highlight=False, markup=False)

    return tell


def line(course, wish: Wish, clock: Clock) -> str:
    """What the line says."""
    parts = [f"{course.phase:<8}"]
    if course.phase == "sampling":
        done = f"{_drawn(course)}" + (f"/{wish.draws}" if wish.draws else "")
        parts.append(f"{done} draws × {course.chains}")
    parts.append(f"{course.total:,} gradients, {course.total / max(clock.total, 1e-9):,.0f}/s")
    if math.isfinite(course.ess):
        parts.append(f"R-hat {course.rhat:.3f}  ESS {course.ess:.0f}")
    left = remaining(course, wish, clock)
    if left is not None:
        parts.append(f"{left:.0f} s left")
    return "  ".join(parts)


def _drawn(course) -> int:
    """Draws that the states so far are good for."""
    return course.archive.size // raw_draws(course.field.temperature)


def remaining(course, wish: Wish, clock: Clock) -> float | None:
    """Seconds left, where that can be told."""
    if wish.seconds is not None:
        return max(wish.seconds - clock.total, 0.0)
    if wish.gradients is not None:
        return clock.total * max(wish.gradients / max(course.total, 1) - 1, 0.0)
    if course.phase != "sampling" or "sampling" not in clock.seconds:
        return None
    done, wanted = _drawn(course), wish.draws
    if wish.ess is not None:
        done, wanted = course.ess, wish.ess
    if not wanted or not done > 0:
        return None
    return clock.seconds["sampling"] * max(wanted / done - 1, 0.0)
