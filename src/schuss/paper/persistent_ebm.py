"""What the image models have in common: runs of both samplers, a distance curve, and samples.

The work is done by `schuss.ebm.persistent`, in a folder that a long computation can be continued
in or, where it was made on another machine, be read from.
"""

import base64
import contextlib
import dataclasses
import pathlib
import tempfile
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from schuss import plotting
from schuss.paper.item import Advance, Item, Settings, short

SAMPLERS = ("ESH", "ULA")
ROWS, COLUMNS = 4, 6  # images in a panel


@dataclasses.dataclass(frozen=True)
class Page:
    """One data set's item: its recipe's name, its words, and the public code's seconds."""

    name: str
    recipe: str
    title: str
    place: str
    public: Callable[[Settings], float]
    about: str

    def item(self) -> Item:
        """As `schuss reproduce` wants it."""
        return Item(
            name=self.name,
            title=self.title,
            place=self.place,
            compute=self._compute,
            draw=self._draw,
            tell=self._tell,
            verdict=verdict,
            parts=self._parts,
            public=self.public,
        )

    def _recipe(self, settings: Settings):
        from schuss.ebm.recipes import RECIPES, smaller

        recipe = RECIPES[self.recipe]
        return smaller(recipe) if settings.quick else recipe

    def _seeds(self, settings: Settings) -> range:
        return range(settings.seed, settings.seed + (1 if settings.quick else settings.seeds))

    def _parts(self, settings: Settings) -> int:
        return len(SAMPLERS) * len(self._seeds(settings))

    def _compute(self, settings: Settings, advance: Advance) -> dict[str, Any]:
        from schuss.ebm.persistent import run_all

        def finished(done: str) -> None:
            if "from noise" in done or "there already" in done:
                advance(done)

        with workplace(settings, self.name) as work:
            made = run_all(
                self._recipe(settings),
                settings.data,
                work,
                seeds=self._seeds(settings),
                compile=False if settings.quick else None,
                advance=finished,
            )
            rows = [_row(run) for run in made["runs"]]
            pictures = {sampler: _pictures(work, made["runs"], sampler) for sampler in SAMPLERS}
        runs = [
            {key: run[key] for key in ("sampler", "seed", "curve", "rollbacks", "pixel_sd")}
            | {"seconds": short(run["seconds"]), "speed": short(run["image_gradients_per_second"])}
            for run in made["runs"]
        ]
        marks = made["marks"]
        told = {"rows": rows, "marks": marks, "runs": runs, "images": pictures}
        told["machine"] = "; ".join(dict.fromkeys(run["machine"] for run in made["runs"]))
        return told | {"seconds": sum(run["seconds"] for run in made["runs"])}

    def _draw(self, result: dict[str, Any], folder: pathlib.Path) -> list[str]:
        folder.mkdir(parents=True, exist_ok=True)
        figure = Figure(figsize=(6.5, 3.7), layout="constrained")
        halves: Any = figure.subfigures(1, 2, width_ratios=(2.2, 1))
        left, right = halves
        panels = left.subplots(2, 2)
        for row, sampler in zip(panels, SAMPLERS, strict=True):
            for axes, kind in zip(row, ("buffer", "noise"), strict=True):
                axes.imshow(sheet(result["images"][sampler][kind]), cmap="gray", vmin=0, vmax=255)
                plotting.bare(axes)
                where = "buffer" if kind == "buffer" else "from noise"
                axes.set_title(f"{sampler}, {where}")
        axes = right.subplots()
        for run in result["runs"]:
            shown = plotting.look(run["sampler"])
            points = [(p["gradients"], p["distance"]) for p in run["curve"]]
            first = run["seed"] == min(other["seed"] for other in result["runs"])
            axes.plot(
                *zip(*points, strict=True),
                color=shown.colour,
                marker=shown.marker,
                label=run["sampler"] if first else None,
            )
        axes.set(title="Distance of the buffer", xlabel="gradients", ylim=(0, None))
        axes.legend()
        figure.savefig(folder / f"{self.name}.png")
        return [f"{self.name}.png"]

    def _tell(self, result: dict[str, Any]) -> str:
        lines = [
            "| sampler | buffer, each seed | from noise, each seed | seconds | "
            "image-gradients a second |",
            "|---|---|---|---|---|",
        ]
        for sampler in SAMPLERS:
            runs = [run for run in result["runs"] if run["sampler"] == sampler]
            each = [
                ", ".join(f"{value:.2f}" for value in values(result, sampler, key))
                for key in ("distance", "distance_from_noise")
            ]
            seconds = np.mean([run["seconds"] for run in runs])
            speed = np.mean([run["speed"] for run in runs])
            lines.append(f"| {sampler} | {' | '.join(each)} | {seconds:.0f} | {speed:,.0f} |")
        marks, row = result["marks"], result["rows"][0]
        scales = "; ".join(
            f"of {size} images, {m['floor']:.2f} for training images, {m['noisy']:.2f} with noise "
            f"of sd .1 on them, {m['one class']:.1f} for a single class and "
            f"{m['ceiling']:.1f} for uniform noise"
            for size, m in marks["distances"].items()
        )
        rolled = sum(len(run["rollbacks"]) for run in result["runs"])
        means = {
            (sampler, key): values(result, sampler, key).mean()
            for sampler in SAMPLERS
            for key in ("distance", "distance_from_noise")
        }
        text = (
            f"**{verdict(result).capitalize()}.** After {row['gradients']:,} gradients a chain's "
            f"slot, the buffer's mean distance is {means['ESH', 'distance']:.2f} with ESH and "
            f"{means['ULA', 'distance']:.2f} with ULA; from noise, after "
            f"{row['gradients_from_noise']:,} gradients on the averaged weights, "
            f"{means['ESH', 'distance_from_noise']:.2f} and "
            f"{means['ULA', 'distance_from_noise']:.2f}: {_told_apart(result)}. {self.about} The "
            "distance is Fréchet's, "
            f"on the {marks['features']} pooled features of a classifier trained here "
            f"({marks['accuracy']:.1%} accurate), to as many test images: {scales}. It can't be "
            "compared with published FIDs. "
            + (
                f"Divergences were caught and rolled back {rolled} times."
                if rolled
                else "All runs went to their end, none had to be rolled back."
            )
        )
        return "\n".join(lines) + "\n\n" + text


