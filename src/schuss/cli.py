"""The command line: `schuss demo`, `schuss reproduce`, `schuss targets`, `schuss --version`."""

import importlib.metadata
import inspect
import pathlib
from typing import Annotated

import typer

app = typer.Typer(
    help="Sample unnormalised densities with Energy Sampling Hamiltonian dynamics.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)

PICTURES = (".png", ".pdf", ".svg")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"schuss {importlib.metadata.version('schuss')}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which.")
    ] = False,
) -> None:
    """Options of the program itself."""


def _picture(out: pathlib.Path) -> pathlib.Path:
    if out.suffix not in PICTURES:
        raise typer.BadParameter(
            f"must end in one of {', '.join(PICTURES)}, got {str(out)!r}; pass e.g. --out demo.png"
        )
    return out


@app.command()
def demo(
    out: Annotated[
        pathlib.Path, typer.Option(help="Where the picture goes.", callback=_picture)
    ] = pathlib.Path("schuss-demo.png"),
) -> None:
    """ESH against its rivals on the paper's mixture: a table, a verdict and a picture."""
    from schuss.demo import run

    run(out)


@app.command()
def reproduce(
    names: Annotated[list[str], typer.Argument(help="Items of the paper, or all.")],
    out: Annotated[
        pathlib.Path, typer.Option(help="Where reproduction.md and its folder go.")
    ] = pathlib.Path("docs"),
    quick: Annotated[bool, typer.Option(help="Tiny sizes: a smoke run.")] = False,
    fresh: Annotated[bool, typer.Option(help="Compute again what is there already.")] = False,
    seed: Annotated[int, typer.Option(help="Of all random numbers.")] = 0,
) -> None:
    """Rebuild tables and figures of the paper, and the page that shows them."""
    from schuss.paper import ITEMS
    from schuss.paper.item import Settings
    from schuss.paper.reproduce import reproduce as rebuild

    known = [item.name for item in ITEMS]
    unknown = [name for name in names if name not in (*known, "all")]
    if unknown:
        raise typer.BadParameter(
            f"names must be among all, {', '.join(known)}; got {', '.join(unknown)}"
        )
    wanted = known if "all" in names else names
    if not rebuild(ITEMS, wanted, out, Settings(quick, seed), fresh=fresh):
        raise typer.Exit(130)


@app.command()
def targets() -> None:
    """The test energies, their dimension and what is known of them."""
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from schuss.targets import TARGETS

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("name", no_wrap=True)
    for heading in ("dim", "E[E]", "log Z"):
        table.add_column(escape(heading), justify="right", no_wrap=True)
    table.add_column("exact", justify="center")
    table.add_column("what it is")
    for name, make in TARGETS.items():
        target = make()
        known = target.truth
        table.add_row(
            name,
            str(target.dim),
            _number(known and known.energy),
            _number(known and known.log_z),
            "yes" if target.sample else "–",
            escape((inspect.getdoc(make) or "").splitlines()[0]),
        )
    console = Console()
    console.print(table)
    console.print("exact: whether samples can be drawn exactly. schuss.targets.get(name) has them.")


def _number(value: float | None) -> str:
    return "–" if value is None else f"{round(value, 4) + 0.0:g}"


if __name__ == "__main__":
    app()
