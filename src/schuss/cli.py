"""The command line: `schuss sample`, `compare`, `demo`, `reproduce`, `ebm` and `targets`.

Nothing heavy is imported before a command needs it. Exit codes: 0, 1 where a verdict fails, 2 for
bad input and for errors in a user's file, 130 after an interruption.
"""

import contextlib
import importlib.metadata
import inspect
import pathlib
import traceback
from collections.abc import Iterator
from typing import Annotated

import typer
from typer.core import TyperCommand

from schuss import user_code
from schuss.keywords import unknown

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


WHAT = typer.Argument(
    help="A target's name (see schuss targets), or FILE.py:NAME of a JAX log-density, a schuss "
    "Target or Model, a PyMC model or a NumPyro function.",
    show_default=False,
)


@contextlib.contextmanager
def _plainly() -> Iterator[None]:
    """Bad input as one sentence; an error in the user's own code with his part of the traceback."""
    try:
        yield
    except KeyboardInterrupt as stop:
        typer.echo(str(stop) or "interrupted", err=True)
        raise typer.Exit(130) from None
    except typer.Exit:
        raise
    except Exception as error:
        ours, theirs = _is_ours(error), user_code.own_error(error)
        if theirs is None and not ours:
            raise
        if theirs is None:
            raise typer.BadParameter(str(error)) from None
        told = [f"Error: {error}\n"] if ours else traceback.format_exception_only(theirs)
        frames = traceback.format_list(user_code.own_frames(theirs))
        lines = ["Traceback (most recent call last):\n", *frames, *told]
        typer.echo("".join(lines), nl=False, err=True)
        raise typer.Exit(2) from None


def _is_ours(error: Exception) -> bool:
    """Whether an error is a sentence of this library's about its input."""
    frames = traceback.extract_tb(error.__traceback__)
    known = isinstance(error, ValueError | TypeError | OSError | ImportError)
    return known and bool(frames) and user_code.is_ours(pathlib.Path(frames[-1].filename))


class _Explained(TyperCommand):
    """A command that explains options which it doesn't take."""

    def parse_args(self, ctx, args):
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            option = getattr(error, "option_name", None)
            if option is None:
                raise
            name = option.lstrip("-").replace("-", "_")
            known = [str(parameter.name) for parameter in self.params]
            raise typer.BadParameter(unknown(f"schuss {self.name}", name, known)) from None


@app.command(cls=_Explained)
def sample(
    what: Annotated[str, WHAT],
    init: Annotated[
        str | None, typer.Option(help='Where to start: "0,0,0", or a .npy file.')
    ] = None,
    dim: Annotated[
        int | None, typer.Option(help="Start at N(0, 1) in so many dimensions.", min=1)
    ] = None,
    energy: Annotated[bool, typer.Option("--energy", help="The function is −log p.")] = False,
    draws: Annotated[int | None, typer.Option(help="Of each chain; 1000.")] = None,
    ess: Annotated[float | None, typer.Option(help="Until this effective sample size.")] = None,
    seconds: Annotated[float | None, typer.Option(help="For so long.")] = None,
    gradients: Annotated[int | None, typer.Option(help="Of all chains, tuning included.")] = None,
    chains: Annotated[int | None, typer.Option(help="How many; 4.")] = None,
    seed: Annotated[int, typer.Option(help="Of all random numbers.")] = 0,
    exact: Annotated[
        bool, typer.Option("--exact/--no-exact", help="Without bias, or quicker.")
    ] = True,
    checkpoint: Annotated[
        pathlib.Path | None,
        typer.Option(help="A folder, e.g. run.zarr: a killed run goes on from there."),
    ] = None,
    out: Annotated[
        pathlib.Path, typer.Option(help="OUT.html is the report, OUT.nc the draws.")
    ] = pathlib.Path("run"),
) -> None:
    """Draw from a posterior, tuned by itself: a summary, a report and the draws.

    The exit code is 1 if the verdict fails: the draws are written, but can't be trusted.
    """
    with _plainly():
        from schuss.commands.sample import run

        post = run(
            what,
            out,
            init=init,
            dim=dim,
            energy=energy,
            draws=draws,
            ess=ess,
            seconds=seconds,
            gradients=gradients,
            chains=chains,
            seed=seed,
            exact=exact,
            checkpoint=checkpoint,
        )
    if post.stats.interrupted:
        raise typer.Exit(130)
    if not post.verdict.converged:
        raise typer.Exit(1)


