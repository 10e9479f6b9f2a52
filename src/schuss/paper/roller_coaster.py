"""Figure 2: how long the roller coaster stays in (x, x + dx), from Newton to ESH.

On a line the q-Hamiltonian dynamics (App. A.1) has ẋ = v/(v²)^q and conserves E + ½ log_q(v²), so
the time spent at x is known in closed form,

    dt/dx = v^(2q−1),   v² = (v_top^(2−2q) + 2(1 − q)(E_top − E))^(1/(1−q)),

and at q = 1 it is v_top e^(E_top − E): the Boltzmann density, whatever the speed.
"""

import math
import pathlib
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from schuss import plotting
from schuss.algorithms import Unscaled
from schuss.paper.item import Advance, Item, Settings, short
from schuss.targets import roller_coaster
from schuss.trajectory import trajectory

FAMILY = (0.0, 0.25, 0.5, 0.75, 1.0)
SPEEDS = (0.25, 0.5, 1.0)  # at the top of the track
SHOWN = 0.5
CIRCUITS = 4
BINS, FINE = 60, 50  # bins round the track, and points of quadrature in each
DOTS = 40
LABELS = {0.0: "Newton", 1.0: "ESH"}


def _steps(settings: Settings) -> int:
    return CIRCUITS * (2048 if settings.quick else 16_384)


def _family(settings: Settings) -> tuple[float, ...]:
    return (0.0, 0.5, 1.0) if settings.quick else FAMILY


def _energy(x):
    return roller_coaster().energy(np, x.reshape(-1, 1)).reshape(x.shape)


def _top() -> float:
    """Where the track is highest."""
    x = np.linspace(0, 2 * math.pi, 100_001)
    return float(x[_energy(x).argmax()])


def slowness(q: float, top_speed: float, x: np.ndarray) -> np.ndarray:
    """dt/dx from the conservation of energy, for a start at the top with the given v."""
    fall = _energy(np.asarray(_top())) - _energy(x)
    if q == 1:
        return top_speed * np.exp(fall)
    square = (top_speed ** (2 - 2 * q) + 2 * (1 - q) * fall) ** (1 / (1 - q))
    return square ** (q - 0.5)


def _bins(density: np.ndarray) -> np.ndarray:
    """The share of each bin, from the density at its quadrature points."""
    mass = density.reshape(BINS, FINE).sum(axis=1)
    return mass / mass.sum()


def _places() -> np.ndarray:
    count = BINS * FINE
    return (np.arange(count) + 0.5) * 2 * math.pi / count


def _ride(q: float, steps: int) -> np.ndarray:
    """Positions of the leapfrog path at equal times, whole circuits, one chain for each speed."""
    x = _places()
    periods = np.asarray([slowness(q, v, x).mean() * 2 * math.pi for v in SPEEDS])
    path = trajectory(
        roller_coaster(),
        init=np.full((len(SPEEDS), 1), _top()),
        velocity=np.asarray(SPEEDS)[:, None],
        sampler=Unscaled(step_size=periods * CIRCUITS / steps, q=q),
        steps=steps,
    )
    return path.x[1:, :, 0] % (2 * math.pi)


def _share(x: np.ndarray) -> np.ndarray:
    counts, _ = np.histogram(x, bins=BINS, range=(0, 2 * math.pi))
    return counts / counts.sum()


def _distance(p, q) -> float:
    """Total variation, ½ Σ |p − q|."""
    return short(np.abs(p - q).sum() / 2)


