"""The valley figure: along a long valley, and into a deep well, with ESH, Newton and Langevin.

E = ½ xᵀ diag(1, 100) x with 50 gradients, and E = ½ · 100 |x|² with 5, from (∓4, ±.4), ε = .1.
"""

import math
import pathlib
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from schuss import plotting
from schuss.algorithms import ESH, ULA, Unscaled
from schuss.paper.item import Advance, Item, Settings, short
from schuss.targets import Target, deep_well, valley
from schuss.trajectory import trajectory

SAMPLERS: dict[str, Any] = {
    "ESH": ESH(step_size=0.1),
    "Newton": Unscaled(step_size=0.1, q=0.0),
    "ULA": ULA(step_size=0.1),
}
LOOKS = {"ESH": "ESH", "Newton": "HMC", "ULA": "ULA"}
FOLLOWED = 50  # gradients for the curves of both


class Place(NamedTuple):
    """An energy, after how many gradients the paper looks, and how near counts as arrived."""

    target: Target
    gradients: int
    near: float  # |x₁|: one standard deviation of the target
    title: str


def _places() -> dict[str, Place]:
    return {
        "valley": Place(valley(), 50, 1.0, "Valley"),
        "well": Place(deep_well(), 5, 0.1, "Deep well"),
    }


def _chains(settings: Settings) -> int:
    return 50 if settings.quick else 500


def _measure(place: Place, sampler, chains: int, seed: int) -> dict[str, Any]:
    path = trajectory(place.target, chains=chains, sampler=sampler, steps=FOLLOWED, seed=seed)
    x, k = path.x, place.gradients
    outward = x[:, :, 0] * np.sign(x[0, :, 0])
    arrived = outward <= place.near
    first = np.where(arrived.any(axis=0), arrived.argmax(axis=0), FOLLOWED + 1)
    middle = float(np.median(first))
    crossed = outward[: k + 1].min(axis=0) < -place.near
    speed = np.exp(path.r) if isinstance(sampler, ESH) else np.linalg.norm(path.u, axis=-1)
    return {
        "x": [short(x[: k + 1, chain]) for chain in (0, 1)],
        "speed": [short(speed[: k + 1, chain]) for chain in (0, 1)],
        "energy": short(np.median(path.energy, axis=1)),
        "distance": short(np.median(np.linalg.norm(x[k], axis=-1))),
        "arrived": short(np.mean(first <= k)),
        "crossed": short(np.mean(crossed)),
        "first": None if middle > FOLLOWED else middle,
        "longest": short(np.linalg.norm(np.diff(x, axis=0), axis=-1).max()),
    }


def _compute(settings: Settings, advance: Advance) -> dict[str, Any]:
    result: dict[str, Any] = {"chains": _chains(settings), "places": {}}
    for name, place in _places().items():
        rows = {}
        for sampler, algorithm in SAMPLERS.items():
            rows[sampler] = _measure(place, algorithm, _chains(settings), settings.seed + 1)
            advance(f"{name}, {sampler}")
        typical = math.log(2)  # the median of E, which is Exp(1) in two dimensions
        result["places"][name] = {
            "gradients": place.gradients,
            "typical": short(typical),
            "samplers": rows,
        }
    return result


def _contours(axes, target: Target, reach_x: float, reach_y: float) -> None:
    x, y = np.linspace(-reach_x, reach_x, 121), np.linspace(-reach_y, reach_y, 121)
    plane = np.stack(np.meshgrid(x, y), axis=-1)
    energy = target.energy(np, plane.reshape(-1, 2)).reshape(121, 121)
    levels = [0.5, 2, 8, 32, 128, 512, 2048]
    axes.contour(x, y, energy, levels=levels, colors="#C8C8C8", linewidths=0.7)
    axes.set(xlim=(-reach_x, reach_x), ylim=(-reach_y, reach_y))


