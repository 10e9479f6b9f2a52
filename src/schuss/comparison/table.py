"""The table of a comparison, for a terminal and for a page."""

import html
import math

from rich import box
from rich.markup import escape
from rich.table import Table

from schuss.comparison.compare import Comparison
from schuss.comparison.numbers import Row, rows
from schuss.comparison.samplers import FIXED, warm_up

COLUMNS = ("gradients", "ESS / 1000 gradients", "b²max", "R-hat", "seconds", "verdict")


def caption(comparison: Comparison) -> list[str]:
    """What the columns mean."""
    seeds = max((row.runs for row in rows(comparison)), default=1)
    several = f", medians over {seeds} seeds" if seeds > 1 else ""
    runs = (
        "auto is unadjusted while it tunes. schuss and the fixed samplers share the gradients "
        "among four chains; the others run one chain with all of them, and its R-hat compares its "
        "halves."
    )
    if "nuts" in comparison.outcomes:
        runs += f" nuts adapts over {warm_up(comparison.gradients)} draws; its default is 1000."
    if any(name.partition(":")[0] in FIXED for name in comparison.outcomes):
        runs += " Fixed samplers have the paper's steps or those asked for, and aren't tuned."
    return [
        f"ESS is the smallest of x and (x − m)², R-hat the largest of these and E{several}; "
        "gradients of tuning count. Seconds are those of all runs of a sampler, with its "
        "compilation.",
        "b²max is the largest squared error of an E[x²] in units of Var[x²], when the gradients "
        f"asked for were spent. {comparison.reference.words}",
        runs,
    ]


def cells(row: Row) -> list[str]:
    """What a row shows under `COLUMNS`."""
    return [
        "–" if math.isnan(row.gradients) else f"{row.gradients:,.0f}",
        _digits(row.ess_per_1000),
        _digits(row.b2max),
        "–" if math.isnan(row.rhat) else f"{row.rhat:.3f}" if row.rhat < 100 else "> 100",
        f"{row.seconds:.1f}",
        verdict(row),
    ]


def verdict(row: Row) -> str:
    """In a word, or how many of the runs can be trusted."""
    if row.runs > 1:
        return f"{row.trusted} of {row.runs} ok"
    if row.failure:
        return "no draws"
    return "converged" if row.trusted else "NOT converged"


def notes(comparison: Comparison) -> list[str]:
    """Why samplers gave no draws, why the verdict of others fails, and what else to know."""
    found = []
    for name, outcomes in comparison.outcomes.items():
        judged = [outcome.verdict for outcome in outcomes if outcome.verdict is not None]
        told = [outcome.failure for outcome in outcomes if outcome.failure][:1]
        told += [verdict.reasons[0].what for verdict in judged if not verdict.converged][:1]
        told += [outcome.note for outcome in outcomes if outcome.note][:1]
        found += [f"{name}: {words}." for words in told]
    return found


def terminal(comparison: Comparison) -> Table:
    """The table in colours."""
    shown = Table(
        title=f"{escape(comparison.name)}, {comparison.dim} dimensions, "
        f"{comparison.gradients:,} gradients",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    shown.add_column("sampler", no_wrap=True)
    for heading in COLUMNS[:-1]:
        shown.add_column(heading, justify="right")
    shown.add_column(COLUMNS[-1])
    for row in rows(comparison):
        good = row.trusted == row.runs
        *numbers, word = cells(row)
        shown.add_row(row.sampler, *numbers, f"[{'green' if good else 'red'}]{escape(word)}[/]")
    return shown


def page(comparison: Comparison) -> str:
    """The table as HTML."""
    top = "".join(f"<th>{html.escape(name)}</th>" for name in ("sampler", *COLUMNS))
    body = ""
    for row in rows(comparison):
        kind = "good" if row.trusted == row.runs else "bad"
        *numbers, word = cells(row)
        parts = "".join(f"<td>{html.escape(cell)}</td>" for cell in numbers)
        body += (
            f"<tr><th>{html.escape(row.sampler)}</th>{parts}"
            f'<td class="words {kind}">{html.escape(word)}</td></tr>'
        )
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _digits(value: float) -> str:
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞"
    return f"{value:.3g}" if value < 1e4 else f"{value:.0e}"
