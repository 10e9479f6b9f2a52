"""Appendix C.3 as the paper has it: Jarzynski's weights with a persistent buffer, E₀ constant."""

import pathlib
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from schuss import plotting
from schuss.paper.cifar_jarzynski import smooth
from schuss.paper.item import Advance, Item, Settings
from schuss.paper.markdown import table
from schuss.paper.persistent_ebm import workplace
from schuss.paper.store import numbers

NAME = "weighted_buffer"
EPOCH, EPOCHS = 50, 30
"""Iterations of an epoch of D.4, and how many the paper has."""
AFTER = 10
"""Iterations that count as a few."""


def _compute(settings: Settings, advance: Advance) -> dict[str, Any]:
    from schuss.ebm.weighted_buffer import SMALL, kept_runs, run_buffered

    with workplace(settings, NAME) as work:
        if settings.data is None and not settings.quick:
            runs = kept_runs(work)
        else:
            size, seeds = (SMALL, (0,)) if settings.quick else (None, tuple(range(settings.seeds)))
            work.mkdir(parents=True, exist_ok=True)
            runs = run_buffered(settings.data, work, size=size, seeds=seeds)
    if not runs:
        raise ValueError(f"--work holds no runs of {NAME}; pass --data PATH to make them")
    advance(f"{len(runs)} runs")
    machines = dict.fromkeys(run["machine"] for run in runs.values())
    seconds = sum(run["seconds"] for run in runs.values())
    return {"runs": runs, "machine": "; ".join(machines), "seconds": seconds}


def _look(run: dict[str, Any]):
    return plotting.look(run["sampler"])


def _draw(result: dict[str, Any], folder: pathlib.Path) -> list[str]:
    folder.mkdir(parents=True, exist_ok=True)
    figure = Figure(figsize=(6.5, 2.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    for name, run in result["runs"].items():
        colour, epochs = _look(run).colour, np.arange(len(run["max_weight"])) / EPOCH
        gap = numbers(run["energy_data"]) - numbers(run["energy_negative"])
        for axes, series in ((left, numbers(run["max_weight"])), (right, gap)):
            axes.plot(epochs, series, color=colour, linewidth=0.6, alpha=0.3)
            axes.plot(epochs, smooth(series, EPOCH + 1), color=colour, linewidth=1.6, label=name)
    left.set(title="Largest weight of a batch", xlabel="epochs", ylim=(0, 1.05))
    right.set(title="E of data − weighted E of negatives", xlabel="epochs")
    right.set_yscale("symlog", linthresh=100)
    left.legend(loc="lower right")
    figure.savefig(folder / f"{NAME}.png")
    return [f"{NAME}.png"]


def late(run: dict[str, Any]) -> float:
    """The mean of the largest weight after the first few iterations."""
    return float(np.nanmean(numbers(run["max_weight"])[AFTER:]))


def _tell(result: dict[str, Any]) -> str:
    rows = [
        (
            name,
            f"{len(run['max_weight']) / EPOCH:g} of {EPOCHS}",
            f"{late(run):.3f}" if len(run["max_weight"]) > AFTER else "–",
            "–" if run["colour"] is None else f"{run['colour']:.3f}",
            f"{run['pixel_sd']:.2f}",
            run["stopped"] or "no",
            f"{run['seconds']:.0f}",
        )
        for name, run in result["runs"].items()
    ]
    heads = (
        "run",
        "epochs",
        f"largest weight from iteration {AFTER} on",
        "colours",
        "pixel sd",
        "diverged",
        "seconds",
    )
    colours = next(iter(result["runs"].values()))["colours"]
    return "\n\n".join(
        [
            "D.4's setting: chains go on from a buffer as large as the data, negatives weigh "
            "e^(−E(x₀) + r_t), nothing is added to the data, no spectral norm. ESH's energy isn't "
            "scaled, Langevin's is by 2/ε² and its negatives are unweighted. Colours: Fréchet's "
            "distance of the images' mean colours from the data's, for which uniform noise has "
            f"{colours['noise']:.3f} and test images {colours['test']:.4f}.",
            table(heads, rows),
        ]
    )


ITEM = Item(
    name=NAME,
    title="Jarzynski weights with a buffer",
    place="Appendices C.3 and D.4",
    compute=_compute,
    draw=_draw,
    tell=_tell,
    parts=lambda settings: 1,
    alone=True,
)
