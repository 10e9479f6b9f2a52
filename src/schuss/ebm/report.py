"""What a training run leaves behind for people: history.csv, pictures, settings and a page.

history.csv     a row for each iteration
curves.png      energies, the turn of a step and the loss's gradient over the iterations
samples.png     data, chains of the buffer and samples from noise, beside each other
settings.json   configuration, arguments, versions, machine and the numbers of the verdict
report.html     all of that on a page, with the verdict at the top
"""

import html
import json
import pathlib
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from schuss.ebm.history import STATISTICS, History
from schuss.ebm.judgement import Judgement, Samples
from schuss.ebm.pictures import drawable, grid
from schuss.plotting import FAINT, style
from schuss.results import page
from schuss.whole_file import replacing

SHOWN = 20
"""Images of each kind in a picture."""

KINDS = {"data": "data", "buffer": "chains of the buffer", "noise": "samples from noise"}


def write_csv(path: pathlib.Path, history: History) -> None:
    """A row for each iteration, with the names of `History`."""
    columns = [getattr(history, name) for name in STATISTICS]
    lines = [",".join(("iteration", *STATISTICS))]
    for number, row in enumerate(zip(*columns, strict=True), 1):
        lines.append(",".join([str(number), *(f"{value:.6g}" for value in row)]))
    with replacing(path) as draft:
        draft.write_text("\n".join(lines) + "\n", encoding="utf-8")


def curves(history: History, scale: float, limit: float) -> Figure:
    """Energies in units of the sampler, their gap, the turn of a step, the loss's gradient."""
    steps = np.arange(1, len(history) + 1)
    with style():
        figure = Figure(figsize=(10, 4.2), layout="constrained")
        axes = figure.subplots(2, 2, sharex=True)
        first, second, third, fourth = axes.flat
        first.plot(steps, scale * history.energy_data, lw=0.8, color="#0072B2", label="data")
        first.plot(
            steps, scale * history.energy_negative, lw=0.8, color="#D55E00", label="negatives"
        )
        first.set_title("energy: the two should stay together")
        first.legend()
        second.plot(steps, scale * history.gap, lw=0.8, color="#009E73")
        second.axhline(0, color=FAINT, lw=0.7)
        second.set_title("energy of data − of negatives: around 0")
        third.plot(steps, history.delta, lw=0.8, color="#CC79A7")
        third.axhline(limit, color=FAINT, lw=0.7)
        third.set_title("δ, turn of a sampler step: around or below the line")
        fourth.plot(steps, history.grad_norm, lw=0.8, color="#333333")
        fourth.set_yscale("log")
        fourth.set_title("norm of the loss's gradient")
        for panel in axes[1]:
            panel.set_xlabel("iteration")
        for rollback in history.rollbacks:
            for panel in axes.flat:
                panel.axvline(rollback.back_to, color="#B3261E", lw=0.7, ls=":")
    return figure


def pictured(samples: Samples, limits: tuple[float, float]) -> Figure | None:
    """Data, buffer and noise beside each other: images, or points of the plane."""
    shape = tuple(samples.data.shape[1:])
    shown = {name: getattr(samples, name) for name in KINDS if getattr(samples, name) is not None}
    if not drawable(shape) and shape != (2,):
        return None
    with style():
        figure = Figure(figsize=(10, 3.4), layout="constrained")
        panels = figure.subplots(1, len(shown), squeeze=False)[0]
        for panel, (name, x) in zip(panels, shown.items(), strict=True):
            panel.set_title(KINDS[name])
            if drawable(shape):
                sheet = grid(x[:SHOWN], columns=5, lower=limits[0], upper=limits[1])
                panel.imshow(sheet.squeeze(), cmap="gray", vmin=0, vmax=255)
                panel.set_axis_off()
            else:
                panel.plot(*x.cpu().numpy().T, ".", ms=3)
                panel.set(xlim=limits, ylim=limits, aspect="equal")
    return figure


def settings(config: Any, arguments: dict[str, Any], machine: str, found: Judgement) -> dict:
    """All that a run was, for JSON."""
    return {
        "config": config,
        "arguments": arguments,
        "versions": page.versions(),
        "machine": machine,
        "verdict": {
            "headline": found.headline,
            "reasons": [reason._asdict() for reason in found.reasons],
            "notes": found.notes,
            "numbers": {name: _plain(value) for name, value in found.numbers.items()},
        },
    }


