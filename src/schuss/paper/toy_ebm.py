"""The toy energy models: a mixture and rings, learned with ULA and with ESH and its weights.

Beside the pictures stands a number: the total variation distance between e^(−E)/Z on a grid and
the density that the data came from, E being the energy that the sampler saw (for ULA 200 times the
network's output, which is to its favour), after 50 gradients for each of 10 000 iterations.
"""

import pathlib
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from schuss import plotting
from schuss.paper.item import Advance, Item, Settings, short

DATA, SAMPLERS = ("mixture", "rings"), ("ESH", "ULA")


def _seeds(settings: Settings) -> list[int]:
    count = 2 if settings.quick else settings.seeds
    return [settings.seed + k for k in range(count)]


def _compute(settings: Settings, advance: Advance) -> dict[str, Any]:
    from schuss.ebm import toy

    rows, grids, minutes, machines = [], {}, {}, {}
    for name in DATA:
        for method in SAMPLERS:
            told = toy.run_toy(
                name,
                method,
                _seeds(settings),
                200 if settings.quick else 10_000,
                None if settings.work is None or settings.quick else settings.work / "toy_ebm",
                compile=False if settings.quick else None,
                advance=advance,
            )
            rows += [{k: _short(value) for k, value in row.items()} for row in told["rows"]]
            machines[told["machine"]] = None
            keys = ("minutes", "processor_minutes")
            minutes[f"{name}, {method}"] = [short(told[key], 3) for key in keys]
            grids.setdefault(name, {"reach": told["reach"], "truth": told["truth"]})
            grids[name][method] = told["learned"]
    seconds = 60 * sum(wall for wall, _ in minutes.values())
    told = {"rows": rows, "minutes": minutes, "grids": grids, "seconds": seconds}
    return told | {"machine": "; ".join(machines)}


def _short(value: Any) -> Any:
    return short(value) if isinstance(value, float) else value


def _levels(rows: list[str]) -> np.ndarray:
    return np.asarray([list(bytes.fromhex(row)) for row in rows], float) / 255


def _draw(result: dict[str, Any], folder: pathlib.Path) -> list[str]:
    folder.mkdir(parents=True, exist_ok=True)
    figure = Figure(figsize=(6.5, 4.6), layout="constrained")
    places = figure.subplots(2, 3)
    for row, name in zip(places, DATA, strict=True):
        for axes, shown in zip(row, ("truth", *SAMPLERS), strict=True):
            grids = result["grids"][name]
            reach = grids["reach"]
            axes.imshow(
                _levels(grids[shown]), origin="lower", cmap="Greys", extent=(-reach, reach) * 2
            )
            plotting.bare(axes)
            title = f"{name}: data" if shown == "truth" else shown
            if shown != "truth":
                title += f", distance {_mean(result, name, shown):.3f}"
            axes.set_title(title)
    figure.savefig(folder / "toy_ebm.png")
    return ["toy_ebm.png"]


def _values(result, name, method, key="distance") -> np.ndarray:
    rows = result["rows"]
    return np.asarray([r[key] for r in rows if r["data"] == name and r["sampler"] == method])


def _mean(result, name, method, key="distance") -> float:
    return float(_values(result, name, method, key).mean())


def _ratio(result, name) -> float:
    return _mean(result, name, "ESH") / _mean(result, name, "ULA")


def _tell(result: dict[str, Any]) -> str:
    lines = [
        "| data | sampler | distance, each seed | KL | last weights | e^(−output) | "
        "minutes (of processor) |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in DATA:
        for method in SAMPLERS:
            each = ", ".join(f"{value:.3f}" for value in _values(result, name, method))
            others = [
                f"{_mean(result, name, method, key):.3f}"
                for key in ("divergence", "distance_last", "distance_unscaled")
            ]
            wall, processor = result["minutes"][f"{name}, {method}"]
            lines.append(
                f"| {name} | {method} | {each} | {' | '.join(others)} | "
                f"{wall:.1f} ({processor:.1f}) |"
            )
    gradients = result["rows"][0]["gradients"]
    ratios = " and ".join(f"{_ratio(result, name):.2f} on the {name}" for name in DATA)
    ess = _mean(result, "mixture", "ESH", "weight_ess")
    text = (
        f"After {gradients // 1000}k gradients a chain the "
        "total variation distance of ESH's model from the truth is that of ULA's times "
        f"{ratios}. The distance is that of e^(−E), E being the energy that the sampler saw: "
        "ULA trains an energy of 200 times the network's output, and the paper's pictures of "
        "e^(−output) leave ULA's nearly flat (the column before the last). Weights are "
        "averaged over the last thousand iterations, for both samplers; the last weights, which "
        "SGD at a constant rate keeps shaking, are farther off. ESH's chains are weighed with "
        "the exact form of Jarzynski's weights, of which an effective "
        f"{ess:.0%} are left at the end; the public code's weights are wrong. Networks of all "
        "seeds train side by side in one batch, in compiled steps; minutes are for all of them."
    )
    return "\n".join(lines) + "\n\n" + text


ITEM = Item(
    name="toy_ebm",
    title="Toy energy models",
    place="Figure 8",
    compute=_compute,
    draw=_draw,
    tell=_tell,
    parts=lambda settings: 10 * len(DATA) * len(SAMPLERS),
    alone=True,
)
