"""Pictures of a run: traces, ranks and densities of what mixes worst, the energy, the tuning."""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import (
    EngFormatter,
    LogLocator,
    MaxNLocator,
    NullLocator,
    StrMethodFormatter,
)

from schuss.plotting import FAINT, INK, style

if TYPE_CHECKING:
    from schuss.results.posterior import Posterior

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8A6D3B")
RANK_BINS, POINTS, CHAINS = 20, 2000, 8
"""Bins of a rank plot; at most so many points of a trace; at most so many chains drawn."""


def overview(post: "Posterior", path: str | os.PathLike | None = None, count: int = 4) -> Figure:
    """The worst rows, the energy and the tuning in one figure, saved if `path` is given."""
    chosen = columns(post, count)
    tuning = curves(post.stats.history)
    rows = len(chosen)
    with style():
        height = 1.75 * rows + (1.9 if tuning else 0) + 0.7
        figure = Figure(figsize=(10, height), layout="constrained")
        ratios = [1.75 * max(rows, 1)] + ([1.9] if tuning else [])
        parts = np.atleast_1d(np.asarray(figure.subfigures(len(ratios), 1, height_ratios=ratios)))
        _rows(parts[0], chosen, post.weights)
        if tuning:
            _tuning(parts[1], tuning, post.stats.history)
        figure.suptitle(_title(post), fontsize=10, color="#1B7F4B" if _good(post) else "#B3261E")
        if path is not None:
            save(figure, path)
    return figure


def mixing(post: "Posterior", count: int = 4) -> Figure:
    """Traces, ranks and densities only."""
    chosen = columns(post, count)
    with style():
        figure = Figure(figsize=(10, 1.75 * len(chosen)), layout="constrained")
        _rows(figure, chosen, post.weights)
    return figure


def tuning(history: Sequence[Mapping[str, Any]]) -> Figure | None:
    """Step size, energy, acceptance and the rest against gradients; None without a history."""
    found = curves(history)
    if not found:
        return None
    with style():
        figure = Figure(figsize=(10, 2.1), layout="constrained")
        _tuning(figure, found, history)
    return figure


def columns(post: "Posterior", count: int) -> list[tuple[str, np.ndarray]]:
    """The worst rows of the summary and the energy, each (chains, draws)."""
    if post.x is None:
        raise ValueError("a picture needs draws, but only moments were kept; sample with draws")
    table = post.summary()
    wanted = table.worst(count)
    flat = [np.asarray(v).reshape(*v.shape[:2], -1) for v in post.named.values()]
    starts = np.concatenate([[0], np.cumsum([part.shape[2] for part in flat])])
    found = []
    for row in wanted:
        k = int(np.searchsorted(starts, row, side="right")) - 1
        values = flat[k][:, :, row - starts[k]].astype(float)
        if np.isfinite(values).all():
            found.append((table.names[row], values))
    energy = np.asarray(post.stats.energy, float)
    return [*found, ("energy", energy)] if np.isfinite(energy).all() else found