def leave(
    folder: pathlib.Path,
    *,
    history: History,
    scale: float,
    limit: float,
    samples: Samples,
    limits: tuple[float, float],
    found: Judgement,
    about: dict[str, Any],
) -> pathlib.Path:
    """Write everything; the page's path."""
    write_csv(folder / "history.csv", history)
    figures = {"curves": curves(history, scale, limit)}
    shown = pictured(samples, limits)
    if shown is not None:
        figures["samples"] = shown
    for name, figure in figures.items():
        with style(), replacing(folder / f"{name}.png") as draft:
            figure.savefig(draft, format="png")
    with replacing(folder / "settings.json") as draft:
        draft.write_text(json.dumps(about, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    text = _page(history, found, figures, about)
    with replacing(folder / "report.html") as draft:
        draft.write_text(text, encoding="utf-8")
    return folder / "report.html"


def _page(history: History, found: Judgement, figures: dict[str, Figure], about: dict) -> str:
    parts = [
        "<h1>An energy and its training</h1>",
        f'<p class="sub">{len(history)} iterations, {history.gradients:,} gradients of the sampler '
        f"for each chain, {len(history.rollbacks)} roll-backs</p>",
        _verdict(found),
    ]
    if "samples" in figures:
        parts += ["<h2>Samples</h2>", page._image(figures["samples"], "data, buffer and noise")]
    parts += [
        "<h2>Curves</h2>",
        "<p>Energies are in units of the sampler. Where training is well, the energies of data and "
        "of negatives follow each other, and their difference says nothing of the quality.</p>",
        page._image(figures["curves"], "energies, turn of a step and gradient norm"),
        "<h2>Numbers of the verdict</h2>",
        page._table(["number", ""], [[k, _number(v)] for k, v in found.numbers.items()]),
        "<h2>Settings</h2>",
        '<div class="two">'
        + page._table(["argument", ""], [[k, _short(v)] for k, v in about["arguments"].items()])
        + page._table(["version", ""], [list(pair) for pair in about["versions"].items()])
        + "</div>",
    ]
    if about["config"] is not None:
        text = html.escape(json.dumps(about["config"], indent=1))
        parts += ["<h2>Configuration</h2>", f'<pre class="wide">{text}</pre>']
    parts += ["<h2>What to do next</h2>", _next(found)]
    return page.document("schuss ebm", "\n".join(parts))


def _verdict(found: Judgement) -> str:
    items = "".join(
        f'<li><span class="kind">{html.escape(reason.kind.capitalize())}:</span> '
        f"{html.escape(reason.what)}."
        f'<span class="remedy">→ {html.escape(reason.remedy)}.</span></li>'
        for reason in found.reasons
    )
    notes = "".join(f'<p class="note">Note: {html.escape(note)}.</p>' for note in found.notes)
    listed = f"<ul>{items}</ul>" if items else "<p>No check failed.</p>"
    kind = "bad" if found.reasons else "good"
    return f'<div class="verdict {kind}"><h2>{found.headline}</h2>{listed}{notes}</div>'


def _next(found: Judgement) -> str:
    if found.reasons:
        items = [f"{html.escape(reason.remedy)}." for reason in found.reasons]
    else:
        items = [
            "Compare the samples with data: no number above says how good they are.",
            "Sample: <code>trainer.from_noise(100, rounds=20)</code>, or "
            "<code>schuss ebm sample FOLDER</code>.",
        ]
    return f"<ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>"


def _plain(value: float) -> float | None:
    return float(f"{value:.5g}") if np.isfinite(value) else None


def _number(value: float) -> str:
    return f"{value:.3g}"


def _short(value: Any) -> str:
    """An argument in a table; one with arguments of its own as a call of them."""
    if isinstance(value, dict):
        given = [f"{k}={v}" for k, v in value.items() if k != "name" and v is not None]
        value = f"{value.get('name', '')}({', '.join(given)})"
    text = str(value)
    return text if len(text) <= 80 else text[:79] + "…"
