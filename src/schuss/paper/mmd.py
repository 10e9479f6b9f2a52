"""MMD² against gradients for every sampler and target, and a check against the public code.

One sample of each chain is compared with 10 000 exact ones, whitened where the exact map is known.
"""

import io
import math
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import FixedLocator, NullLocator
from PIL import Image

from schuss import diagnostics, plotting, targets
from schuss.paper import samplers
from schuss.paper.item import Advance, Item, Settings, short

SMALL = ("MALA 0.01", "ULA 0.01")
"""The smaller steps of App. D.4, which are in the table only."""
DRAWN = (*samplers.TABLE, "NUTS tuned")
NAMES = (*DRAWN, *SMALL)
PUBLIC = {
    "ESH-leap": {
        "mog": {0: 0.1335, 10: 0.0128, 50: -0.0004, 200: 0.0001},
        "mog-prior": {0: 0.1991, 10: 0.1065, 50: 0.0093, 200: 0.0010},
        "scg": {0: 0.1001, 10: 0.0154, 50: 0.0032, 200: 0.0031},
        "scg-bias": {0: 0.1366, 10: 0.1238, 50: 0.0182, 200: 0.0018},
        "icg": {0: 0.0105, 10: 0.0080, 50: 0.0011, 200: 0.0001},
    },
    "ULA 0.1": {
        "mog-prior": {50: 0.0320, 200: 0.0003},
        "scg-bias": {50: 0.1026, 200: 0.0270},
        "icg": {10: 0.0014},
    },
}
"""MMD² by the public code, one seed, rounded to four places."""
TOLERANCE = 3.0
"""Standard errors of the difference between two runs within which they agree."""
EVERY, COLOURS = 10, 200
NEAR = 3.0
"""Standard deviations of the null below which a sample can't be told from exact ones."""


def compute(settings: Settings, advance: Advance) -> dict[str, Any]:
    """Curves for all samplers, and the check of ESH-leap and ULA."""
    size = samplers.size(settings)
    exact, replicates = (1000, 50) if settings.quick else (10_000, 400)
    grid = list(range(0, size.gradients + 1, EVERY))
    curves, nulls, checks, references = {}, {}, [], {}
    for name in size.targets:
        target = targets.get(name)
        whiten = target.whiten or (lambda x: x)
        family = name.split("-")[0]
        if family not in references:
            assert target.sample is not None
            draws = whiten(target.sample(np.random.default_rng(settings.seed), exact))
            references[family] = diagnostics.reference(draws)
        reference = references[family]
        null = diagnostics.null_level(reference, size.chains, replicates=100)
        nulls[name] = {"sd": short(null), "bandwidth": short(reference.bandwidth)}
        curves[name] = {}
        for sampler in NAMES:
            found = samplers.run(sampler, target, size.gradients, size.chains, settings.seed)
            samples = [whiten(x) for x in found.at(grid, settings.seed)]
            intervals = [
                diagnostics.mmd2_interval(x, reference, replicates=replicates) for x in samples
            ]
            curves[name][sampler] = {
                key: [short(getattr(interval, key)) for interval in intervals]
                for key in ("value", "low", "high")
            }
            for k, public in PUBLIC.get(sampler, {}).get(name, {}).items():
                if k in grid:
                    value = intervals[grid.index(k)].value
                    error = standard_error(samples[grid.index(k)], reference)
                    row = {"target": name, "sampler": sampler, "gradients": k}
                    checks.append(row | _check(value, public, error))
            advance(f"{sampler} on {samplers.TARGETS[name]}")
    return {
        "chains": size.chains,
        "exact": exact,
        "gradients": grid,
        "null": nulls,
        "curves": curves,
        "checks": checks,
    }


