"""Movies of many chains: integrators and samplers on the mixture from one mode, and the funnel.

Positions are stored as bytes over the window that is shown, finer than a pixel: 0 … 254 from edge
to edge, 255 for what lies outside.
"""

import base64
from collections.abc import Callable
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.animation import FuncAnimation, PillowWriter

from schuss import plotting, targets
from schuss.paper import integrators, samplers
from schuss.paper.item import Advance, Item, Settings

EVERY, SHOWN = 10, 200
STILLS = (0, 10, 20, 40, 80, 200)
OUTSIDE = 255
EARLY = 40
"""Gradients after which the paper's figures end."""


RUNGE_KUTTA = {"RK": True, "RK-orig": False}
"""The adaptive integrators of Figure 13, by whether their dynamics is scaled."""


class Movie(NamedTuple):
    """Which samplers, on which target, seen through which window."""

    target: str
    names: tuple[str, ...]
    window: tuple[tuple[float, float], tuple[float, float]]
    project: Callable[[np.ndarray], np.ndarray]  # (…, dim) → (…, 2)


def _funnel_plane(x: np.ndarray) -> np.ndarray:
    """y, and x_1 on a scale that is logarithmic far out."""
    return np.stack([x[..., 0], np.arcsinh(x[..., 1])], axis=-1)


MOVIES = {
    "integrators": Movie(
        "mog-prior",
        (
            "ESH-leap",
            "ESH-leap 0.01",
            "ESH-leap-orig 0.1",
            "ESH-leap-orig 0.01",
            *RUNGE_KUTTA,
        ),
        ((-0.9, 0.9), (-0.9, 0.9)),
        lambda x: x,
    ),
    "samplers": Movie("mog-prior", samplers.TABLE, ((-0.9, 0.9), (-0.9, 0.9)), lambda x: x),
    "funnel": Movie("funnel", samplers.TABLE, ((-9.0, 9.0), (-6.0, 6.0)), _funnel_plane),
}


def compute(settings: Settings, advance: Advance) -> dict[str, Any]:
    """Chains every ten gradients, as bytes, and how evenly they cover the target."""
    size = samplers.size(settings)
    grid = list(range(0, size.gradients + 1, EVERY))
    found: dict[str, Any] = {"gradients": grid, "chains": size.chains, "movies": {}}
    seen: dict[tuple[str, str], dict[str, Any]] = {}
    for title, movie in MOVIES.items():
        target = targets.get(movie.target)
        for name in movie.names:
            if (movie.target, name) not in seen:
                x = _positions(name, target, size, grid, settings.seed)
                numbers = _variance(x) if movie.target == "funnel" else _occupancy(x)
                places = pack(movie.project(x[:, :SHOWN]), movie.window)
                seen[movie.target, name] = {"measure": numbers, "places": places}
            found["movies"].setdefault(title, {})[name] = seen[movie.target, name]
            advance(f"{title}: {name}")
    return found


def _positions(name: str, target, size: samplers.Size, grid, seed: int) -> np.ndarray:
    """One sample of each chain at every checkpoint, (checkpoints, chains, dim)."""
    if name not in RUNGE_KUTTA:
        return samplers.run(name, target, size.gradients, size.chains, seed).at(grid, seed)
    return integrators.adaptive(target, RUNGE_KUTTA[name], size.chains, grid, seed)


def _colour(name: str) -> str:
    look = plotting.look("HMC" if name in RUNGE_KUTTA else samplers.SAMPLERS[name])
    return look.colour


def _occupancy(x: np.ndarray) -> list[float]:
    """Total variation between the shares of chains nearest to each mode and equal ones."""
    angle = np.arctan2(x[..., 1], x[..., 0])
    mode = np.round(angle / (np.pi / 4)).astype(int) % 8
    shares = np.stack([(mode == k).mean(axis=1) for k in range(8)])
    return [round(float(v), 4) for v in np.abs(shares - 1 / 8).sum(axis=0) / 2]


def _variance(x: np.ndarray) -> list[float]:
    return [float(f"{v:.4g}") for v in x[..., 0].var(axis=1, ddof=1)]


def pack(plane: np.ndarray, window) -> str:
    """Places (frames, chains, 2) as text."""
    low, high = np.asarray(window, float).T
    level = (plane - low) / (high - low)
    inside = np.all((level >= 0) & (level <= 1), axis=-1, keepdims=True)
    coded = np.where(inside, np.round(np.clip(level, 0, 1) * (OUTSIDE - 1)), OUTSIDE)
    return base64.b64encode(coded.astype(np.uint8).tobytes()).decode()


def unpack(text: str, frames: int, window) -> np.ndarray:
    """Places (frames, chains, 2), NaN for those outside."""
    coded = np.frombuffer(base64.b64decode(text), np.uint8).reshape(frames, -1, 2).astype(float)
    low, high = np.asarray(window, float).T
    return np.where(coded == OUTSIDE, np.nan, low + coded / (OUTSIDE - 1) * (high - low))


