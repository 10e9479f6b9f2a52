"""Is the deterministic flow ergodic? The paper's long trajectory, chaos, and what chains agree on.

One chain on the mixture from the mode (0, ½) with ε = .001 (App. E.2), 500 of its states drawn with
p ∝ |v|; the largest Lyapunov exponents that the paper leaves to future work; and the relative
standard deviation over chains of each chain's ⟨x_i²⟩, which falls to zero with the length of the
chains where the flow is ergodic and stays where it isn't, without and with refreshment of the
velocity over a length L = 2√d.
"""

import math
import pathlib
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from schuss import plotting
from schuss.algorithms import ESH
from schuss.diagnostics import lyapunov, mmd2, null_level, reference
from schuss.paper.item import Advance, Item, Settings, short
from schuss.sampler import Sampler
from schuss.targets import Target, funnel, icg, isotropic, mog, mog_prior, quartic, scg, scg_bias
from schuss.trajectory import trajectory

STEP, ISLAND_STEP, COARSE_STEP = 0.001, 0.02, 0.1
DRAWN = 500
EVERY = 10
PICTURED, APART = 2000, 50  # places of the path that are drawn, and steps between them
CHAOTIC = 10
"""Exponents so many times that of straight lines, log(2)/(time/2), count as chaos."""


class Size(NamedTuple):
    """Trajectories and their steps, exact samples; chains and distances of the other parts."""

    seeds: int
    steps: int
    exact: int
    chains: int
    chaos: float  # distance for the exponents
    length: float  # distance for the averages


class Case(NamedTuple):
    """A flow: where it begins, and the step with which it is followed."""

    name: str
    target: Target
    step_size: float
    exact: bool = False  # begins at exact samples and not where the paper begins


def _size(settings: Settings) -> Size:
    if settings.quick:
        return Size(2, 2000 * EVERY, 1000, 16, 40.0, 40.0)
    return Size(8, 500_000, 10_000, 100, 400.0, 1000.0)


def _cases(settings: Settings) -> list[Case]:
    if settings.quick:
        return [Case("isotropic 10-D", isotropic(), 0.1)]
    return [
        Case("MOG", mog(), 0.02),
        Case("MOG-prior", mog_prior(), 0.02),
        Case("MOG, exact starts", mog(), 0.02, exact=True),
        Case("SCG", scg(), 0.02),
        Case("SCG-bias", scg_bias(), 0.02),
        Case("ICG", icg(), 0.05),
        Case("Funnel", funnel(), 0.05),
        Case("isotropic 10-D", isotropic(), 0.1),
        Case("quartic 10-D", quartic(10), 0.1),
    ]


def _centres() -> np.ndarray:
    angle = 2 * math.pi * np.arange(8) / 8
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1) / 2


def modes_visited(x: np.ndarray) -> np.ndarray:
    """To how many of the eight modes each chain of (states, chains, 2) came nearest, (chains,)."""
    nearest = np.argmin(np.sum((x[:, :, None] - _centres()) ** 2, axis=-1), axis=-1)
    return np.asarray([len(np.unique(column)) for column in nearest.T])


