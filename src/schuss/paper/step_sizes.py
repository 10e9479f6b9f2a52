"""What the paper says of steps: as large as possible, ε = 1, ε > 1, and monitoring H.

"Numerical errors" are chains that turn non-finite: with the update as printed and as the public
code has it, both in single precision, and with the library's in both precisions. Monitoring: all
chains share a step, which after every block of ten is scaled by (wanted/seen)^(1/3), at most by 2,
so that the variance of the change of H in a step comes to 5·10⁻⁴ d; it was not tuned.
"""

import pathlib
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from schuss import plotting, targets
from schuss.algorithms import ESH, NoseHoover
from schuss.core import ergodic
from schuss.core.dynamics import ESH as SCALED
from schuss.core.dynamics import leap
from schuss.core.integrators import LEAPFROG
from schuss.core.kernel import Point
from schuss.diagnostics import Reference, mmd2, null_level, reference
from schuss.paper.item import Advance, Item, Settings, short
from schuss.paper.kick_precision import public, textbook
from schuss.paper.markdown import table
from schuss.paper.samplers import TARGETS
from schuss.targets import Target
from schuss.trajectory import trajectory

GRID = (0.001, 0.01, 0.1, 1.0, 10.0)
"""The paper's logarithmic grid is not given: powers of ten."""
FINER = (0.03, 0.3, 3.0)
THERMOSTAT = (0.01, 0.03, 0.1, 0.3, 1.0)
WANTED, BLOCK, MOST = 5e-4, 10, 2.0
BEGUN = (0.01, 1.0)
GRADIENTS = 200
F = np.float32


def _size(settings: Settings) -> tuple[int, int, tuple[str, ...]]:
    """Chains, exact samples, and targets."""
    if settings.quick:
        return 20, 500, ("mog-prior",)
    return 500, 4000, tuple(TARGETS)


def _printed(target: Target, form, step: float, chains: int, seed: int) -> float:
    """The share of chains that turn non-finite in single precision with an update for d = 2."""
    rng = np.random.default_rng(seed)
    x = target.start(rng, chains).astype(F)
    u = rng.standard_normal(x.shape).astype(F)
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    # The forms are written for d = 2: another dimension is another time.
    half = F(step / 2 * 2 / target.dim)
    with np.errstate(all="ignore"):
        g = target.gradient(np, x.astype(float)).astype(F)
        for _ in range(GRADIENTS):
            u = form(u, g, half)
            x = x + F(step) * u
            g = target.gradient(np, x.astype(float)).astype(F)
            u = form(u, g, half)
    return short(np.mean(~np.isfinite(x).all(axis=1)))


def _esh(target: Target, exact: Reference, step: float, chains: int, seed: int) -> dict[str, Any]:
    """The library's flow: MMD² of one sample of each chain, and chains that were frozen."""
    path = trajectory(
        target,
        chains=chains,
        sampler=ESH(step_size=step),
        steps=GRADIENTS,
        seed=seed,
        engine="numpy",
    )
    single = trajectory(
        target,
        init=target.start(np.random.default_rng(seed), chains).astype(F),
        sampler=ESH(step_size=step),
        steps=GRADIENTS,
        seed=seed,
        engine="numpy",
    )
    x = samples_by_time(path.x, path.r, np.full(GRADIENTS, step), seed)
    return {
        "mmd": short(mmd2(whitened(target, x), exact)),
        "frozen": short(path.frozen.mean()),
        "frozen single": short(single.frozen.mean()),
        "distance": short(step * GRADIENTS),
    }


def samples_by_time(x: np.ndarray, r: np.ndarray, steps: np.ndarray, seed: int) -> np.ndarray:
    """One state of each chain at a random time (Alg. 2), for steps of any lengths."""
    rng, speed = np.random.default_rng([seed, 5]), np.exp(r - r.max(axis=0))
    pieces = (speed[1:] + speed[:-1]) / 2 * steps[:, None]
    times = np.concatenate([np.zeros_like(speed[:1]), np.cumsum(pieces, axis=0)])
    found = [
        ergodic.interpolate(np, x[:, c], times[:, c], rng.random(1) * times[-1, c])[0]
        for c in range(x.shape[1])
    ]
    return np.asarray(found)


def whitened(target: Target, x: np.ndarray) -> np.ndarray:
    """By the target's exact map, where it has one."""
    return x if target.whiten is None else target.whiten(x)


