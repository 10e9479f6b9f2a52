"""JEM: the average energy over time of six samplers on a joint model, from noise and the buffer."""

import pathlib
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from schuss import plotting
from schuss.paper.item import Advance, Item, Settings
from schuss.paper.persistent_ebm import workplace

STARTS = ("noise", "buffer")
MARKS = (0, 50, 200)


def _compute(settings: Settings, advance: Advance) -> dict[str, Any]:
    from schuss.ebm.joint_runs import SMALL, Size, run_joint

    def once(done: str) -> None:
        if "from noise" in done or "there already" in done:
            advance(done)

    size = SMALL if settings.quick else Size()
    with workplace(settings, "jem") as work:
        return run_joint(settings.data, work, size=size, seed=settings.seed, advance=once)


def _look(name: str) -> tuple[str, Any]:
    look = plotting.look(name.split()[0])
    return look.colour, (0, (2, 1)) if name == "ESH 1" else look.dash


def _draw(result: dict[str, Any], folder: pathlib.Path) -> list[str]:
    folder.mkdir(parents=True, exist_ok=True)
    figure = Figure(figsize=(6.5, 3.0), layout="constrained")
    for axes, start in zip(figure.subplots(1, 2), STARTS, strict=True):
        for name, curve in result["curves"][start].items():
            colour, dash = _look(name)
            axes.plot(_numbers(curve["energy"]), color=colour, linestyle=dash, label=name)
        axes.axhline(result["energy_data"], color=plotting.FAINT, linestyle=(0, (1, 1)))
        axes.set(title=f"From {start}", xlabel="gradients")
        if start == "noise":
            axes.set(ylabel="mean energy (dotted: test images)")
            axes.legend()
    figure.savefig(folder / "jem.png")
    return ["jem.png"]


def _numbers(series: list[float | None]) -> np.ndarray:
    return np.asarray([np.nan if value is None else value for value in series], float)


def _tell(result: dict[str, Any]) -> str:
    marks = [mark for mark in MARKS if mark <= result["gradients"]]
    heads = " | ".join(f"{start}, {mark}" for start in STARTS for mark in marks)
    lines = [f"| | {heads} |", "|---|" + "---|" * (len(STARTS) * len(marks))]
    for name in result["curves"]["noise"]:
        cells = []
        for start in STARTS:
            energy = _numbers(result["curves"][start][name]["energy"])
            cells += [f"{energy[mark]:.2f}" for mark in marks]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    text = (
        f"**{_verdict(result).capitalize()}.** Mean energy of {result['chains']} chains after so "
        f"many gradients; test images have {result['energy_data']:.2f}. The network "
        f"({result['network']}; {result['accuracy']:.1%} of the test images right) was trained "
        "jointly by us with short Langevin runs, as the original was, and is smaller than the "
        "paper's WRN-28-10, so the numbers are not the paper's but the order of the samplers "
        "can be. Low energy is what the figure shows; it isn't quality, and a chain far below the "
        "data is as wrong as one far above."
    )
    return "\n".join(lines) + "\n\n" + text


def _verdict(result: dict[str, Any]) -> str:
    """The paper says that ESH finds lower energies than all others in the same gradients."""
    lower = []
    for start in STARTS:
        ends = {n: _numbers(c["energy"])[-1] for n, c in result["curves"][start].items()}
        best = min(ends["ESH 0.5"], ends["ESH 1"])
        others = [end for name, end in ends.items() if not name.startswith("ESH")]
        lower.append(best < min(others))
    if all(lower):
        return "holds"
    return "holds in part" if any(lower) else "doesn't hold"


ITEM = Item(
    name="jem",
    title="Energy over time on a joint model",
    place="Figure 6",
    compute=_compute,
    draw=_draw,
    tell=_tell,
    verdict=_verdict,
    parts=lambda settings: 1,
    public=lambda settings: 0.0,
)