def _compute(settings: Settings, advance: Advance) -> dict[str, Any]:
    x, steps = _places(), _steps(settings)
    height = _energy(x)
    upper = height > (height.max() + height.min()) / 2
    boltzmann = _bins(np.exp(-height))
    rows, rides = [], {}
    for q in _family(settings):
        ride = _ride(q, steps)
        for k, speed in enumerate(SPEEDS):
            rode, exact = _share(ride[:, k]), slowness(q, speed, x)
            rows.append(
                {
                    "q": q,
                    "top_speed": speed,
                    "distance": _distance(rode, boltzmann),
                    "distance_exact": _distance(_bins(exact), boltzmann),
                    "ride_to_exact": _distance(rode, _bins(exact)),
                    "high": short(np.mean(_energy(ride[:, k]) > height[upper].min())),
                }
            )
            if speed == SHOWN and q in LABELS:
                once = ride[: steps // CIRCUITS, k]
                rides[LABELS[q]] = {
                    "time": short(rode * BINS / (2 * math.pi)),
                    "exact": short(_bins(exact) * BINS / (2 * math.pi)),
                    "dots": short(once[(np.arange(DOTS) * len(once)) // DOTS]),
                }
        advance(f"q = {q:g}")
    grid = np.linspace(0, 1, 41)
    return {
        "steps": steps,
        "boltzmann": short(boltzmann * BINS / (2 * math.pi)),
        "boltzmann_high": short(np.exp(-height)[upper].sum() / np.exp(-height).sum()),
        "rides": rides,
        "rows": rows,
        "curves": {
            "q": short(grid),
            **{
                f"{v:g}": [_distance(_bins(slowness(q, v, x)), boltzmann) for q in grid]
                for v in SPEEDS
            },
        },
    }


def _draw(result: dict[str, Any], folder: pathlib.Path) -> list[str]:
    folder.mkdir(parents=True, exist_ok=True)
    figure = Figure(figsize=(6.5, 4.6), layout="constrained")
    places = figure.subplot_mosaic([["Newton", "ESH"], ["time", "family"]], height_ratios=(1, 1.25))
    colours = {"Newton": plotting.look("HMC").colour, "ESH": plotting.look("ESH").colour}
    centres = (np.arange(BINS) + 0.5) * 2 * math.pi / BINS
    line = np.linspace(0, 2 * math.pi, 400)
    ticks: Any = {
        "xticks": (0, math.pi, 2 * math.pi),
        "xticklabels": ("0", "π", "2π"),
        "xlabel": "place on the track x",
    }
    for name, ride in result["rides"].items():
        axes, x = places[name], np.asarray(ride["dots"])
        axes.plot(line, _energy(line), color=plotting.FAINT, linewidth=1)
        axes.plot(x, _energy(x), "o", color=colours[name], markersize=3.5)
        axes.set(title=f"{name}: dots at equal times", ylabel="energy E", **ticks)
    axes = places["time"]
    axes.fill_between(
        centres, result["boltzmann"], step="mid", color="#DDDDDD", label="Boltzmann $e^{-E}/Z$"
    )
    for name, ride in result["rides"].items():
        axes.plot(centres, ride["exact"], color=colours[name], linewidth=1, label=f"{name}, exact")
        axes.plot(centres[::2], ride["time"][::2], "o", markersize=2.5, color=colours[name])
    axes.set(
        ylabel="share of time per dx", ylim=(0, 0.68), title="Time spent: rides (dots)", **ticks
    )
    axes.legend(fontsize=7.5, loc="upper left")
    axes = places["family"]
    curves, greys = result["curves"], ("#AAAAAA", "#666666", "#000000")
    for speed, grey, mark in zip(SPEEDS, greys, "s^o", strict=True):
        axes.plot(curves["q"], curves[f"{speed:g}"], color=grey, linewidth=1)
        rows = [row for row in result["rows"] if row["top_speed"] == speed]
        axes.plot(
            [row["q"] for row in rows],
            [row["distance"] for row in rows],
            mark,
            color=grey,
            label=f"v = {speed:g}",
        )
    axes.set(
        xlabel="q (0 Newton, 1 ESH)",
        ylabel="total variation",
        ylim=(0, None),
        title="Distance of time spent from Boltzmann",
    )
    axes.legend(fontsize=7.5, title="speed at the top", title_fontsize=7.5)
    figure.savefig(folder / "roller-coaster.png")
    return ["roller-coaster.png"]


def _of(result, q, key):
    return [row[key] for row in result["rows"] if row["q"] == q]


def _tell(result: dict[str, Any]) -> str:
    lines = [
        "| q | " + " | ".join(f"v = {v:g} at the top" for v in SPEEDS) + " |",
        "|---|" + "---|" * len(SPEEDS),
    ]
    for q in sorted({row["q"] for row in result["rows"]}):
        name = f"{q:g} ({LABELS[q]})" if q in LABELS else f"{q:g}"
        lines.append(
            f"| {name} | " + " | ".join(f"{v:.4f}" for v in _of(result, q, "distance")) + " |"
        )
    newton, esh = _of(result, 0.0, "high")[1], _of(result, 1.0, "high")[1]
    apart = max(row["ride_to_exact"] for row in result["rows"])
    text = (
        f"The ESH rider spends {esh:.1%} of the time on "
        f"the upper half of the track, as e^(−E) has it ({result['boltzmann_high']:.1%}), the "
        f"Newtonian rider {newton:.0%}. "
        f"The distance of the time spent under ESH from the Boltzmann distribution is "
        f"{max(_of(result, 1.0, 'distance')):.4f} at most, at every speed; under Newton it is "
        f"{min(_of(result, 0.0, 'distance')):.2f} to {max(_of(result, 0.0, 'distance')):.2f}, "
        "depending on the speed. Between them (App. A.1) the time is even at q = ½ and leans "
        "towards the valleys beyond it, and only q = 1 gives e^(−E). The rides "
        f"({result['steps']} leapfrog steps, {CIRCUITS} circuits) agree with dt/dx from the "
        f"conservation of energy to {apart:.4f}."
    )
    return (
        "Total variation distance between the time spent and e^(−E)/Z:\n\n"
        + "\n".join(lines)
        + "\n\n"
        + text
    )


ITEM = Item(
    name="roller-coaster",
    title="Roller coaster",
    place="Figure 2 and Appendix A.1",
    compute=_compute,
    draw=_draw,
    tell=_tell,
    parts=lambda settings: len(_family(settings)),
)
