"""`schuss sample`: draws from a log-density, their verdict, a report and a file."""

import os
import pathlib
import sys
import warnings
from typing import Any

import numpy as np
from rich.console import Console
from rich.text import Text

from schuss.loading import Loaded, LoadError, load, parse_init
from schuss.results import NotConverged, Posterior
from schuss.whole_file import replacing

SUFFIXES = (".html", ".nc", ".npz")


def run(
    what: str,
    out: pathlib.Path,
    *,
    init: str | None = None,
    dim: int | None = None,
    energy: bool = False,
    console: Console | None = None,
    **options: Any,
) -> Posterior:
    """Sample, print the summary, write OUT.html and OUT.nc."""
    from schuss.sampling.sample import sample

    console = console or Console()
    stem = base(out)
    loaded = load(what, energy=energy)
    arguments = loaded.arguments | start(loaded, init, dim)
    with warnings.catch_warnings():
        # The summary says the same at greater length.
        warnings.simplefilter("ignore", NotConverged)
        post = sample(**arguments, **options, progress=sys.stderr.isatty())
    tell(post, console)
    page = post.report(_beside(stem, ".html"))
    console.print(Text(f"report: {page}"), soft_wrap=True)
    console.print(Text(f"draws:  {write_draws(post, stem)}"), soft_wrap=True)
    return post


def base(out: pathlib.Path) -> pathlib.Path:
    """The name that files share, in a folder that exists: known before there is work to lose."""
    stem = out.with_suffix("") if out.suffix in SUFFIXES else out
    if not stem.name or out.is_dir():
        raise LoadError(f"out must be a name for files, got {str(out)!r}; pass e.g. --out run")
    if not stem.parent.is_dir():
        raise LoadError(
            f"out must be in a folder that exists, got {str(out)!r}; create {str(stem.parent)!r}"
        )
    if not os.access(stem.parent, os.W_OK):
        raise LoadError(f"out must be in a folder that can be written to, got {str(out)!r}")
    return stem


def start(loaded: Loaded, init: str | None, dim: int | None) -> dict[str, Any]:
    """`init` from the command line, else from the file; a target or a model has its own."""
    if init is not None and dim is not None:
        raise LoadError("pass --init or --dim, not both: a start has a dimension")
    if init is not None:
        return {"init": parse_init(init)}
    if dim is not None:
        if "target" in loaded.arguments:
            raise LoadError(f"--dim is for functions, and {loaded.name} has its own; leave it out")
        return {"init": lambda rng, chains: rng.standard_normal((chains, dim))}
    if "target" not in loaded.arguments and "init" not in loaded.arguments:
        raise LoadError(
            f"{loaded.name} is a function, and it isn't known of how many numbers; pass --dim N or "
            '--init "0,0,0", or define init in the file'
        )
    return {}


def tell(post: Posterior, console: Console) -> None:
    """The cost, the verdict in its colour, and the table."""
    stats = post.stats
    spent, seconds = sum(stats.gradients.values()), sum(stats.seconds.values())
    console.print(
        Text(f"{_title(post)}, {spent:,} gradients, {seconds:.1f} s"), soft_wrap=True, style="bold"
    )
    first, _, rest = str(post.summary()).partition("\n")
    console.print(Text(first, "green" if post.verdict.converged else "bold red"), soft_wrap=True)
    console.print(Text(rest), soft_wrap=True)
    console.print()


def write_draws(post: Posterior, stem: pathlib.Path) -> str:
    """ArviZ's netCDF, or a .npz where that can't be written; says which."""
    where = _beside(stem, ".nc")
    try:
        data = post.to_arviz()
        with replacing(where) as draft:
            data.to_netcdf(str(draft))
        return f"{where} (arviz.from_netcdf reads it)"
    except (ImportError, ValueError, TypeError, RuntimeError) as error:
        where = _beside(stem, ".npz")
        extra = {"energy": post.stats.energy, "weights": post.weights}
        with replacing(where) as draft, open(draft, "wb") as file:
            np.savez(file, **_arrays(post.named), **_arrays(extra, "sample_stats."))
        reason = (str(error).splitlines() or [""])[0]
        return f"{where} (numpy.load reads it; no netCDF: {type(error).__name__}: {reason})"


def _arrays(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    return {prefix + name: np.asarray(v) for name, v in values.items() if v is not None}


def _beside(stem: pathlib.Path, suffix: str) -> pathlib.Path:
    return stem.with_name(stem.name + suffix)


def _title(post: Posterior) -> str:
    kept = 0 if post.x is None else post.x.shape[1]
    name = post.name or "posterior"
    how = "exact" if post.stats.exact else "unadjusted"
    return f"{name}: {post.chains} chains × {kept} draws, {post.dim} dimensions, {how}"
