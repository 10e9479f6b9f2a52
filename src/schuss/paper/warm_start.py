"""The best of both worlds (section 3.2): a few Langevin steps before ESH, at equal gradients."""

import pathlib
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from schuss import plotting, targets
from schuss.algorithms import ESH, ULA
from schuss.diagnostics import mmd2, null_level, reference
from schuss.paper.item import Advance, Item, Settings, short
from schuss.paper.markdown import table
from schuss.paper.samplers import TARGETS
from schuss.paper.step_sizes import samples_by_time, whitened
from schuss.trajectory import trajectory

WARM = (0, 5, 10, 20)
"""Gradients of Langevin's, ε = .1, before ESH with ε = .1 takes the rest."""
CHECKED = (25, 50, 100, 200)
NAMES = ("mog", "scg", "icg", "mog-prior", "scg-bias")
FAR = 3
"""The first so many begin as N(0, I), the others where a buffer would be."""


def _curve(target, exact, warm: int | None, chains: int, seed: int) -> list[float]:
    """MMD² at the checked gradients; `warm` None is Langevin throughout."""
    steps = CHECKED[-1]
    first = trajectory(
        target,
        chains=chains,
        sampler=ULA(step_size=0.1),
        steps=steps if warm is None else max(warm, 1),
        seed=seed,
        engine="numpy",
    )
    if warm is None:
        return [short(mmd2(whitened(target, first.x[k]), exact)) for k in CHECKED]
    sampler = ESH(step_size=0.1)
    path = trajectory(
        target,
        init=first.x[warm],
        sampler=sampler,
        steps=steps - warm,
        seed=seed + 1,
        engine="numpy",
    )
    found = []
    for k in CHECKED:
        n = k - warm
        x = samples_by_time(path.x[: n + 1], path.r[: n + 1], np.full(n, 0.1), seed)
        found.append(short(mmd2(whitened(target, x), exact)))
    return found


def _compute(settings: Settings, advance: Advance) -> dict[str, Any]:
    chains, count = (40, 500) if settings.quick else (500, 4000)
    found: dict[str, Any] = {"chains": chains, "targets": {}}
    for name in NAMES[:1] if settings.quick else NAMES:
        target = targets.get(name)
        assert target.sample is not None
        draws = target.sample(np.random.default_rng([settings.seed, 1]), count)
        exact = reference(whitened(target, draws))
        rows = {f"{k}": _curve(target, exact, k, chains, settings.seed) for k in WARM}
        rows["ULA"] = _curve(target, exact, None, chains, settings.seed)
        null = short(null_level(exact, chains, replicates=50))
        found["targets"][name] = {"null": null, "rows": rows}
        advance(TARGETS[name])
    return found


def _label(name: str) -> str:
    return {"0": "ESH", "ULA": "Langevin"}.get(name, f"{name} of Langevin, then ESH")


def _draw(result: dict[str, Any], folder: pathlib.Path) -> list[str]:
    folder.mkdir(parents=True, exist_ok=True)
    names = list(result["targets"])
    figure = Figure(figsize=(6.5, 2.6), layout="constrained")
    panels = figure.subplots(1, len(names), squeeze=False)[0]
    colours = {"0": plotting.look("ESH"), "ULA": plotting.look("ULA"), "10": plotting.look("HMC")}
    for axes, name in zip(panels, names, strict=True):
        shown = result["targets"][name]
        floor = 3 * shown["null"]
        for key, seen in colours.items():
            values = np.maximum(shown["rows"][key], floor / 3)
            axes.plot(CHECKED, values, color=seen.colour, linestyle=seen.dash, label=_label(key))
        axes.axhspan(floor / 10, floor, color=plotting.FAINT, alpha=0.25, linewidth=0)
        axes.set(yscale="log", title=TARGETS[name], xlabel="gradients", xticks=(0, 100, 200))
        axes.tick_params(labelsize=7)
    panels[0].set(ylabel="MMD²")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    figure.savefig(folder / "warm_start.png")
    return ["warm_start.png"]


def _tell(result: dict[str, Any]) -> str:
    rows = [
        (TARGETS[name], _label(key), *(f"{value:.4f}" for value in curve))
        for name, shown in result["targets"].items()
        for key, curve in shown["rows"].items()
    ]
    heads = ("", "chains of", *(f"{k} gradients" for k in CHECKED))
    return "\n\n".join(
        [
            f"MMD² of {result['chains']} chains at equal gradients, the first ones counted:",
            table(heads, rows),
            "On SCG the chains that begin spread out stay so, which mends what ESH cannot do there "
            "alone. From one mode of the mixture it is the other way round: ESH leaves the mode's "
            "centre, but of chains that Langevin has moved off it some are on orbits that never "
            "leave.",
        ]
    )


ITEM = Item(
    name="warm_start",
    title="Langevin first, then ESH",
    place="Section 3.2",
    compute=_compute,
    draw=_draw,
    tell=_tell,
    parts=lambda settings: 1 if settings.quick else len(NAMES),
)
