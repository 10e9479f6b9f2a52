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
LONG = "ESH-long"
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
            verdict=verdict,
            parts=self._parts,
            public=self.public,
            alone=True,
        )

    def _recipe(self, settings: Settings):
        from schuss.ebm.recipes import RECIPES, smaller

        recipe = RECIPES[self.recipe]
        return smaller(recipe) if settings.quick else recipe

    def _seeds(self, settings: Settings) -> range:
        return range(settings.seed, settings.seed + (1 if settings.quick else settings.seeds))

    def _parts(self, settings: Settings) -> int:
        return len(SAMPLERS) * len(self._seeds(settings)) + self.long

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
            for sampler in SAMPLERS:
                first = next(run["name"] for run in made["runs"] if run["sampler"] == sampler)
                pictures[sampler] = _pictures(work, first, ("buffer", "noise"))
            long = self._long(settings, work, finished)
        told = {"rows": [_row(run) for run in made["runs"]], "marks": made["marks"]}
        told |= {"runs": [_summary(run) for run in made["runs"]], "images": pictures} | long
        told["machine"] = "; ".join(dict.fromkeys(run["machine"] for run in made["runs"]))
        runs = [*told["runs"], *long.values()]
        return told | {"seconds": sum(run["seconds"] for run in runs)}

    def _draw(self, result: dict[str, Any], folder: pathlib.Path) -> list[str]:
        folder.mkdir(parents=True, exist_ok=True)
        rows = [(sampler, result["images"][sampler]) for sampler in SAMPLERS]
        long = result.get("long")
        if long:
            rows.append(("ESH, long", long["images"]))
        figure = Figure(figsize=(6.5, 1.85 * len(rows)), layout="constrained")
        halves: Any = figure.subfigures(1, 2, width_ratios=(2.2, 1))
        left, right = halves
        for row, (name, images) in zip(left.subplots(len(rows), 2), rows, strict=True):
            for axes, kind in zip(row, ("buffer", "noise"), strict=True):
                where = "buffer" if kind == "buffer" else "from noise"
                _show(axes, images[kind], f"{name}, {where}")
        below = right.subplots(2 if long else 1, height_ratios=(2, 1) if long else None)
        axes = below[0] if long else below
        for run in result["runs"]:
            first = run["seed"] == min(other["seed"] for other in result["runs"])
            _curve(axes, run, run["sampler"] if first else None)
        if long:
            _curve(axes, long, "ESH, long", linestyle=(0, (2, 1)))
            members = long["ensemble"]["members"]
            _show(below[1], long["images"]["ensemble"], f"Ensemble of {members}, from noise")
        axes.set(title="Distance of the buffer", xlabel="thousand gradients", ylim=(0, None))
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
        lines += _long_lines(result)
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
            f"{means['ULA', 'distance_from_noise']:.2f}: {_told_apart(result)}. "
            f"{_long_words(result)}{_where(result)} {self.about} The distance is Fréchet's, "
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


def _summary(run: dict[str, Any]) -> dict[str, Any]:
    told = {key: run[key] for key in ("sampler", "seed", "curve", "rollbacks", "pixel_sd")}
    if "ensemble" in run:
        told["ensemble"] = run["ensemble"]
    speed = short(run["image_gradients_per_second"])
    return told | {"seconds": short(run["seconds"]), "speed": speed}


def _pictures(work: pathlib.Path, name: str, kinds: tuple[str, ...]) -> dict[str, Any]:
    with np.load(work / f"{name}.npz") as held:
        return {kind: packed(held[kind][: ROWS * COLUMNS]) for kind in kinds}


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


def _long_lines(result: dict[str, Any]) -> list[str]:
    """The longer run and its ensemble, as lines of the table."""
    if "long" not in result:
        return []
    run, together = result["long"], result["long"]["ensemble"]
    return [
        f"| ESH, long | {run['distance']:.2f} | {run['distance_from_noise']:.2f} | "
        f"{run['seconds']:.0f} | {run['speed']:,.0f} |",
        f"| ESH, long: ensemble of {together['members']} | | "
        f"{together['distance_from_noise']:.2f} | | |",
    ]


def _long_words(result: dict[str, Any]) -> str:
    if "long" not in result:
        return ""
    run = result["long"]
    single, together = run["distance_from_noise"], run["ensemble"]["distance_from_noise"]
    times = run["gradients"] / result["rows"][0]["gradients"]
    before = values(result, "ESH", "distance").mean()
    change = "nearer than" if run["distance"] < before else "no nearer than"
    members = "nearer" if together < 0.99 * single else "no nearer"
    other = ""
    if run["marks"] != result["marks"]:
        found = run["marks"]["distances"][_sizes(run)[-1]]
        other = (
            "It was measured by another training of the same classifier, on whose features "
            f"training images are at {found['floor']:.2f}, a single class at "
            f"{found['one class']:.1f} and uniform noise at {found['ceiling']:.1f}. "
        )
    return (
        f"A single run of ESH that is {times:.1f} times as long ({run['gradients']:,} gradients) "
        f"ends with its buffer at {run['distance']:.2f}, {change} the short runs; from noise it is "
        f"at {single:.2f}, and the mean energy of the averaged weights at its last "
        f"{run['ensemble']['members']} looks is {members}, at {together:.2f}. {other}"
    )


def _sizes(result: dict[str, Any]) -> list[str]:
    """Numbers of samples that the ruler has marks for, from small to large."""
    return sorted(result["marks"]["distances"], key=int)


def _where(result: dict[str, Any]) -> str:
    """Where the samples lie between training images and noise."""
    place = {"distance": -1, "distance_from_noise": 0}  # among the sizes

    def share(value: float, key: str, ruled: dict[str, Any]) -> str:
        found = ruled["marks"]["distances"][_sizes(ruled)[place[key]]]
        return f"{(value - found['floor']) / (found['ceiling'] - found['floor']):.0%}"

    def of(key: str) -> str:
        parts = [f"{s} at {share(values(result, s, key).mean(), key, result)}" for s in SAMPLERS]
        if "long" in result:
            parts.append(f"the long run at {share(result['long'][key], key, result['long'])}")
        return ", ".join(parts)

    alone = result["marks"]["distances"][_sizes(result)[-1]]["one class"]
    return (
        "On the way from training images (0%) to uniform noise (100%), where images of a single "
        f"class lie at {share(alone, 'distance', result)}, the buffers lie with {of('distance')}, "
        f"and samples from noise with {of('distance_from_noise')}."
    )


def verdict(result: dict[str, Any]) -> str:
    """Whether ESH is nearer than ULA in the buffer and from noise, beyond the scatter of seeds."""
    pairs = [_difference(result, key) for key in ("distance", "distance_from_noise")]
    nearer = [change < -2 * error for change, error in pairs]
    if all(nearer):
        return "holds"
    return "holds in part" if any(nearer) else "doesn't hold"