def _long(size: Size, seed: int) -> dict[str, Any]:
    """The paper's trajectory, from several first velocities."""
    rng = np.random.default_rng(seed)
    exact = reference(_exact(mog(), rng, size.exact))
    path = trajectory(
        mog_prior(),
        chains=size.seeds,
        sampler=ESH(step_size=STEP),
        steps=size.steps,
        every=EVERY,
        seed=seed + 1,
    )
    found, points = [], path.x[:0, 0]
    for chain in range(size.seeds):
        share = np.exp(path.r[:, chain] - path.r[:, chain].max())
        chosen = rng.choice(len(share), DRAWN, p=share / share.sum())
        points = path.x[chosen, chain]
        found.append(mmd2(points, exact))
    return {
        "steps": size.steps,
        "mmd": short(found),
        "null": short(null_level(exact, DRAWN, replicates=100)),
        "modes": [int(count) for count in modes_visited(path.x)],
        "drift": short(np.abs(path.hamiltonian - path.hamiltonian[0]).max()),
        "path": short(path.x[: PICTURED * APART // EVERY : APART // EVERY, -1]),
        "points": short(points),
    }


def _island(size: Size, seed: int) -> dict[str, Any]:
    """Orbits within one mode: a circle of radius sd √d, and how many exact starts never leave."""
    rng = np.random.default_rng([seed, 3])
    starts, velocities = _exact(mog(), rng, size.chains), rng.standard_normal((size.chains, 2))
    velocities /= np.linalg.norm(velocities, axis=1, keepdims=True)
    circle = np.asarray([[0.075 * math.sqrt(2), 0.5]])
    steps = int(size.chaos / ISLAND_STEP)

    def follow(step: float) -> np.ndarray:
        return trajectory(
            mog(),
            init=np.concatenate([circle, starts]),
            velocity=np.concatenate([[[0.0, 1.0]], velocities]),
            sampler=ESH(step_size=step),
            steps=steps,
            every=5,
        ).x

    fine, coarse = follow(ISLAND_STEP), follow(COARSE_STEP)
    visited = modes_visited(fine)
    return {
        "distance": size.chaos,
        "circle": short(fine[:400:2, 0]),
        "circle_modes": int(visited[0]),
        "trapped": short(np.mean(visited[1:] == 1)),
        "coarse_distance": short(steps * COARSE_STEP),
        "coarse_trapped": short(np.mean(modes_visited(coarse)[1:] == 1)),
    }


def _start(case: Case, chains: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng([seed, 4])
    return (_exact if case.exact else _as_the_paper)(case.target, rng, chains)


def _exact(target: Target, rng: np.random.Generator, n: int) -> np.ndarray:
    assert target.sample is not None
    return target.sample(rng, n)


def _as_the_paper(target: Target, rng: np.random.Generator, n: int) -> np.ndarray:
    return target.start(rng, n)


def _chaos(case: Case, size: Size, seed: int) -> dict[str, Any]:
    steps = int(size.chaos / case.step_size)
    values = lyapunov(
        case.target,
        init=_start(case, size.chains, seed),
        sampler=ESH(step_size=case.step_size),
        steps=steps,
        renormalise=max(steps // 200, 1),
        seed=seed,
    )
    values = np.sort(values[np.isfinite(values)])
    straight = math.log(2) / (size.chaos / 2)
    return {
        "exponents": short(values),
        "median": short(np.median(values)) if len(values) else None,
        "chaotic": short(np.mean(values > CHAOTIC * straight)) if len(values) else None,
        "straight": short(straight),
    }


def _spread(case: Case, size: Size, seed: int) -> dict[str, Any]:
    """Relative sd of ⟨x_i²⟩ over chains, and the worst ratio of their mean to the truth."""
    truth = case.target.truth
    assert truth is not None
    rows: dict[str, Any] = {}
    for name, length in (("flow", None), ("refreshed", 2 * math.sqrt(case.target.dim))):
        run = Sampler(
            ESH(step_size=case.step_size, refresh=length),
            steps=int(size.length / case.step_size),
            keep="moments",
            seed=seed,
        ).run(target=case.target, init=_start(case, size.chains, seed))
        assert run.moments is not None
        moments = run.moments
        squares = (np.asarray(moments.variance) + np.asarray(moments.mean) ** 2)[~run.frozen]
        pooled = squares.mean(axis=0) / truth.second_moment
        relative = squares.std(axis=0, ddof=1) / squares.mean(axis=0)
        rows[name] = {
            "spread": short(relative.mean()),
            "pooled": short(pooled[np.argmax(np.abs(np.log(pooled)))]),
        }
    return rows


def _compute(settings: Settings, advance: Advance) -> dict[str, Any]:
    size, seed = _size(settings), settings.seed
    result: dict[str, Any] = {"length": size.length, "long": _long(size, seed)}
    advance("the long trajectories")
    result["island"] = _island(size, seed)
    advance("orbits within one mode")
    result["cases"] = []
    for case in _cases(settings):
        row: dict[str, Any] = {"name": case.name, "dim": case.target.dim}
        row["chaos"] = _chaos(case, size, seed)
        row["spread"] = None if case.name == "Funnel" else _spread(case, size, seed)
        result["cases"].append(row)
        advance(case.name)
    return result


def _draw(result: dict[str, Any], folder: pathlib.Path) -> list[str]:
    folder.mkdir(parents=True, exist_ok=True)
    figure = Figure(figsize=(6.5, 6.0), layout="constrained")
    halves: Any = figure.subfigures(2, 1, height_ratios=(1.15, 1))
    top, bottom = halves
    colour, cool = plotting.look("ESH").colour, plotting.look("ULA").colour
    shown = (
        ("path", colour, "From (0, ½): one long path, 500 states drawn"),
        ("circle", cool, "From exact samples: some never leave their mode"),
    )
    for axes, (key, hue, title) in zip(top.subplots(1, 2), shown, strict=True):
        plotting.density(axes, mog(), 0.85)
        source = result["long"] if key == "path" else result["island"]
        x = np.asarray(source[key])
        axes.plot(*x.T, color=hue, linewidth=0.5 if key == "path" else 0.8, alpha=0.6)
        if key == "path":
            axes.plot(*np.asarray(source["points"]).T, ".", color=plotting.INK, markersize=2.5)
        plotting.bare(axes)
        axes.set_title(title, fontsize=8.5)
    cases = result["cases"]
    rows = np.arange(len(cases))[::-1]
    left, right = bottom.subplots(1, 2, sharey=True)
    for row, case in zip(rows, cases, strict=True):
        values = np.asarray(case["chaos"]["exponents"])
        left.plot(values, np.full(len(values), row), "|", color=colour, markersize=7, alpha=0.5)
        if case["spread"] is not None:
            pair = [case["spread"][kind]["spread"] for kind in ("flow", "refreshed")]
            right.plot(pair, [row, row], color="#CCCCCC", linewidth=1, zorder=1)
            right.plot(pair[0], row, "o", color=colour, label="deterministic")
            right.plot(pair[1], row, "s", color=cool, label="refreshed, L = 2√d")
    straight = cases[0]["chaos"]["straight"]
    left.axvline(straight, color=plotting.FAINT, linewidth=1, linestyle=(0, (1, 1)))
    left.set(
        yticks=rows, yticklabels=[case["name"] for case in cases], ylim=(-0.6, len(cases) - 0.4)
    )
    left.set_xscale("symlog", linthresh=0.01, linscale=0.5)
    left.set(xlabel="largest Lyapunov exponent (dotted: no chaos)", xlim=(-0.004, 2))
    left.set(xticks=(0, 0.01, 0.1, 1), xticklabels=("0", "0.01", "0.1", "1"))
    right.set(xscale="log", xlabel="relative sd of ⟨x²⟩ over chains", xlim=(0.02, 1.5))
    right.set(xticks=(0.03, 0.1, 0.3, 1), xticklabels=("0.03", "0.1", "0.3", "1"))
    right.minorticks_off()
    handles, labels = right.get_legend_handles_labels()
    right.legend(
        handles[:2],
        labels[:2],
        fontsize=7.5,
        loc="upper left",
        bbox_to_anchor=(0, 1.17),
        ncols=2,
        columnspacing=1,
        handletextpad=0.2,
    )
    figure.savefig(folder / "ergodicity.png", dpi=130)
    return ["ergodicity.png"]


def _case(result, name) -> dict[str, Any] | None:
    return next((case for case in result["cases"] if case["name"] == name), None)


def _tell(result: dict[str, Any]) -> str:
    lines = [
        "| flow | median exponent | chaotic chains | sd of ⟨x²⟩, deterministic | refreshed | "
        "pooled ⟨x²⟩ / truth, deterministic | refreshed |",
        "|---|---|---|---|---|---|---|",
    ]
    for case in result["cases"]:
        chaos, spread = case["chaos"], case["spread"]
        cells = ["–"] * 4
        if spread is not None:
            cells = [
                f"{spread[kind][key]:.2f}"
                for key in ("spread", "pooled")
                for kind in ("flow", "refreshed")
            ]
        lines.append(
            f"| {case['name']} | {chaos['median']:.4f} | {chaos['chaotic']:.0%} | "
            + " | ".join(cells)
            + " |"
        )
    found, island = result["long"], result["island"]
    values = np.asarray(found["mmd"])
    near = int(np.sum(values < 3 * found["null"]))
    text = (
        f"From the mode (0, ½), where the paper begins, every "
        f"one of {len(values)} trajectories of {found['steps']} steps visits "
        f"{min(found['modes'])} of the 8 modes; MMD² is {values.min():.4f} to {values.max():.4f}, "
        f"median {np.median(values):.4f}, with {near} of them within three times the "
        f"{found['null']:.4f} by which exact samples scatter: close to zero, though the path "
        "lingers, and one trajectory of this length isn't always enough. |ΔH| is at most "
        f"{found['drift']:.2g}, so the mixing is the dynamics' own. The flow from there is "
        "chaotic. But (0, ½) is a lucky start: an orbit through the centre of a mode has no "
        "angular momentum about it and leaves. Around each mode there are orbits that don't (a "
        f"circle of radius sd √d is one), and of trajectories from exact samples "
        f"{island['trapped']:.0%} are still in their first mode after a distance of "
        f"{island['distance']:g}. Errors of discretisation free some of them, as the paper "
        f"suspects: with ε = {COARSE_STEP:g} it is {island['coarse_trapped']:.0%} after "
        f"{island['coarse_distance']:g}. "
    )
    gaussian = _case(result, "ICG")
    if gaussian is not None:
        spread = gaussian["spread"]
        text += (
            "On the Gaussians chaos is weak (SCG) or absent (ICG, isotropic), after a distance of "
            f"{result['length']:g} the chains still disagree about ⟨x²⟩, and even their mean is "
            "wrong: on ICG the worst coordinate has "
            f"{spread['flow']['pooled']:.1f} times its variance, with refreshment "
            f"{spread['refreshed']['pooled']:.2f}. "
        )
    text += (
        "That ergodicity typically holds is true of rugged energies at best; a velocity that is "
        "slowly refreshed brings the chains to agree, with each other and with the truth, in "
        "every case measured. Exponents are per unit of "
        f"distance; “chaotic” means over {CHAOTIC} times what straight lines would show in "
        "this time."
    )
    return "\n".join(lines) + "\n\n" + text


ITEM = Item(
    name="ergodicity",
    title="Ergodicity and chaos",
    place="Appendix E.2",
    compute=_compute,
    draw=_draw,
    tell=_tell,
    parts=lambda settings: 2 + len(_cases(settings)),
)