def _monitored(target: Target, exact: Reference, step: float, chains: int, seed: int):
    """The flow with a step that follows the error of H: MMD², and the step at the end."""
    rng = np.random.default_rng([seed, 7])

    def grad_fn(x):
        return target.energy(np, x), target.gradient(np, x)

    x, u = target.start(rng, chains), rng.standard_normal((chains, target.dim))
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    point = Point(x, u, np.zeros(chains), *grad_fn(x))
    path, speeds, steps = [x], [point.r], []
    d = float(target.dim)
    for _ in range(GRADIENTS // BLOCK):
        seen = []
        for _ in range(BLOCK):
            new = leap(np, grad_fn, SCALED, LEAPFROG, point, np.asarray(step), d)
            seen.append(new.energy - point.energy + d * (new.r - point.r))
            point = new
            path.append(point.x)
            speeds.append(point.r)
            steps.append(step)
        # The median over chains: one that climbs out of a mode must not set the step of all.
        variance = np.median(np.mean(np.square(seen), axis=0))
        step *= float(np.clip((WANTED * d / variance) ** (1 / 6), 1 / MOST, MOST))
    samples = samples_by_time(np.stack(path), np.stack(speeds), np.asarray(steps), seed)
    return {"mmd": short(mmd2(whitened(target, samples), exact)), "step": short(step)}


def _nose_hoover(target: Target, chains: int, seed: int) -> dict[str, float]:
    """The share of chains that turn non-finite."""
    return {
        f"{step:g}": short(
            trajectory(
                target,
                chains=chains,
                sampler=NoseHoover(step_size=step),
                steps=GRADIENTS,
                seed=seed,
                engine="numpy",
            ).frozen.mean()
        )
        for step in THERMOSTAT
    }


def _compute(settings: Settings, advance: Advance) -> dict[str, Any]:
    chains, count, names = _size(settings)
    seed, steps = settings.seed, sorted((*GRID, *FINER))
    found: dict[str, Any] = {"chains": chains, "targets": {}}
    for name in names:
        target = targets.get(name)
        assert target.sample is not None
        draws = target.sample(np.random.default_rng([seed, 9]), count)
        exact = reference(whitened(target, draws))
        found["targets"][name] = {
            "null": short(null_level(exact, chains, replicates=50)),
            "esh": {f"{step:g}": _esh(target, exact, step, chains, seed) for step in steps},
            "printed": {
                f"{step:g}": _printed(target, textbook, step, chains, seed) for step in steps
            },
            "public": {f"{step:g}": _printed(target, public, step, chains, seed) for step in steps},
            "monitored": {
                f"{step:g}": _monitored(target, exact, step, chains, seed) for step in BEGUN
            },
            "nose_hoover": _nose_hoover(target, chains, seed),
        }
        advance(TARGETS[name])
    return found


def _draw(result: dict[str, Any], folder: pathlib.Path) -> list[str]:
    folder.mkdir(parents=True, exist_ok=True)
    names = list(result["targets"])
    columns = min(3, len(names))
    rows = -(-len(names) // columns)
    figure = Figure(figsize=(6.5, 0.6 + 1.9 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False)
    for axes, name in zip(panels.flat, names, strict=False):
        shown = result["targets"][name]
        steps = [float(step) for step in shown["esh"]]
        level = 3 * shown["null"]
        values = [max(row["mmd"], level / 3) for row in shown["esh"].values()]
        axes.plot(steps, values, "o-", color=plotting.look("ESH").colour, label="fixed step")
        for begun, row in shown["monitored"].items():
            colour = plotting.look("ULA").colour
            y = max(row["mmd"], level / 3)
            axes.plot([float(begun), row["step"]], [y, y], color=colour, linewidth=0.8)
            label = "H monitored, to its last step" if begun == f"{BEGUN[0]:g}" else None
            axes.plot(row["step"], y, "s", color=colour, label=label)
        axes.axhspan(level / 10, level, color=plotting.FAINT, alpha=0.25, linewidth=0)
        axes.set(xscale="log", yscale="log", title=TARGETS[name])
    for axes in panels[-1]:
        axes.set(xlabel="step ε")
    for axes in panels[:, 0]:
        axes.set(ylabel="MMD² at 200 gradients")
    figure.legend(*panels.flat[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    figure.savefig(folder / "step_sizes.png")
    return ["step_sizes.png"]


def _tell(result: dict[str, Any]) -> str:
    steps = list(next(iter(result["targets"].values()))["esh"])
    mmd = [
        (TARGETS[name], f"{row['null']:.1e}", *(f"{row['esh'][s]['mmd']:.4f}" for s in steps))
        for name, row in result["targets"].items()
    ]
    lost = []
    for name, row in result["targets"].items():
        for form in ("printed", "public"):
            lost.append((TARGETS[name], form, *(f"{row[form][s]:.0%}" for s in steps)))
        for key in ("frozen single", "frozen"):
            kind = "ours, single" if "single" in key else "ours, double"
            lost.append((TARGETS[name], kind, *(f"{row['esh'][s][key]:.0%}" for s in steps)))
    begun = [f"{step:g}" for step in BEGUN]
    monitored = [
        (
            TARGETS[name],
            *(
                f"{row['monitored'][b]['mmd']:.4f} (ε {row['monitored'][b]['step']:.2g})"
                for b in begun
            ),
            f"{row['esh']['0.1']['mmd']:.4f}",
            f"{min(r['mmd'] for r in row['esh'].values()):.4f}",
        )
        for name, row in result["targets"].items()
    ]
    hoover = [
        (TARGETS[name], *(f"{share:.0%}" for share in row["nose_hoover"].values()))
        for name, row in result["targets"].items()
    ]
    return "\n\n".join(
        [
            f"MMD² of {result['chains']} chains after {GRADIENTS} gradients, by step:",
            table(("", "null sd", *steps), mmd),
            "Chains that turned non-finite:",
            table(("", "update", *steps), lost),
            "With the error of H monitored, from two first steps (the last step in brackets):",
            table(("", *(f"from {b}" for b in begun), "fixed 0.1", "best of the grid"), monitored),
            "Chains of Nosé–Hoover that turned non-finite, by step:",
            table(("", *(f"{s:g}" for s in THERMOSTAT)), hoover),
        ]
    )


ITEM = Item(
    name="step_sizes",
    title="Step sizes",
    place="Section 3.1 and Appendix D.4",
    compute=_compute,
    draw=_draw,
    tell=_tell,
    parts=lambda settings: len(_size(settings)[2]),
)
