"""The report: one HTML page that needs nothing from outside itself."""

import base64
import contextlib
import html
import io
import os
import pathlib
import platform
import sys
from typing import TYPE_CHECKING

import numpy as np

from schuss.plotting import style
from schuss.results import figures
from schuss.whole_file import replacing

if TYPE_CHECKING:
    from schuss.results.posterior import Posterior

STYLE = """
:root { color-scheme: light; --ink: #24292f; --faint: #6b7280; --line: #e5e7eb; }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); max-width: 1000px;
       margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin: 0 0 .2rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
p.sub { color: var(--faint); margin: 0 0 1rem; }
.verdict { border-left: 6px solid; border-radius: 4px; padding: .8rem 1rem; }
.verdict.good { border-color: #1b7f4b; background: #edf7f1; }
.verdict.bad { border-color: #b3261e; background: #fdf0ef; }
.verdict h2 { margin: 0 0 .3rem; } .verdict li { margin: .5rem 0; }
.kind { font-weight: 600; } .remedy { display: block; } .note { color: var(--faint); }
.wide { overflow-x: auto; } img { max-width: 100%; height: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 13px; }
td, th { padding: .2rem .7rem; text-align: right; border-bottom: 1px solid var(--line); }
tbody th, thead th:first-child { text-align: left; font-weight: 500; }
td.words { text-align: left; } tr.gap td { text-align: left; color: var(--faint); }
.two { display: flex; flex-wrap: wrap; gap: 3rem; }
"""
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def write(post: "Posterior", path: str | os.PathLike) -> pathlib.Path:
    """Write the page and give its path. A page that was there is replaced only by a whole one."""
    where = pathlib.Path(path)
    if where.is_dir():
        raise IsADirectoryError(
            f"path must be a file, got the folder {str(where)!r}; pass e.g. 'report.html'"
        )
    if not where.parent.is_dir():
        raise FileNotFoundError(
            f"path must be in a folder that exists, got {str(where)!r}; create "
            f"{str(where.parent)!r} first"
        )
    text = page(post)
    try:
        with replacing(where) as draft:
            draft.write_text(text, encoding="utf-8")
    except OSError as error:
        raise OSError(
            error.errno,
            f"the report couldn't be written to {str(where)!r} ({error.strerror or error}); "
            f"free some space or pass another path",
        ) from error
    return where


def page(post: "Posterior") -> str:
    """The page as text."""
    name = html.escape(post.name or "Posterior")
    parts = [
        f"<h1>{name}</h1>",
        f'<p class="sub">{html.escape(_subtitle(post))}</p>',
        _verdict(post),
        "<h2>Summary</h2>",
        _explain_summary(post),
        f'<div class="wide">{post.summary().table()}</div>',
    ]
    if post.x is not None:
        parts += [
            "<h2>Mixing</h2>",
            "<p>The quantities that mix worst, and the energy. Chains that agree lie on top of "
            "each other; ranks are level when every chain visits every part equally often.</p>",
            _image(figures.mixing(post), "traces, ranks and densities of the worst quantities"),
        ]
    tuning = figures.tuning(post.stats.history)
    if tuning is not None:
        parts += ["<h2>Tuning</h2>", _image(tuning, "tuning history")]
    parts += ["<h2>Cost</h2>", _cost(post), "<h2>Settings</h2>", _settings(post)]
    parts += ["<h2>What to do next</h2>", _next(post)]
    return document(name, "\n".join(parts))