@app.command(cls=_Explained)
def compare(
    what: Annotated[str, WHAT],
    samplers: Annotated[
        str,
        typer.Option(
            help="Between commas: auto, unadjusted, nuts, mclmc, mams, nutpie, and with a step of "
            "your own (hmc:0.1) ula, mala, hmc, esh."
        ),
    ] = "auto,unadjusted,nuts,mclmc",
    gradients: Annotated[
        int, typer.Option(help="For each run, all chains and tuning included.", min=100)
    ] = 20_000,
    seeds: Annotated[int, typer.Option(help="Runs of each sampler.", min=1)] = 1,
    seed: Annotated[int, typer.Option(help="The first of them.", min=0)] = 0,
    init: Annotated[
        str | None, typer.Option(help='Where to start: "0,0,0", or a .npy file.')
    ] = None,
    dim: Annotated[
        int | None, typer.Option(help="Start at N(0, 1) in so many dimensions.", min=1)
    ] = None,
    energy: Annotated[bool, typer.Option("--energy", help="The function is −log p.")] = False,
    out: Annotated[
        pathlib.Path, typer.Option(help="A page (.html), a picture (.png, …) or numbers (.json).")
    ] = pathlib.Path("compare.html"),
) -> None:
    """Samplers on one target at equal cost: a table, curves and a page."""
    with _plainly():
        from schuss.commands.compare import run

        finished = run(
            what,
            samplers,
            out,
            gradients=gradients,
            seeds=seeds,
            seed=seed,
            init=init,
            dim=dim,
            energy=energy,
        )
    if not finished:
        raise typer.Exit(130)


@app.command(
    add_help_option=False,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)
def ebm(context: typer.Context) -> None:
    """Train neural energies, and sample them (PyTorch)."""
    try:
        from schuss.ebm.cli import ebm_app

        ebm_app(context.args, prog_name="schuss ebm")
    except ImportError as error:
        raise typer.BadParameter(
            f"schuss ebm needs PyTorch ({error}); run pip install 'schuss[torch]'"
        ) from None


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
    names: Annotated[
        list[str],
        typer.Argument(
            help="Items of the paper, all of those that need no GPU, or page for the page and its "
            "pictures from the results that are there."
        ),
    ],
    out: Annotated[
        pathlib.Path, typer.Option(help="Where reproduction.md and its folder go.")
    ] = pathlib.Path("docs"),
    quick: Annotated[bool, typer.Option(help="Tiny sizes: a smoke run.")] = False,
    fresh: Annotated[bool, typer.Option(help="Compute again what is there already.")] = False,
    seed: Annotated[int, typer.Option(help="Of all random numbers.")] = 0,
    seeds: Annotated[
        int, typer.Option(help="Networks trained with each sampler, for the neural items.", min=1)
    ] = 3,
    data: Annotated[
        pathlib.Path | None, typer.Option(help="Where the images are, for the neural items.")
    ] = None,
    work: Annotated[
        pathlib.Path | None, typer.Option(help="Where long runs leave what they have so far.")
    ] = None,
) -> None:
    """Rebuild tables and figures of the paper, and the page that shows them."""
    from schuss.paper import ITEMS, NEURAL
    from schuss.paper.item import Settings
    from schuss.paper.reproduce import reproduce as rebuild

    every = [item.name for item in ITEMS]
    known = [*every, *(item.name for item in NEURAL)]
    unknown = [name for name in names if name not in (*known, "all", "page")]
    if unknown:
        raise typer.BadParameter(
            f"names must be among all, page, {', '.join(known)}; got {', '.join(unknown)}"
        )
    if data is not None and not data.exists():
        raise typer.BadParameter(f"--data must be a folder or a file that exists, got {data}")
    wanted = [name for name in known if name in names or ("all" in names and name in every)]
    settings = Settings(quick, seed, seeds=seeds, data=data, work=work)
    with _plainly():
        finished = rebuild(
            (*ITEMS, *NEURAL), wanted, out, settings, fresh=fresh, redraw="page" in names
        )
    if not finished:
        raise typer.Exit(130)


@app.command()
def targets() -> None:
    """The test energies, their dimension and what is known of them."""
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from schuss.targets import TARGETS, posteriors

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("name", no_wrap=True)
    for heading in ("dim", "E[E]", "log Z"):
        table.add_column(escape(heading), justify="right", no_wrap=True)
    table.add_column("exact", justify="center")
    table.add_column("what it is")

    def described(name, make):
        # A posterior's function tells of its coordinates, its module what it is.
        return make if name in TARGETS else inspect.getmodule(inspect.unwrap(make))

    for name, make in (TARGETS | posteriors.POSTERIORS).items():
        try:
            target = make()
        except ImportError as error:
            table.add_row(name, "", "", "", "", escape(str(error)))
            continue
        known = target.truth
        table.add_row(
            name,
            str(target.dim),
            _number(known and known.energy),
            _number(known and known.log_z),
            "yes" if target.sample else "–",
            escape((inspect.getdoc(described(name, make)) or "").splitlines()[0]),
        )
    console = Console()
    console.print(table)
    console.print("exact: whether samples can be drawn exactly. schuss.targets.get(name) has them.")


def _number(value: float | None) -> str:
    return "–" if value is None else f"{round(value, 4) + 0.0:g}"


if __name__ == "__main__":
    app()