def standard_error(x: np.ndarray, reference: diagnostics.Reference) -> float:
    """Of MMD² over both samples: the linear part, and the spread under the null for the rest.

    With h_i = mean_j k(x_i, x_j) − mean_j k(x_i, y_j) and g_j likewise for y, the linear part has
    the variance 4 Var(h)/n + 4 Var(g)/m, less what the noise of the means adds, E[k̃²](1/n + 1/m)
    to each of Var(h) and Var(g). Where x and y agree it vanishes and the rest is left, of variance
    2 E[k̃²] (1/n + 1/m)², k̃ the doubly centred kernel.
    """
    y, b = reference.samples, reference.bandwidth
    n, m = len(x), len(y)
    height = 1 / math.sqrt(2 * math.pi * b)
    xx, xy = _kernel(x, x, b), _kernel(x, y, b)
    h = (xx.sum(axis=1) - 1) / (n - 1) - xy.mean(axis=1)
    g = reference.rows / (m - 1) - xy.mean(axis=0)
    yy = _kernel(y[:n], y[:n], b)
    centred = yy - yy.mean(axis=0) - yy.mean(axis=1)[:, None] + yy.mean()
    inverse = 1 / n + 1 / m
    square = np.mean(centred[~np.eye(len(yy), dtype=bool)] ** 2)
    linear = [max(part.var() - square * inverse, 0.0) for part in (h, g)]
    rest = 2 * square * inverse**2
    return height * math.sqrt(4 * linear[0] / n + 4 * linear[1] / m + rest)


def _kernel(a, b, bandwidth):
    squares = np.sum(a**2, axis=1)[:, None] + np.sum(b**2, axis=1) - 2 * a @ b.T
    return np.exp(-np.maximum(squares, 0) / (2 * bandwidth))


def _check(value, public, error) -> dict[str, Any]:
    # Two runs of the same size scatter by √2 of one; the public figure is rounded to 1e-4.
    allowed = TOLERANCE * math.sqrt(2) * error + 0.5e-4
    return {
        "value": short(value),
        "public": public,
        "standard_error": short(error),
        "allowed": short(allowed),
        "within": bool(abs(value - public) <= allowed),
    }


