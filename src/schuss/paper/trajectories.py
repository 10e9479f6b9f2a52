"""Figure 1: one trajectory of each sampler on the mixture, as wide as its momentum."""

import math
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from schuss import plotting, targets
from schuss.paper import samplers
from schuss.paper.item import Advance, Item, Settings

NAMES = ("ESH-leap", "MALA 0.1", "NH", "NUTS")
GRADIENTS = 50
REACH, MODES = 0.82, 8


def compute(settings: Settings, advance: Advance) -> dict[str, Any]:
    """Paths of many chains, each sampler's from its own mode; the first chain is drawn."""
    target, size = targets.mog(), samplers.size(settings)
    chains, gradients = size.chains, min(GRADIENTS, size.gradients)
    centres = 0.5 * np.array([_circle(2 * math.pi * k / MODES) for k in range(MODES)])
    paths = {}
    for k, name in enumerate(NAMES):
        start = np.broadcast_to(centres[(2 - k) % MODES], (chains, 2)).copy()
        # As long as the other items' chains, whose compiled loops it shares, and then cut.
        found = samplers.run(name, target, size.gradients, seed=settings.seed, init=start)
        x = found.x[: gradients + 1]
        nearest = np.linalg.norm(x[:, :, None] - centres, axis=-1)
        visited = [len(set(modes)) for modes in _within(nearest).T]
        lengths = np.linalg.norm(np.diff(x, axis=0), axis=-1).sum(axis=0)
        speed = np.ones(len(x)) if found.speed is None else found.speed[: len(x), 0]
        paths[name] = {
            "x": np.round(x[:, 0], 4).tolist(),
            "speed": [float(f"{s:.4g}") for s in speed],
            "modes": round(float(np.mean(visited)), 3),
            "modes_sd": round(float(np.std(visited)), 3),
            "length": round(float(np.mean(lengths)), 3),
        }
        advance(name)
    return {"gradients": gradients, "chains": chains, "paths": paths}


def _circle(angle) -> tuple[float, float]:
    return math.cos(angle), math.sin(angle)


def _within(distances, radius=0.15):
    """The mode whose centre is within two standard deviations, else the one a chain began at."""
    modes = distances.argmin(axis=-1)
    near = distances.min(axis=-1) < radius
    return np.where(near, modes, modes[:1])


def draw(result: dict[str, Any], folder) -> list[str]:
    """All paths on one picture, and each by itself."""
    figure, panels = plt.subplots(1, len(NAMES), figsize=(6.5, 2.15), layout="constrained")
    for axes, name in zip(panels, NAMES, strict=True):
        path, seen = result["paths"][name], samplers.appearance(name)
        plotting.density(axes, targets.mog(), REACH)
        plotting.bare(axes)
        widest = 4.0 if name == "ESH-leap" else 1.8
        x, speed = np.asarray(path["x"]), np.asarray(path["speed"])
        speed = np.minimum(speed, speed.mean())  # or the fastest stretch would dwarf the others
        plotting.trace(axes, x, speed, seen.colour, widest)
        axes.set_title(name, color=seen.colour, fontweight="bold")
        axes.set_xlabel(
            f"{path['modes']:.1f} modes, {path['length']:.2g} long,\non average", fontsize=8
        )
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "trajectories.png")
    plt.close(figure)
    return ["trajectories.png"]


def tell(result: dict[str, Any]) -> str:
    """How far the samplers get."""
    rows = ["| | modes visited, of 8 (sd over chains) | length of the path |", "|---|---|---|"]
    for name, path in result["paths"].items():
        rows.append(
            f"| {name} | {path['modes']:.2f} ({path['modes_sd']:.2f}) | {path['length']:.2f} |"
        )
    paths = result["paths"]
    others = max(path["modes"] for name, path in paths.items() if name != "ESH-leap")
    return "\n".join(
        [
            f"One chain of each sampler for {result['gradients']} gradients, each from a mode "
            "(dot); the line of ESH is as wide as its momentum |v| (up to its mean), which is "
            f"large where the density is. The table is over {result['chains']} chains.",
            "",
            *rows,
            "",
            f"ESH moves the same distance in every step and visits "
            f"{paths['ESH-leap']['modes']:.1f} modes on average, the best of the others "
            f"{others:.1f}. Nosé–Hoover's ε of .01 takes it {paths['NH']['length']:.2f} far where "
            f"ESH, with .1, goes {paths['ESH-leap']['length']:.2g}: that is the paper's choice of "
            "steps and not a property of the dynamics. NUTS is shown where its transitions ended, "
            "so its line is straight and of one width.",
        ]
    )


def parts(settings: Settings) -> int:
    """One for each sampler."""
    return len(NAMES)


ITEM = Item(
    name="trajectories",
    title="Single trajectories",
    place="Figure 1",
    compute=compute,
    draw=draw,
    tell=tell,
    parts=parts,
)
