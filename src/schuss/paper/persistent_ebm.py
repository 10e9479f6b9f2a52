"""What the image models have in common: runs of both samplers, a distance curve, and samples.

The work is done by `schuss.ebm.persistent`, in a folder that a long computation can be continued
in or, where it was made on another machine, be read from.
"""

import base64
import contextlib
import dataclasses
import json
import pathlib
import tempfile
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from schuss import plotting
from schuss.paper import image_distances as distances
from schuss.paper.item import Advance, Item, Settings, short

LONG = "ESH-long"
ROWS, COLUMNS = 4, 6  # images in a panel


@dataclasses.dataclass(frozen=True)
class Page:
    """One data set's item: its recipe's name, its words, and the public code's seconds."""

    name: str
    recipe: str
    title: str
    place: str
    about: str
    long: bool = False  # whether one longer run of ESH, and its ensemble, belong to it

    def item(self) -> Item:
        """As `schuss reproduce` wants it."""
        return Item(
            name=self.name,
            title=self.title,
            place=self.place,
            compute=self._compute,
            draw=self._draw,
            tell=self._tell,
            parts=self._parts,
            alone=True,
        )

    def _recipe(self, settings: Settings):
        from schuss.ebm.recipes import RECIPES, smaller

        recipe = RECIPES[self.recipe]
        return smaller(recipe) if settings.quick else recipe

    def _seeds(self, settings: Settings) -> range:
        return range(settings.seed, settings.seed + (1 if settings.quick else settings.seeds))

    def _parts(self, settings: Settings) -> int:
        return len(distances.SAMPLERS) * len(self._seeds(settings)) + self.long

    def _long(self, settings: Settings, work: pathlib.Path, advance: Advance) -> dict[str, Any]:
        """The longer run, made or read; left out where it isn't there and neither is the data."""
        from schuss.ebm.persistent import run_all
        from schuss.ebm.recipes import longer

        there = (work / f"{LONG}.json").exists()
        if not self.long or not (there or settings.data or settings.quick):
            return {}
        recipe = self._recipe(settings)
        recipe = dataclasses.replace(recipe, ensemble=2) if settings.quick else longer(recipe)
        seeds, compiled = [settings.seed], False if settings.quick else None
        options: dict[str, Any] = {"samplers": ["ESH"], "label": "long", "compile": compiled}
        made = run_all(recipe, settings.data, work, seeds=seeds, advance=advance, **options)
        run = made["runs"][0]
        shown = ("buffer", "noise", "ensemble")
        told = _row(run) | _summary(run) | {"images": _pictures(work, LONG, shown)}
        return {"long": told | {"marks": run["marks"]}}

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
            pictures = {}
            for sampler in distances.SAMPLERS:
                first = next(run["name"] for run in made["runs"] if run["sampler"] == sampler)
                pictures[sampler] = _pictures(work, first, ("buffer", "noise"))
                pictures |= _pictures(work, first, ("data",))
            long = self._long(settings, work, finished)
            others = _other_steps(work)
        told = {"rows": [_row(run) for run in made["runs"]], "marks": made["marks"]}
        if "beside" in made["runs"][0]:
            told["beside"] = made["runs"][0]["beside"]["marks"]
        told |= {"runs": [_summary(run) for run in made["runs"]], "images": pictures} | long
        told["other_steps"] = others
        told["machine"] = "; ".join(dict.fromkeys(run["machine"] for run in made["runs"]))
        runs = [*told["runs"], *long.values()]
        return told | {"seconds": sum(run["seconds"] for run in runs)}

    def _draw(self, result: dict[str, Any], folder: pathlib.Path) -> list[str]:
        """Cells of one size: data and curves first, then a row for each sampler."""
        folder.mkdir(parents=True, exist_ok=True)
        long, shown = result.get("long"), [(s, result["images"][s]) for s in distances.SAMPLERS]
        apart = bool(long) and not distances.alike(long["marks"], result["marks"])
        cells = [("Data", result["images"]["data"])] if "data" in result["images"] else []
        cells.append(("Distance of the buffer", result["runs"]))
        if long:
            shown.append(("ESH, long", long["images"]))
        for name, images in shown:
            cells += [
                (f"{name}, buffer", images["buffer"]),
                (f"{name}, from noise", images["noise"]),
            ]
        if long:
            members = long["ensemble"]["members"]
            cells.append((f"Ensemble of {members}, from noise", long["images"]["ensemble"]))
        if apart:
            cells.append(("The long run, by the other ruler", []))
        count = -(-len(cells) // 2)
        figure = Figure(figsize=(6.5, 2.25 * count), layout="constrained")
        panels = figure.subplots(count, 2, squeeze=False).flat
        for axes, (title, content) in zip(panels, cells, strict=False):
            if isinstance(content, dict):
                _show(axes, content, title)
                continue
            for run in content:
                first = run["seed"] == min(other["seed"] for other in result["runs"])
                _curve(axes, run, run["sampler"] if first else None)
            if long and apart != bool(content):
                _curve(axes, long, "ESH, long", linestyle=(0, (2, 1)))
            axes.set(title=title, xlabel="thousand gradients", ylim=(0, None))
            if long:
                axes.set_xscale("log")
                axes.xaxis.set_major_formatter("{x:g}")
            axes.legend()
        if len(cells) % 2:
            figure.axes[-1].set_visible(False)
        figure.savefig(folder / f"{self.name}.png", dpi=110)
        return [f"{self.name}.png"]

    def _tell(self, result: dict[str, Any]) -> str:
        lines = [
            "| sampler | buffer, each seed | from noise, each seed | seconds | "
            "image-gradients a second |",
            "|---|---|---|---|---|",
        ]
        other = distances.by_the_other(result) if "beside" in result else None

        def cells(measured: dict[str, Any], sampler: str) -> str:
            each = (distances.values(measured, sampler, key) for key in distances.MEASURED)
            return " | ".join(", ".join(f"{value:.2f}" for value in row) for row in each)

        for sampler in distances.SAMPLERS:
            runs = [run for run in result["runs"] if run["sampler"] == sampler]
            seconds = np.mean([run["seconds"] for run in runs])
            speed = np.mean([run["speed"] for run in runs])
            lines.append(f"| {sampler} | {cells(result, sampler)} | {seconds:.0f} | {speed:,.0f} |")
            if other:
                lines.append(f"| {sampler}, by the other ruler | {cells(other, sampler)} | | |")
        lines += distances.long_lines(result)
        for step, rows in result.get("other_steps", {}).items():
            each = (", ".join(f"{row[key]:.2f}" for row in rows) for key in distances.MEASURED)
            lines.append(f"| {step} | {' | '.join(each)} | | |")
        marks, row = result["marks"], result["rows"][0]
        scales = "; ".join(
            f"of {size} images, {m['floor']:.2f} for training images, {m['noisy']:.2f} with noise "
            f"of sd .1 on them, {m['one class']:.1f} for a single class and "
            f"{m['ceiling']:.1f} for uniform noise"
            for size, m in marks["distances"].items()
        )
        runs = [*result["runs"], *([result["long"]] if "long" in result else [])]
        rolled = sum(len(run["rollbacks"]) for run in runs)
        means = {
            (sampler, key): distances.values(result, sampler, key).mean()
            for sampler in distances.SAMPLERS
            for key in distances.MEASURED
        }
        text = (
            f"After {row['gradients']:,} gradients "
            f"a chain's slot, the buffer's mean distance is {means['ESH', 'distance']:.2f} with "
            f"ESH and {means['ULA', 'distance']:.2f} with ULA; from noise, after "
            f"{row['gradients_from_noise']:,} gradients on the averaged weights, "
            f"{means['ESH', 'distance_from_noise']:.2f} and "
            f"{means['ULA', 'distance_from_noise']:.2f}: {distances.told_apart(result)}. "
            f"{distances.beside_words(result)}{distances.long_words(result)}"
            f"{distances.where(result)} {self.about} "
            "The distance is Fréchet's, "
            f"on the {marks['features']} pooled features of a classifier trained here "
            f"({marks['accuracy']:.1%} accurate), to as many test images: {scales}. It can't be "
            "compared with published FIDs. "
            + (
                f"Divergences that were caught and rolled back: {rolled}."
                if rolled
                else "All runs went to their end, none had to be rolled back."
            )
        )
        return "\n".join(lines) + "\n\n" + text


def _other_steps(work: pathlib.Path) -> dict[str, Any]:
    """Runs with other steps, kept as `step/SAMPLER STEP/NAME.json`: what they came to."""
    found: dict[str, Any] = {}
    for file in sorted(work.glob("step/*/*.json")):
        run = json.loads(file.read_text())
        found.setdefault(file.parent.name, []).append(_row(run))
    return found


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
    told = {k: run[k] for k in same} | {k: short(run[k]) for k in distances.MEASURED}
    if "beside" in run:
        told["beside"] = {k: short(run["beside"][k]) for k in distances.MEASURED}
    return told


def _summary(run: dict[str, Any]) -> dict[str, Any]:
    told = {key: run[key] for key in ("sampler", "seed", "curve", "rollbacks", "pixel_sd")}
    if "ensemble" in run:
        told["ensemble"] = run["ensemble"]
    speed = short(run["image_gradients_per_second"])
    return told | {"seconds": short(run["seconds"]), "speed": speed}


def _pictures(work: pathlib.Path, name: str, kinds: tuple[str, ...]) -> dict[str, Any]:
    with np.load(work / f"{name}.npz") as content:
        return {kind: packed(content[kind][: ROWS * COLUMNS]) for kind in kinds}


def _show(axes, picture: dict[str, Any], title: str) -> None:
    axes.imshow(sheet(picture), cmap="gray", vmin=0, vmax=255)
    plotting.bare(axes)
    axes.set_title(title)


def _curve(axes, run: dict[str, Any], label: str | None, **options: Any) -> None:
    shown = plotting.look(run["sampler"])
    points = [(p["gradients"] / 1000, p["distance"]) for p in run["curve"]]
    options = {"color": shown.colour, "marker": shown.marker, "label": label} | options
    axes.plot(*zip(*points, strict=True), **options)


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
