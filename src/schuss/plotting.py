"""One style for every picture: colours by sampler, quiet axes, sizes for a column of text."""

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.collections import LineCollection

from schuss.targets.target import Target


class Look(NamedTuple):
    """How a sampler is drawn: a colour-blind-safe colour (Okabe and Ito), a marker, a dash."""

    colour: str
    marker: str = "o"
    dash: Any = "-"


PALETTE = {
    "ESH": Look("#D55E00", "o"),
    "Unscaled": Look("#E69F00", "D", (0, (4, 1.5))),
    "ULA": Look("#0072B2", "s"),
    "MALA": Look("#56B4E9", "^"),
    "HMC": Look("#009E73", "v", (0, (4, 1.5))),
    "NoseHoover": Look("#CC79A7", "P"),
    "NUTS": Look("#000000", "X"),
}
INK, FAINT = "#333333", "#8A8A8A"


def look(algorithm) -> Look:
    """The look of an algorithm, or of the name of one."""
    name = algorithm if isinstance(algorithm, str) else type(algorithm).__name__
    return PALETTE.get(name, Look(INK))


@contextlib.contextmanager
def style() -> Iterator[None]:
    """Draw and save inside this."""
    settings: Any = {
        "font.size": 9,
        "axes.titlesize": 9,
        "axes.labelsize": 9,
        "axes.labelcolor": INK,
        "axes.edgecolor": FAINT,
        "axes.linewidth": 0.7,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "text.color": INK,
        "xtick.color": INK,
        "ytick.color": INK,
        "xtick.labelsize": 8,
        "ytick.labelsize": 8,
        "lines.linewidth": 1.6,
        "lines.markersize": 4,
        "legend.frameon": False,
        "figure.dpi": 100,
        "savefig.dpi": 150,
        "svg.fonttype": "none",
        "pdf.fonttype": 42,
    }
    with matplotlib.rc_context(settings):
        yield


def bare(axes) -> None:
    """A square panel without ticks, for places in the plane."""
    axes.set(xticks=[], yticks=[], aspect="equal")
    axes.spines[["top", "right", "left", "bottom"]].set_visible(False)


def density(axes, target: Target, reach: float, points: int = 161) -> None:
    """Levels of e^(−E/2) on [−reach, reach]²: of the root, so that the feet of modes are seen."""
    line = np.linspace(-reach, reach, points)
    plane = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    energy = target.energy(np, plane).reshape(points, points)
    height = np.exp(-(energy - energy.min()) / 2)
    axes.contourf(line, line, height, levels=np.linspace(0.06, 1.0, 7), cmap="Greys", vmax=2.0)
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach))


def trace(axes, x: np.ndarray, speed: np.ndarray, colour: str, widest: float = 4.0) -> None:
    """A path (steps, 2) whose line is as wide as the speed (steps,) is large."""
    pieces = np.stack([x[:-1], x[1:]], axis=1)
    middle = (speed[:-1] + speed[1:]) / 2
    widths = 0.4 + (widest - 0.4) * middle / max(middle.max(), np.finfo(float).tiny)
    axes.add_collection(
        LineCollection(list(pieces), linewidths=widths, colors=colour, capstyle="round")
    )
    axes.plot(*x[0], marker="o", markersize=3.5, color=INK, zorder=3)
