"""CIFAR-10 with Jarzynski's weights: the largest weight of each batch during training."""

import pathlib
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from schuss import plotting
from schuss.paper.item import Advance, Item, Settings
from schuss.paper.persistent_ebm import workplace
from schuss.paper.store import numbers

NAME = "cifar_jarzynski"
EARLY = 10
CONCENTRATED, EVEN = 0.5, 0.1
"""Largest weights of a batch above which one image counts for most, and below which none does."""


def _compute(settings: Settings, advance: Advance) -> dict[str, Any]:
    from schuss.ebm.jarzynski_runs import SMALL, Size, run_weighted

    size = SMALL if settings.quick else Size()
    with workplace(settings, NAME) as work:
        told = run_weighted(settings.data, work, size=size, seed=settings.seed, advance=advance)
    assert told is not None  # time is never up here
    return told | {"seconds": sum(run["seconds"] for run in told["runs"].values())}


def _draw(result: dict[str, Any], folder: pathlib.Path) -> list[str]:
    folder.mkdir(parents=True, exist_ok=True)
    figure = Figure(figsize=(6.5, 2.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    colours = (plotting.look("ULA").colour, plotting.look("ESH").colour)
    for (scale, run), colour in zip(result["runs"].items(), colours, strict=True):
        label = f"energy scale {float(scale):g}"
        for axes, series in ((left, numbers(run["max_weight"])), (right, _gap(run))):
            axes.plot(series, color=colour, linewidth=0.6, alpha=0.35)
            axes.plot(smooth(series), color=colour, linewidth=1.6, label=label)
            if run["stopped"] and len(series):
                axes.plot(len(series) - 1, smooth(series)[-1], "X", color=colour, markersize=8)
    left.set(title="Largest weight of a batch (×: diverged)", xlabel="iterations", ylim=(0, 1.05))
    right.set(title="E of data − E of negatives (network's units)", xlabel="iterations")
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    figure.savefig(folder / f"{NAME}.png")
    return [f"{NAME}.png"]


def smooth(series: np.ndarray, width: int = 11) -> np.ndarray:
    """The running median over so many iterations, fewer at the ends."""
    half = width // 2
    return np.asarray(
        [np.nanmedian(series[max(k - half, 0) : k + half + 1]) for k in range(len(series))]
    )


def _gap(run: dict[str, Any]) -> np.ndarray:
    return numbers(run["energy_data"]) - numbers(run["energy_negative"])


def _tell(result: dict[str, Any]) -> str:
    lines = [
        f"| energy scale | largest weight at first | after {EARLY} iterations | mean of the last "
        "half | iterations | seconds |",
        "|---|---|---|---|---|---|",
    ]
    for scale, run in result["runs"].items():
        weight = numbers(run["max_weight"])
        if len(weight):
            shown = (weight[0], weight[min(EARLY, len(weight) - 1)], _late(run))
            cells = " | ".join(f"{value:.3f}" for value in shown)
        else:
            cells = "– | – | –"
        lines.append(f"| {float(scale):g} | {cells} | {len(weight)} | {run['seconds']:.0f} |")
    stopped = [f"at scale {float(s):g}" for s, run in result["runs"].items() if run["stopped"]]
    even, scaled = result["runs"]["1"], result["runs"]["20000"]
    text = (
        f"Each batch has {result['batch']} chains from "
        "uniform noise, weighted by the exact form −E(x_t) − (d−1)r_t; the public code's weights "
        f"are wrong. At the energy's scale of the paper's image models {_words(scaled)}. At scale "
        f"1 {_words(even)}, and a step turns a trajectory by δ = {_turn(even):.1g} on average, "
        f"against {_turn(scaled):.1g} at scale 20000."
    )
    if _late(scaled) > CONCENTRATED:
        text += (
            " As the paper reports, the estimator is unbiased and of no use in this dimension: "
            "nearly all weight comes to lie on one image of a batch."
        )
    if _late(even) < EVEN:
        text += " Where the weights stay even, the chains are hardly bent: they are noise still."
    if stopped:
        text += f" Training diverged and stopped {' and '.join(stopped)}."
    return "\n".join(lines) + "\n\n" + text


def _words(run: dict[str, Any]) -> str:
    """What the weights did."""
    late = _late(run)
    if not np.isfinite(late):
        return "training stopped before a weight was seen"
    return f"the largest weight is {late:.3f} on average in the last half of the run"


def _turn(run: dict[str, Any]) -> float:
    turns = numbers(run["delta"])
    return float(np.nanmean(turns)) if np.isfinite(turns).any() else 0.0


def _late(run: dict[str, Any]) -> float:
    weight = numbers(run["max_weight"])
    return float(np.nanmean(weight[len(weight) // 2 :])) if len(weight) else float("nan")


ITEM = Item(
    name=NAME,
    title="CIFAR-10 with Jarzynski weights",
    place="Appendix C.3",
    compute=_compute,
    draw=_draw,
    tell=_tell,
    parts=lambda settings: 2,
    alone=True,
)