def document(name: str, body: str) -> str:
    """A whole page that needs nothing from outside itself."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        f"<title>{name}</title><style>{STYLE}</style></head><body>\n{body}\n</body></html>\n"
    )


def _subtitle(post: "Posterior") -> str:
    kept = f"{post.x.shape[1]} draws each" if post.x is not None else "moments only"
    how = "exact" if post.stats.exact else "unadjusted"
    return f"{post.chains} chains, {kept}, {post.dim} dimensions, {how} sampling"


def _verdict(post: "Posterior") -> str:
    verdict = post.verdict
    items = [
        f'<li><span class="kind">{html.escape(reason.kind.capitalize())}:</span> '
        f"{html.escape(reason.what)}."
        f'<span class="remedy">→ {html.escape(reason.remedy)}.</span></li>'
        for reason in verdict.reasons
    ]
    notes = "".join(f'<p class="note">Note: {html.escape(note)}.</p>' for note in verdict.notes)
    listed = f"<ul>{''.join(items)}</ul>" if items else "<p>No check failed.</p>"
    kind = "good" if verdict.converged else "bad"
    head = html.escape(verdict.headline)
    return f'<div class="verdict {kind}"><h2>{head}</h2>{listed}{notes}</div>'


def _explain_summary(post: "Posterior") -> str:
    lines = "".join(
        f'<p class="note">{html.escape(line.strip())}</p>' for line in post.summary().lines
    )
    return (
        "<p>ess is the number of independent draws that say as much, rhat compares chains (1 is "
        f"agreement), mcse is the standard error of the mean.</p>{lines}"
    )


def _cost(post: "Posterior") -> str:
    stats = post.stats
    phases = list(dict.fromkeys([*stats.gradients, *stats.seconds]))
    rows = [
        [
            phase,
            f"{stats.gradients[phase]:,}" if phase in stats.gradients else "",
            f"{stats.seconds[phase]:.2f}" if phase in stats.seconds else "",
        ]
        for phase in phases
    ]
    rows.append(["all", f"{sum(stats.gradients.values()):,}", f"{sum(stats.seconds.values()):.2f}"])
    said = []
    ess = post.verdict.numbers.get("ess")
    spent = sum(stats.gradients.values())
    if ess and np.isfinite(ess) and spent:
        said.append(
            f"{spent / ess:,.0f} gradients for each effective draw of the worst quantity, "
            "tuning included."
        )
    rate = post.verdict.numbers.get("acceptance")
    told = [row.get("acceptance", np.nan) for row in stats.history]
    first = [share for share in told if np.isfinite(share)]
    if stats.exact and first:
        said.append(
            f"Exactness: {100 * (1 - first[-1]):.0f} % of the steps were refused at first; chains "
            "then look further ahead before they turn round, with a gradient for each look."
        )
    elif stats.exact and rate is not None:
        said.append(
            f"Exactness: {100 * (1 - rate):.0f} % of the proposals were turned down, "
            "and their gradients with them."
        )
    elif not stats.exact and "eevpd" in post.verdict.numbers:
        error = post.verdict.numbers["eevpd"]
        said.append(
            f"Nothing was turned down; the energy error per dimension of {error:.2g} leaves a bias "
            f"of about {max(error, 0.0) ** (1 / 3):.2f} sd in the squares."
        )
    return _table(["phase", "gradients, all chains", "seconds"], rows) + "".join(
        f"<p>{html.escape(line)}</p>" for line in said
    )


def _settings(post: "Posterior") -> str:
    stats = post.stats
    local = bool(stats.history) and stats.history[-1].get("local", False)
    settings = {
        "sampler": stats.sampler or "not stated",
        "engine": stats.engine or "not stated",
        "coordinates": post.coordinates,
        "seed": stats.seed,
        "step size": _number(stats.step_size) + (", less on steep slopes" if local else ""),
        "refresh length": _number(stats.refresh),
        "thin": stats.thin,
        "weights": "yes" if post.weights is not None else "no",
        "frozen chains": 0 if stats.frozen is None else int(np.sum(stats.frozen)),
        "divergences": stats.divergences,
        "interrupted": "yes" if stats.interrupted else "no",
    }
    left = _table(["setting", ""], [[key, str(value)] for key, value in settings.items()])
    right = _table(["version", ""], [list(pair) for pair in versions().items()])
    return f'<div class="two">{left}{right}</div>'


def versions() -> dict[str, str]:
    """Of what took part, as far as it is loaded."""
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": platform.python_version()}
    for package in ("schuss", "numpy", "scipy", "jax", "torch", "arviz", "pymc", "numpyro"):
        if package == "schuss" or package in sys.modules:
            with contextlib.suppress(PackageNotFoundError):
                found[package] = version(package)
    return found | {"machine": f"{platform.system()} {platform.machine()}"}


def _next(post: "Posterior") -> str:
    if post.verdict.converged:
        items = [
            "Use the draws: <code>post.draws</code>, <code>post.to_arviz()</code>.",
            "Check the model, not only the sampler: posterior predictive checks, prior "
            "sensitivity.",
        ]
        if post.verdict.notes:
            items.append("Mind the notes at the top if tails or small differences matter.")
    else:
        remedies = dict.fromkeys(reason.remedy for reason in post.verdict.reasons)
        items = [f"{html.escape(remedy)}." for remedy in remedies]
        items.append("Don't use the means and intervals above until the verdict is green.")
    return f"<ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>"


def _table(head: list[str], rows: list[list[str]]) -> str:
    top = "".join(f"<th>{html.escape(cell)}</th>" for cell in head)
    body = "".join(
        f"<tr><th>{html.escape(row[0])}</th>"
        + "".join(f"<td>{html.escape(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _number(value) -> str:
    values = np.unique(np.asarray(value, float))
    if values.size == 1:
        return "not stated" if np.isnan(values[0]) else f"{values[0]:.4g}"
    return f"{values[0]:.4g} to {values[-1]:.4g}, by chain"


def _image(figure, caption: str) -> str:
    file = io.BytesIO()
    with style():
        figure.savefig(file, format="png", dpi=130)
    data = base64.b64encode(file.getvalue()).decode("ascii")
    return f'<img alt="{html.escape(caption)}" src="data:image/png;base64,{data}">'