def _draw(result: dict[str, Any], folder: pathlib.Path) -> list[str]:
    folder.mkdir(parents=True, exist_ok=True)
    figure = Figure(figsize=(6.5, 5.7), layout="constrained")
    layout: Any = [[f"valley {name}", f"well {name}"] for name in SAMPLERS] + [["valley", "well"]]
    axes_of = figure.subplot_mosaic(layout, height_ratios=(1, 1, 1, 1.6))
    reach = {"valley": (5.0, 1.3), "well": (5.0, 1.3)}
    for name, place in _places().items():
        shown = result["places"][name]
        for sampler, row in shown["samplers"].items():
            axes, colour = axes_of[f"{name} {sampler}"], plotting.look(LOOKS[sampler]).colour
            _contours(axes, place.target, *reach[name])
            for x, speed in zip(row["x"], row["speed"], strict=True):
                plotting.trace(axes, np.asarray(x), np.asarray(speed), colour, widest=2.5)
                axes.plot(*np.asarray(x).T, ".", color=colour, markersize=4)
            axes.set(title=f"{place.title}, {sampler}, {place.gradients} gradients")
            axes.tick_params(labelbottom=sampler == "ULA")
        axes = axes_of[name]
        for sampler, row in shown["samplers"].items():
            look = plotting.look(LOOKS[sampler])
            axes.plot(row["energy"], color=look.colour, linestyle=look.dash, label=sampler)
        axes.axhline(shown["typical"], color=plotting.FAINT, linewidth=1, linestyle=(0, (1, 1)))
        axes.axvline(place.gradients, color=plotting.FAINT, linewidth=0.7)
        axes.set(yscale="log", xlabel="gradients", xlim=(0, FOLLOWED))
        axes.set(title=f"{place.title}: median energy of {result['chains']} chains")
    axes_of["valley"].set(ylabel="E (dotted: exact samples)")
    axes_of["valley"].legend(loc="lower left")
    figure.savefig(folder / "valley.png", dpi=130)
    return ["valley.png"]


def _number(value) -> str:
    return f"> {FOLLOWED}" if value is None else f"{value:g}"


def _tell(result: dict[str, Any]) -> str:
    lines = [
        "| energy | sampler | at the centre by then | past it by then | first there (median "
        "gradients) | median distance from the centre | longest step |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, shown in result["places"].items():
        for sampler, row in shown["samplers"].items():
            lines.append(
                f"| {name}, {shown['gradients']} gradients | {sampler} | {row['arrived']:.0%} | "
                f"{row['crossed']:.0%} | {_number(row['first'])} | {row['distance']:.2f} | "
                f"{row['longest']:.2f} |"
            )
    along, into = (result["places"][name]["samplers"] for name in ("valley", "well"))
    text = (
        f"Half of the ESH chains have come from 4 to within "
        f"one standard deviation of the centre of the valley after {_number(along['ESH']['first'])}"
        f" gradients; of the Langevin chains {along['ULA']['arrived']:.0%} have after "
        f"{result['places']['valley']['gradients']}, their median distance from the centre being "
        f"{along['ULA']['distance']:.1f} then. Newton is there after "
        f"{_number(along['Newton']['first'])} but keeps its energy: the median over the last ten "
        f"gradients is {np.mean(along['Newton']['energy'][-10:]):.1f}, for ESH "
        f"{np.mean(along['ESH']['energy'][-10:]):.1f} (it passes the bottom just then) and "
        f"{result['places']['valley']['typical']:.1f} for exact samples. In the deep well it is "
        "the other way round, as the paper says: "
        f"Langevin's first step is up to {into['ULA']['longest']:.1f} long and after 5 gradients "
        f"its median distance from the centre is {into['ULA']['distance']:.2f}, while ESH, whose "
        f"every step is {into['ESH']['longest']:.1f} long, is still at "
        f"{into['ESH']['distance']:.1f} and needs {_number(into['ESH']['first'])} gradients. "
        "Line widths are momenta."
    )
    return "\n".join(lines) + "\n\n" + text


ITEM = Item(
    name="valley",
    title="Long valleys and deep wells",
    place="Figure 5",
    compute=_compute,
    draw=_draw,
    tell=_tell,
    parts=lambda settings: 2 * len(SAMPLERS),
)