@contextlib.contextmanager
def workplace(settings: Settings, name: str) -> Iterator[pathlib.Path]:
    """The folder of an item under `settings.work`, or one that is gone afterwards."""
    if settings.work is not None and not settings.quick:
        yield settings.work / name
        return
    with tempfile.TemporaryDirectory() as temporary:
        yield pathlib.Path(temporary)


def _row(run: dict[str, Any]) -> dict[str, Any]:
    same = ("data", "sampler", "seed", "gradients", "gradients_from_noise")
    measured = ("distance", "distance_from_noise")
    return {k: run[k] for k in same} | {k: short(run[k]) for k in measured}


def _pictures(work: pathlib.Path, runs: list[dict[str, Any]], sampler: str) -> dict[str, Any]:
    first = next(run["name"] for run in runs if run["sampler"] == sampler)
    with np.load(work / f"{first}.npz") as held:
        return {kind: packed(held[kind][: ROWS * COLUMNS]) for kind in ("buffer", "noise")}


def packed(images: np.ndarray) -> dict[str, Any]:
    """Bytes as text that JSON can hold."""
    text = base64.b64encode(zlib.compress(np.ascontiguousarray(images).tobytes(), 9)).decode()
    return {"shape": list(images.shape), "bytes": text}


def sheet(picture: dict[str, Any], columns: int = COLUMNS) -> np.ndarray:
    """Images side by side with a gap of one, (height, width, 3) or (height, width)."""
    raw = zlib.decompress(base64.b64decode(picture["bytes"]))
    images = np.frombuffer(raw, np.uint8).reshape(picture["shape"])
    padded = np.pad(images, ((0, 0), (0, 0), (0, 1), (0, 1)), constant_values=255)
    n, channels, height, width = padded.shape
    rows = n // columns
    grid = padded[: rows * columns].reshape(rows, columns, channels, height, width)
    grid = grid.transpose(0, 3, 1, 4, 2).reshape(rows * height, columns * width, channels)
    return grid[..., 0] if channels == 1 else grid


def values(result: dict[str, Any], sampler: str, key: str) -> np.ndarray:
    """One number for each seed."""
    return np.asarray([row[key] for row in result["rows"] if row["sampler"] == sampler])


def _difference(result: dict[str, Any], key: str) -> tuple[float, float]:
    """ESH's mean less ULA's, and its standard error by the scatter of the seeds."""
    both = [values(result, sampler, key) for sampler in SAMPLERS]
    error = sum(one.var(ddof=1) / len(one) if len(one) > 1 else np.inf for one in both) ** 0.5
    return float(both[0].mean() - both[1].mean()), float(error)


def _told_apart(result: dict[str, Any]) -> str:
    words = []
    for key, name in (("distance", "in the buffer"), ("distance_from_noise", "from noise")):
        change, error = _difference(result, key)
        if abs(change) <= 2 * error:
            words.append(f"{name} the difference is within the scatter of the seeds")
        else:
            nearer = "ESH" if change < 0 else "ULA"
            words.append(f"{name} {nearer} is nearer, beyond the scatter of the seeds")
    return "; ".join(words)


def verdict(result: dict[str, Any]) -> str:
    """Whether ESH is nearer than ULA in the buffer and from noise, beyond the scatter of seeds."""
    pairs = [_difference(result, key) for key in ("distance", "distance_from_noise")]
    if all(change < -2 * error for change, error in pairs):
        return "holds"
    return "holds in part" if any(change < 0 for change, _ in pairs) else "doesn't hold"
