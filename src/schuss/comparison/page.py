"""The page of a comparison, which needs nothing from outside itself."""

import base64
import html
import io

from schuss.comparison import table
from schuss.comparison.compare import Comparison
from schuss.comparison.figure import curves
from schuss.comparison.samplers import SAMPLERS
from schuss.plotting import style
from schuss.results.page import POLICY, STYLE, versions

COLOURS = "td.good { color: #1b7f4b; } td.bad { color: #b3261e; font-weight: 600; }"


def page(comparison: Comparison) -> str:
    """The page as text: the table, the curves, what failed and how it was done."""
    name = html.escape(comparison.name)
    failed = "".join(f"<li>{html.escape(note)}</li>" for note in table.notes(comparison))
    parts = [
        f"<h1>Samplers on {name}</h1>",
        f'<p class="sub">{comparison.dim} dimensions, {comparison.gradients:,} gradients for each '
        "run, tuning included</p>",
        *(["<p><b>Interrupted: some runs are missing.</b></p>"] if not comparison.finished else []),
        f'<div class="wide">{table.page(comparison)}</div>',
        *(f'<p class="note">{html.escape(line)}</p>' for line in table.caption(comparison)),
        *([f"<h2>Mind</h2><ul>{failed}</ul>"] if failed else []),
        "<h2>Against gradients</h2>",
        _picture(comparison),
        "<h2>Samplers</h2>",
        _samplers(comparison),
        f'<p class="note">{html.escape(_made())}</p>',
    ]
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        f"<title>Samplers on {name}</title><style>{STYLE}{COLOURS}</style></head>"
        f"<body>\n{body}\n</body></html>\n"
    )


def _picture(comparison: Comparison) -> str:
    file = io.BytesIO()
    with style():
        curves(comparison).savefig(file, format="png", dpi=150)
    data = base64.b64encode(file.getvalue()).decode("ascii")
    told = "error of the second moments and effective sample size against gradients"
    return f'<img alt="{told}" src="data:image/png;base64,{data}">'


def _samplers(comparison: Comparison) -> str:
    items = "".join(
        f"<li><b>{html.escape(name)}</b>: {html.escape(SAMPLERS[name.partition(':')[0]])}</li>"
        for name in comparison.outcomes
    )
    return f"<ul>{items}</ul>"


def _made() -> str:
    return "Made with " + ", ".join(f"{name} {number}" for name, number in versions().items()) + "."
