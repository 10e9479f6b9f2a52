"""JEM: the average energy over time of six samplers on a joint model, from noise and the buffer."""

import pathlib
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from schuss import plotting
from schuss.paper.item import Advance, Item, Settings
from schuss.paper.persistent_ebm import workplace
from schuss.paper.store import numbers

STARTS = ("noise", "buffer")
MARKS = (0, 50, 200)


def _compute(settings: Settings, advance: Advance) -> dict[str, Any]:
    from schuss.ebm.joint_runs import SMALL, Size, run_joint

    def once(done: str) -> None:
        if "from noise" in done or "there already" in done:
            advance(done)

    size = SMALL if settings.quick else Size()
    with workplace(settings, "jem") as work:
        told = run_joint(settings.data, work, size=size, seed=settings.seed, advance=once)
    assert told is not None  # time is never up here
    return told


def _look(name: str) -> dict[str, Any]:
    """ULA is drawn broad, since Nosé–Hoover runs on top of it from noise."""
    look = plotting.look(name.split()[0])
    dash = {"ESH 1": (0, (2, 1)), "NoseHoover": (0, (3, 1.5))}.get(name, look.dash)
    return {"color": look.colour, "linestyle": dash, "linewidth": 3.2 if name == "ULA" else 1.6}


def _draw(result: dict[str, Any], folder: pathlib.Path) -> list[str]:
    folder.mkdir(parents=True, exist_ok=True)
    figure = Figure(figsize=(6.5, 3.2), layout="constrained")
    panels = figure.subplots(1, 3)
    titles = ("From noise", "From noise, low energies", "From the buffer")
    for axes, title, start in zip(panels, titles, ("noise", *STARTS), strict=True):
        for name, curve in sorted(
            result["curves"][start].items(), key=lambda pair: pair[0] != "ULA"
        ):
            look, energy = _look(name), numbers(curve["energy"])
            axes.plot(energy, label=name, **look)
            if "sd" in curve:
                spread, steps = numbers(curve["sd"]), np.arange(len(energy))
                band = {"color": look["color"], "alpha": 0.12, "linewidth": 0}
                axes.fill_between(steps, energy - spread, energy + spread, **band)
        axes.axhline(result["energy_data"], color=plotting.FAINT, linestyle=(0, (1, 1)))
        axes.set(title=title, xlabel="gradients")
    low = min(np.nanmin(numbers(c["energy"])) for c in result["curves"]["noise"].values())
    panels[1].set(ylim=(low - 1, 12))
    panels[0].set(ylabel="mean energy (dotted: test images)")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=6)
    figure.savefig(folder / "jem.png")
    return ["jem.png"]


def _tell(result: dict[str, Any]) -> str:
    marks = [mark for mark in MARKS if mark <= result["gradients"]]
    heads = " | ".join(f"{start}, {mark}" for start in STARTS for mark in marks)
    lines = [f"| | {heads} |", "|---|" + "---|" * (len(STARTS) * len(marks))]
    for name in result["curves"]["noise"]:
        cells = []
        for start in STARTS:
            energy = numbers(result["curves"][start][name]["energy"])
            cells += [_cell(energy[mark]) for mark in marks]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    words = "; ".join(f"from {start} {_lowest(result, start)}" for start in STARTS)
    text = (
        f"Mean energy of {result['chains']} chains after so "
        f"many gradients; test images have {result['energy_data']:.2f}. At the end {words}. "
        f"From noise the energy of test images is met {_meetings(result)}. The "
        f"network ({result['network']}; {result['accuracy']:.1%} of the test images right) was "
        "trained jointly with short Langevin runs, as the original was, and is smaller than the "
        "paper's WRN-28-10: the order of the samplers can be compared, the numbers can't. Low "
        "energy is what the figure shows; it isn't quality, and a chain far below the data is as "
        "wrong as one far above."
    )
    return "\n".join(lines) + "\n\n" + text


def _meetings(result: dict[str, Any]) -> str:
    """When each sampler's chains from noise first have the energy of images."""
    told, never = [], []
    for name, curve in result["curves"]["noise"].items():
        low = np.flatnonzero(numbers(curve["energy"]) <= result["energy_data"])
        if low.size:
            told.append(f"by {name} after {low[0]} gradients")
        else:
            never.append(name)
    return ", ".join(told) + (f", not by {' and '.join(never)}" if never else "")


def _cell(energy: float) -> str:
    return f"{energy:.2f}" if np.isfinite(energy) else "–"


def _ends(result: dict[str, Any], start: str) -> dict[str, float]:
    """Last energies; what isn't finite is no low energy."""
    ends = {n: numbers(c["energy"])[-1] for n, c in result["curves"][start].items()}
    return {n: float(e) if np.isfinite(e) else np.inf for n, e in ends.items()}


def _best(result: dict[str, Any], start: str) -> tuple[str, str]:
    """The lowest of ESH, and the lowest of the others."""
    ends = _ends(result, start)
    ours = [name for name in ends if name.startswith("ESH")]
    others = [name for name in ends if name not in ours]
    return min(ours, key=ends.__getitem__), min(others, key=ends.__getitem__)


def _lowest(result: dict[str, Any], start: str) -> str:
    ends = _ends(result, start)
    ours, other = _best(result, start)
    low, theirs = _cell(ends[ours]), _cell(ends[other])
    return f"{ours} is at {low} and the lowest of the others, {other}, at {theirs}"


ITEM = Item(
    name="jem",
    title="Energy over time on a joint model",
    place="Figure 6",
    compute=_compute,
    draw=_draw,
    tell=_tell,
    parts=lambda settings: 1,
    alone=True,
)
