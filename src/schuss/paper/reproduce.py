"""Rebuild items of the paper one after the other, and the page that shows them."""

import dataclasses
import pathlib
import time
from collections.abc import Sequence

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from schuss.paper import page, store
from schuss.paper.item import Item, Settings
from schuss.plotting import style


def reproduce(
    items: Sequence[Item],
    wanted: Sequence[str],
    out: pathlib.Path,
    settings: Settings,
    *,
    fresh: bool = False,
    redraw: bool = False,
    console: Console | None = None,
) -> bool:
    """Compute the wanted items where they aren't there yet, draw them, write `reproduction.md`.

    The page and `claims.json` are about all items that are in `out`. True when everything was
    finished; an interruption keeps what is and says so. `redraw` draws the pictures of the others
    anew from their results.
    """
    console = console or Console()
    folder = out / "reproduction"
    folder.mkdir(parents=True, exist_ok=True)
    if settings.quick:
        _check_quick(wanted, folder)
    finished = True
    try:
        for item in items:
            if item.name in wanted:
                _one(item, folder, settings, fresh, console)
            elif redraw and (stored := store.load(folder, item.name)):
                pictures = _drawn(item, stored.values, folder)
                store.save(folder, dataclasses.replace(stored, pictures=pictures))
    except KeyboardInterrupt:
        finished = False
        console.print("[yellow]interrupted[/]: what was finished is kept")
    where = page.write(items, out, folder)
    console.print(f"the page is {where}")
    return finished


def _check_quick(wanted: Sequence[str], folder: pathlib.Path) -> None:
    """A smoke run never takes the place of a full one."""
    there = {name: store.load(folder, name) for name in wanted}
    full = [name for name, stored in there.items() if stored and not stored.settings.quick]
    if full:
        raise ValueError(
            f"out holds full runs of {', '.join(full)}, which a smoke run would replace; pass "
            "another folder, e.g. --out quick"
        )


def _drawn(item: Item, values, folder: pathlib.Path) -> list[str]:
    with style():
        return item.draw(values, folder)


def _one(item: Item, folder, settings, fresh, console):
    stored = None if fresh else store.load(folder, item.name)
    if stored is not None and stored.settings == settings.without_places():
        console.print(f"{item.name}: as computed before in {stored.seconds:.1f} s")
        return
    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(item.name, total=item.parts(settings))

        def advance(done: str) -> None:
            bar.update(task, advance=1, description=f"{item.name}: {done}")

        begun = time.process_time()
        values = item.compute(settings, advance)
        # What was computed in another place, or in parts, says itself how long it took.
        seconds = values.pop("seconds", time.process_time() - begun)
    pictures = _drawn(item, values, folder)
    versions = store.versions()
    result = store.Result(item.name, settings.without_places(), versions, seconds, pictures, values)
    store.save(folder, result)
    smoke = "a smoke run, " if settings.quick else ""
    console.print(f"{item.name}: {smoke}{seconds:.1f} s")
