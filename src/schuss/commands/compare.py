"""`schuss compare`: a table in the terminal, and a page, a picture or numbers on disk."""

import json
import pathlib

from rich.console import Console
from rich.text import Text

from schuss.loading import LoadError, load

PICTURES = (".png", ".pdf", ".svg")


def run(
    what: str,
    samplers: str,
    out: pathlib.Path,
    *,
    gradients: int,
    seeds: int = 1,
    seed: int = 0,
    init: str | None = None,
    dim: int | None = None,
    energy: bool = False,
    console: Console | None = None,
) -> bool:
    """Compare, print and write; False if it was interrupted."""
    from schuss.commands.sample import start
    from schuss.comparison import compare, table
    from schuss.comparison.samplers import names

    console = console or Console()
    chosen = names(samplers)
    check(out)
    loaded = load(what, energy=energy)
    arguments = loaded.arguments | start(loaded, init, dim)
    with console.status("…") as status:
        comparison = compare(
            arguments, chosen, gradients, seeds=seeds, seed=seed, tell=status.update
        )
    console.print(table.terminal(comparison))
    for line in table.caption(comparison):
        console.print(Text(line, "dim"))
    for note in table.notes(comparison):
        console.print(Text(note, "red"))
    write(comparison, out)
    console.print(Text(f"written: {out}"), soft_wrap=True)
    if not comparison.finished:
        console.print("[yellow]interrupted[/]: what was finished is shown")
    return comparison.finished


def check(out: pathlib.Path) -> None:
    """Refuse what can't be written, before there is work to lose."""
    if out.suffix not in (".html", ".json", *PICTURES):
        raise LoadError(
            f"out must end in .html, .json or one of {', '.join(PICTURES)}, got {str(out)!r}; pass "
            "e.g. --out compare.html"
        )
    if not out.parent.is_dir():
        raise LoadError(
            f"out must be in a folder that exists, got {str(out)!r}; create {str(out.parent)!r}"
        )


def write(comparison, out: pathlib.Path) -> None:
    """A page, numbers or a picture, by the ending."""
    from schuss.comparison import figure, numbers, page
    from schuss.plotting import style

    if out.suffix == ".html":
        out.write_text(page.page(comparison), encoding="utf-8")
    elif out.suffix == ".json":
        text = json.dumps(numbers.plain(comparison), indent=1, ensure_ascii=False, allow_nan=False)
        out.write_text(text + "\n", encoding="utf-8")
    else:
        with style():
            figure.curves(comparison).savefig(out)