def draw(result: dict[str, Any], folder) -> list[str]:
    """For each movie a grid of stills and an animation."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for title in MOVIES:
        written += [_stills(result, title, folder), _animation(result, title, folder)]
    return written


def _stills(result, title, folder) -> str:
    grid, movie = result["gradients"], MOVIES[title]
    moments = [k for k in STILLS if k in grid]
    figure, panels = plt.subplots(
        len(movie.names),
        len(moments),
        figsize=(6.5, 0.35 + 1.08 * len(movie.names)),
        squeeze=False,
        layout="constrained",
    )
    for row, name in zip(panels, movie.names, strict=True):
        colour, places = _colour(name), _places(result, title, name)
        for axes, k in zip(row, moments, strict=True):
            _panel(axes, movie)
            axes.plot(*places[grid.index(k)].T, ".", color=colour, markersize=1.6, alpha=0.7)
            if name == movie.names[0]:
                axes.set_title(f"{k} gradients" if k == 0 else f"{k}", fontsize=10)
        row[0].set_ylabel(name.replace("-orig", "\n-orig"), color=colour, fontsize=10)
    file = f"movies-{title}.png"
    figure.savefig(folder / file, dpi=130)
    plt.close(figure)
    return file


def _animation(result, title, folder) -> str:
    grid, movie = result["gradients"], MOVIES[title]
    columns = min(3, len(movie.names)) if len(movie.names) != 4 else 4
    rows = -(-len(movie.names) // columns)
    height = 6.5 / columns * rows
    figure, panels = plt.subplots(
        rows, columns, figsize=(6.5, height + 0.3), squeeze=False, layout="constrained"
    )
    dots = []
    for axes, name in zip(panels.flat, movie.names, strict=True):
        colour = _colour(name)
        _panel(axes, movie)
        axes.set_title(name, color=colour, fontweight="bold", fontsize=11)
        (dot,) = axes.plot([], [], ".", color=colour, markersize=2)
        dots.append((dot, _places(result, title, name)))
    words = figure.supxlabel("0 gradients", fontsize=12)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # what is laid out once needn't be for every frame

    def show(frame):
        words.set_text(f"{grid[frame]} gradients")
        for dot, places in dots:
            dot.set_data(*places[frame].T)
        return [dot for dot, _ in dots]

    file = f"movies-{title}.gif"
    animation = FuncAnimation(figure, show, frames=len(grid), blit=False)
    animation.save(folder / file, writer=PillowWriter(fps=4), dpi=80)
    plt.close(figure)
    return file


def _places(result, title, name) -> np.ndarray:
    text = result["movies"][title][name]["places"]
    return unpack(text, len(result["gradients"]), MOVIES[title].window)


def _panel(axes, movie: Movie) -> None:
    if movie.target == "funnel":
        line = np.linspace(*movie.window[0], 100)
        for sign in (-2, 2):
            edge = np.arcsinh(sign * np.exp(-line / 2))
            axes.plot(line, edge, color=plotting.FAINT, linewidth=0.6)
        axes.set(xticks=[], yticks=[])
        axes.spines[["left", "bottom"]].set_visible(False)
    else:
        plotting.density(axes, targets.get(movie.target), movie.window[0][1])
        plotting.bare(axes)
    axes.set(xlim=movie.window[0], ylim=movie.window[1])


def tell(result: dict[str, Any]) -> str:
    """How evenly the modes are covered, and what the movies show."""
    grid = result["gradients"]
    moments = [k for k in STILLS if k in grid]
    head = ["| | " + " | ".join(f"{k} gradients" for k in moments) + " |"]
    head.append("|---" * (len(moments) + 1) + "|")

    def lines(title, digits):
        return [
            f"| {name} | "
            + " | ".join(f"{seen['measure'][grid.index(k)]:.{digits}f}" for k in moments)
            + " |"
            for name, seen in result["movies"][title].items()
        ]

    early = max(k for k in moments if k <= EARLY)
    at = grid.index(early)
    leaders = {title: _leader(result, title, at) for title in ("integrators", "samplers")}
    orig = min(
        seen["measure"][at]
        for name, seen in result["movies"]["integrators"].items()
        if "orig" in name
    )
    esh = result["movies"]["integrators"]["ESH-leap"]["measure"][at]
    mixture = dict.fromkeys(lines("integrators", 3) + lines("samplers", 3))
    return "\n".join(
        [
            f"{result['chains']} chains; {min(SHOWN, result['chains'])} of them are shown. Total "
            "variation between the shares of chains at each of the eight modes and equal ones "
            "(from one mode it starts at .875):",
            "",
            *head,
            *mixture,
            "",
            "Var[y] on the funnel, which should be 9:",
            "",
            *head,
            *lines("funnel", 2),
            "",
            f"After {early} gradients the modes are covered most evenly by "
            f"{leaders['integrators']} among the integrators and by {leaders['samplers']} among "
            f"the samplers. The leapfrog for the original dynamics is here the paper's equation, "
            f"with its step divided by v²/d; the public code leaves the division out, so its curve "
            f"is Newton's. At best it is at {orig:.2f} then, ESH-leap at {esh:.2f}. After "
            f"{grid[-1]} gradients {_leader(result, 'samplers', -1)} leads the samplers. None of "
            "them fills the funnel. The Runge–Kutta integrators are in a section of their own.",
        ]
    )


def _leader(result, title, at) -> str:
    measures = {name: seen["measure"][at] for name, seen in result["movies"][title].items()}
    return min(measures, key=lambda name: measures[name])


def parts(settings: Settings) -> int:
    """Samplers of all movies."""
    return sum(len(movie.names) for movie in MOVIES.values())


ITEM = Item(
    name="movies",
    title="Movies of the chains",
    place="Figures 13, 14 and 18",
    compute=compute,
    draw=draw,
    tell=tell,
    parts=parts,
)
