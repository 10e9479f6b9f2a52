"""Progress of long work on the terminal: a bar, or one line that is written over."""

import contextlib
import time
from collections.abc import Callable, Iterator

SILENT = 30.0
"""Seconds between two lines where they can't be written over."""


def chunks(total: int, size: int, label: str, show: bool) -> Iterator[int]:
    """Sizes that add up to `total`, at most `size` each, with a progress bar if `show`."""
    sizes = [size] * (total // size) + ([total % size] if total % size else [])
    if not show:
        yield from sizes
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=total)
        for chunk in sizes:
            yield chunk
            bar.advance(task, chunk)


@contextlib.contextmanager
def reporting(show: bool) -> Iterator[Callable[[str], None]]:
    """A function that shows a line on the terminal, in place; one that does nothing if unwanted.

    In a file or a pipe it prints a line every `SILENT` seconds.
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


def _now_and_then(console) -> Callable[[str], None]:
    last = time.monotonic()

    def report(line: str) -> None:
        nonlocal last
        if time.monotonic() - last >= SILENT:
            last = time.monotonic()
            console.print(line, soft_wrap=True, highlight=False, markup=False)

    return report