def curves(history: Sequence[Mapping[str, Any]]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """What the history tells of each quantity: gradients spent and values."""
    found = {}
    for key in ("step_size", "refresh", "energy", "acceptance", "ess", "rhat"):
        pairs = [
            (float(np.mean(row["gradients"])), float(np.mean(np.asarray(row[key], float))))
            for row in history
            if row.get(key) is not None and row.get("gradients") is not None
        ]
        pairs = [pair for pair in pairs if np.isfinite(pair).all()]
        if len(pairs) > 1:
            x, y = np.array(pairs).T
            found[key] = (x, y)
    return found


def save(figure: Figure, path: str | os.PathLike) -> None:
    """Save a figure, or say in one sentence why it couldn't be."""
    try:
        figure.savefig(path)
    except OSError as error:
        raise OSError(
            error.errno,
            f"the figure couldn't be written to {os.fspath(path)!r} ({error.strerror or error}); "
            f"pass a path in a folder that exists, with space left",
        ) from error
    except ValueError as error:
        raise ValueError(
            f"path must end in a format matplotlib knows, such as .png, .svg or .pdf, "
            f"got {os.fspath(path)!r}"
        ) from error


def smooth_density(values: np.ndarray, grid: np.ndarray, w: np.ndarray | None) -> np.ndarray:
    """A Gaussian kernel density on an even grid, from binned values, Silverman's bandwidth."""
    step = grid[1] - grid[0]
    edges = np.concatenate([grid - step / 2, grid[-1:] + step / 2])
    counts, _ = np.histogram(values, edges, weights=w)
    counts = counts / max(counts.sum(), 1e-300)
    spread = min(values.std(), np.subtract(*np.quantile(values, [0.75, 0.25])) / 1.34) or step
    width = max(0.9 * spread * values.size**-0.2, step)
    half = min(int(4 * width / step) + 1, grid.size - 1)
    kernel = np.exp(-0.5 * (np.arange(-half, half + 1) * step / width) ** 2)
    smooth = np.convolve(counts, kernel / kernel.sum(), mode="full")
    return smooth[half : half + grid.size] / step


def rank_counts(values: np.ndarray, w: np.ndarray | None) -> np.ndarray:
    """Share of each chain's weight in `RANK_BINS` equal bins of the pooled ranks, 1 when mixed."""
    from schuss.diagnostics.vectorised import mid_ranks

    chains = values.shape[0]
    if w is None:
        place = (mid_ranks(values) - 0.5) / values.size
        w = np.ones(values.shape)
    else:
        order = np.argsort(values, axis=None)
        mass = np.cumsum(w.reshape(-1)[order])
        place = np.empty(values.size)
        place[order] = (mass - w.reshape(-1)[order] / 2) / mass[-1]
        place = place.reshape(values.shape)
    bins = np.minimum((place * RANK_BINS).astype(int), RANK_BINS - 1)
    counts = np.stack([np.bincount(bins[c], w[c], minlength=RANK_BINS) for c in range(chains)])
    return counts * chains * RANK_BINS / w.sum()


def _rows(part, chosen, weights) -> None:
    """Trace, ranks and density of each quantity, side by side."""
    if not chosen:
        return
    panels = part.subplots(len(chosen), 3, width_ratios=[2.4, 1.2, 1.2], squeeze=False)
    for k, (name, values) in enumerate(chosen):
        _row(panels[k], name, values, weights, first=k == 0)
    part.align_ylabels(panels[:, 0])


def _row(panels, name, values, weights, first: bool) -> None:
    trace, rank, density = panels
    drawn = range(min(values.shape[0], CHAINS))
    step = max(1, -(-values.shape[1] // POINTS))
    for c in drawn:
        shown = values[c, ::step]
        trace.plot(
            np.arange(shown.size) * step,
            shown,
            color=COLOURS[c % len(COLOURS)],
            linewidth=0.5,
            alpha=0.75,
            label=f"chain {c}",
            rasterized=True,
        )
    trace.set_xlim(0, values.shape[1])
    # A name is shown as it is: a dollar sign in it is no mathematics.
    trace.set_ylabel(_short(name), parse_math=False)
    _ranks(rank, values, weights, drawn)
    _densities(density, values, weights, drawn)
    if first:
        trace.set_title("trace")
        rank.set_title("ranks by chain, even when mixed")
        density.set_title("density by chain")
        if len(drawn) > 1:
            trace.legend(
                loc="upper right",
                ncols=4,
                fontsize=7,
                handlelength=0.8,
                columnspacing=0.9,
                frameon=True,
                framealpha=0.8,
                edgecolor="none",
                borderpad=0.2,
            )


def _ranks(axes, values, weights, drawn) -> None:
    counts = rank_counts(values, weights)
    edges = np.linspace(0, 1, RANK_BINS + 1)
    for c in drawn:
        axes.stairs(counts[c], edges, baseline=None, color=COLOURS[c % len(COLOURS)], linewidth=1.0)
    axes.axhline(1, color=FAINT, linewidth=0.8, linestyle=(0, (4, 2)))
    axes.set(xlim=(0, 1), ylim=(0, max(2.0, float(counts.max()) * 1.05)), xticks=[0, 0.5, 1])


def _densities(axes, values, weights, drawn) -> None:
    # A long tail would squeeze everything else into the margin.
    low, high = np.quantile(values, [0.003, 0.997])
    room = 0.15 * (high - low) or max(abs(high), 1.0) * 0.05
    grid = np.linspace(low - room, high + room, 256)
    for c in drawn:
        w = None if weights is None else weights[c]
        if w is not None and not w.any():
            continue
        axes.plot(
            grid, smooth_density(values[c], grid, w), color=COLOURS[c % len(COLOURS)], linewidth=1.0
        )
    axes.set(yticks=[], ylim=(0, None), xlim=(grid[0], grid[-1]))
    axes.spines["left"].set_visible(False)


def _tuning(figure, found, history) -> None:
    words = {
        "step_size": "step size",
        "refresh": "refresh length",
        "energy": "mean energy",
        "acceptance": "acceptance",
        "ess": "smallest ESS",
        "rhat": "worst R-hat",
    }
    keys = list(found)[:5]
    panels = np.atleast_1d(figure.subplots(1, len(keys)))
    phases = [
        (row["phase"], float(np.mean(row["gradients"])))
        for row in history
        if row.get("phase") and row.get("gradients") is not None
    ]
    ends = {}
    for phase, spent in phases:
        ends[phase] = max(spent, ends.get(phase, 0.0))
    longest = max(x.max() for x, _ in found.values())
    for axes, key in zip(panels, keys, strict=True):
        x, y = found[key]
        axes.plot(x, y, color=INK, linewidth=1.0, marker="o", markersize=2.2)
        axes.set_title(words[key])
        if (y > 0).all() and key in ("step_size", "refresh", "ess") and y.max() > 5 * y.min():
            axes.set_yscale("log")
            axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
            axes.yaxis.set_minor_locator(NullLocator())
        if key == "acceptance":
            axes.set_ylim(0, 1.05)
        axes.set_xlim(0, 1.03 * longest)
        axes.xaxis.set_major_locator(MaxNLocator(4))
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        for spent in sorted(ends.values())[:-1]:
            axes.axvline(spent, color=FAINT, linewidth=0.7, linestyle=(0, (2, 2)))
    figure.supxlabel("gradients spent; dotted lines part the phases", fontsize=8, color=FAINT)


def _short(name: str, most: int = 22) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"


def _good(post: "Posterior") -> bool:
    return post.verdict.converged


def _title(post: "Posterior") -> str:
    head = f"{post.name}: " if post.name else ""
    return (head + post.verdict.headline).replace("$", r"\$")