def draw(result: dict[str, Any], folder) -> list[str]:
    """A panel for each target."""
    names = list(result["curves"])
    columns = min(3, len(names))
    rows = -(-len(names) // columns)
    figure, panels = plt.subplots(
        rows, columns, figsize=(6.5, 0.7 + 2.1 * rows), layout="constrained", squeeze=False
    )
    handles = []
    for axes, name in zip(panels.flat, names, strict=False):
        handles = _panel(axes, result, name)
    for axes in panels[-1]:
        axes.set_xlabel("gradients")
    for axes in panels[:, 0]:
        axes.set_ylabel("MMD²")
    figure.legend(handles, list(DRAWN), loc="outside lower center", ncols=4)
    folder.mkdir(parents=True, exist_ok=True)
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png")
    plt.close(figure)
    # The overlapping bands have thousands of shades; a palette makes the file three times smaller.
    Image.open(drawn).convert("RGB").quantize(COLOURS).save(folder / "mmd.png", optimize=True)
    return ["mmd.png"]


def _panel(axes, result, name):
    x, null = result["gradients"], result["null"][name]["sd"]
    axes.axhspan(-NEAR * null, NEAR * null, color=plotting.FAINT, alpha=0.25, linewidth=0)
    handles = []
    for sampler in reversed(DRAWN):
        seen, curve = samplers.appearance(sampler), result["curves"][name][sampler]
        style: dict[str, Any] = {"color": seen.colour, "linestyle": seen.dash}
        axes.fill_between(
            x, curve["low"], curve["high"], color=seen.colour, alpha=0.15, linewidth=0
        )
        (line,) = axes.plot(
            x, curve["value"], marker=seen.marker, markevery=4, markersize=3, linewidth=1.2, **style
        )
        handles.append(line)
    highest = max(max(result["curves"][name][sampler]["high"]) for sampler in DRAWN)
    axes.set_yscale("symlog", linthresh=2 * NEAR * null, linscale=0.5)
    axes.set(
        title=samplers.TARGETS[name], xlim=(0, x[-1]), ylim=(-1.5 * NEAR * null, 1.3 * highest)
    )
    lowest = math.ceil(math.log10(2 * NEAR * null))
    decades = [10.0**k for k in range(lowest, math.floor(math.log10(highest)) + 1)]
    axes.yaxis.set_major_locator(FixedLocator([0.0, *decades]))
    axes.yaxis.set_minor_locator(NullLocator())
    return handles[::-1]


def tell(result: dict[str, Any]) -> str:
    """MMD² at a few checkpoints, the check, and what they say."""
    grid = result["gradients"]
    shown = [k for k in (10, 50, 200) if k in grid]
    head = "| | gradients | " + " | ".join(NAMES) + " | null sd |"
    lines = [head, "|---" * (len(NAMES) + 3) + "|"]
    for name, curves in result["curves"].items():
        for k in shown:
            values = [curves[sampler]["value"][grid.index(k)] for sampler in NAMES]
            entries = " | ".join(f"{value:.4f}" for value in values)
            null = result["null"][name]["sd"]
            lines.append(f"| {samplers.TARGETS[name]} | {k} | {entries} | {null:.1e} |")
    check = [
        "| | | gradients | here | public code | difference | allowed | |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in result["checks"]:
        check.append(
            f"| {row['sampler']} | {samplers.TARGETS[row['target']]} | {row['gradients']} | "
            f"{row['value']:.4f} | "
            f"{row['public']:.4f} | {row['value'] - row['public']:+.4f} | {row['allowed']:.4f} | "
            f"{'✓' if row['within'] else '**no**'} |"
        )
    return "\n".join(
        [
            f"MMD² of {result['chains']} chains to {result['exact']} exact samples. Grey in the "
            f"picture: {NEAR:.0f} standard deviations of MMD² between exact samples; bands: 95 % "
            "by bootstrap over the chains.",
            "",
            *lines,
            "",
            "Against one run of the paper's public code. Allowed is "
            f"{TOLERANCE:.0f} standard errors of the difference of two such runs (of both the "
            "chains and the exact sample; away from zero MMD² scatters far more than between "
            "exact samples) and the rounding of the public figure:",
            "",
            *check,
            "",
            _paragraph(result),
        ]
    )


def converged(result: dict[str, Any], sampler: str) -> list[str]:
    """Targets, without the funnel, on which a sampler ends up like exact samples."""
    return [
        name
        for name, curves in result["curves"].items()
        if name != "funnel" and curves[sampler]["value"][-1] <= NEAR * result["null"][name]["sd"]
    ]


def _ahead(result, name, at) -> bool:
    values = {s: result["curves"][name][s]["value"][at] for s in samplers.TABLE}
    level = NEAR * result["null"][name]["sd"]
    return values["ESH-leap"] <= max(level, min(values.values()))


def _paragraph(result) -> str:
    last, checks = result["gradients"][-1], result["checks"]
    agreed = sum(row["within"] for row in checks)
    names = [name for name in result["curves"] if name != "funnel"]
    words = [f"{agreed} of {len(checks)} values agree with the public code's."]
    for row in checks:
        if not row["within"]:
            words.append(f"{samplers.TARGETS[row['target']]} at {row['gradients']} doesn't.")
    middle = 50 if 50 in result["gradients"] else last
    for k in dict.fromkeys((middle, last)):
        at = result["gradients"].index(k)
        first = [samplers.TARGETS[name] for name in names if _ahead(result, name, at)]
        words.append(
            f"After {k} gradients ESH-leap can't be told from exact samples, or is nearest to them "
            f"of the paper's samplers, on {len(first)} of {len(names)} targets "
            f"({', '.join(first) or 'none'})."
        )
    done = converged(result, "ESH-leap")
    left = [
        f"{samplers.TARGETS[name]} ({result['curves'][name]['ESH-leap']['value'][-1]:.1e})"
        for name in names
        if name not in done
    ]
    if left:
        words.append(
            f"It can still be told from exact samples after {last} gradients on "
            f"{', '.join(left)}: on Gaussians the deterministic flow isn't ergodic, and more "
            "gradients don't help."
        )
    if "funnel" in result["curves"]:
        start = result["curves"]["funnel"]["ESH-leap"]["value"][0]
        words.append(
            "The funnel's MMD² says nothing: whitened, even the start is at "
            f"{start:.1e} before the first step; see the funnel's own section."
        )
    return " ".join(words)


def parts(settings: Settings) -> int:
    """Samplers times targets."""
    return len(NAMES) * len(samplers.size(settings).targets)


ITEM = Item(
    name="mmd",
    title="MMD against gradients",
    place="Figure 4",
    compute=compute,
    draw=draw,
    tell=tell,
    parts=parts,
)
