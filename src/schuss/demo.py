"""`schuss demo`: a posterior in one call, then ESH against its rivals on the paper's mixture.

The posterior is that of eight schools. On the mixture every chain starts in one mode and gives one
sample, as the paper has it: for ESH a uniformly random moment of un-scaled time (Alg. 2), for the
others the last state. MMD² is to 10 000 exact samples.
"""

import dataclasses
import pathlib
import time
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from rich import box
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from schuss import diagnostics, plotting, targets
from schuss.algorithms import ESH, HMC, MALA, ULA, NoseHoover, Unscaled
from schuss.results import Posterior
from schuss.sampling.sample import sample
from schuss.trajectory import Path, trajectory

SAMPLERS: dict[str, Any] = {
    "ESH": ESH(step_size=0.1),
    "ULA": ULA(step_size=0.1),
    "MALA": MALA(step_size=0.1),
    "un-scaled ESH": Unscaled(step_size=0.01),
    "Nosé–Hoover": NoseHoover(step_size=0.01),
    "HMC": HMC(step_size=0.01, steps=5),
}
NEAR = 2.0
"""Standard deviations of MMD² between exact samples within which a sample counts as exact."""


class Size(NamedTuple):
    """How much work: chains, gradients for each, exact samples and the checkpoints between."""

    chains: int = 500
    gradients: int = 200
    exact: int = 10_000
    every: int = 20
    traced: int = 50


class Result(NamedTuple):
    """One sampler: MMD² at every checkpoint, ESS per gradient, µs a step, and where it went."""

    name: str
    algorithm: Any
    mmd: list[diagnostics.Interval]
    ess: float
    microseconds: float
    samples: np.ndarray  # at the last checkpoint
    path: np.ndarray  # of the first chain, with its speed
    speed: np.ndarray


class Comparison(NamedTuple):
    """All samplers, the checkpoints in gradients, and the scatter of MMD² for exact samples."""

    size: Size
    checkpoints: list[int]
    null: float
    results: list[Result]

    def reached(self, result: Result) -> int | None:
        """Gradients after which MMD² was first as small as that of exact samples."""
        pairs = zip(self.checkpoints, result.mmd, strict=True)
        return next((k for k, mmd in pairs if mmd.value < NEAR * self.null), None)


def compare(size: Size | None = None, seed: int = 0, console: Console | None = None) -> Comparison:
    """Run every sampler from the same start."""
    size = Size() if size is None else size
    target = targets.mog_prior()
    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True, disable=console is None) as progress:
        task = progress.add_task(f"drawing {size.exact} exact samples", total=None)
        assert target.sample is not None
        exact = diagnostics.reference(target.sample(np.random.default_rng(seed), size.exact))
        null = diagnostics.null_level(exact, size.chains, replicates=100)
        results = []
        for name, algorithm in SAMPLERS.items():
            progress.update(task, description=f"{name}: {size.chains} chains, MMD²")
            results.append(_measure(name, algorithm, target, exact, size, seed))
    return Comparison(size, _checkpoints(size), null, results)


def _checkpoints(size):
    early = [k for k in (0, 10) if k < size.every]
    return early + list(range(size.every, size.gradients + 1, size.every))


def _measure(name, algorithm, target, exact, size, seed) -> Result:
    path = trajectory(
        target, chains=size.chains, sampler=algorithm, steps=size.gradients, seed=seed + 1
    )
    samples, mmd = path.x[0], []
    for k in _checkpoints(size):
        samples = _one_per_chain(path, k, seed + k)
        mmd.append(diagnostics.mmd2_interval(samples, exact, replicates=400))
    ess = diagnostics.paper_ess(path.x[1:], *target.truth[:4], gradients=path.gradients)
    shown = slice(0, size.traced + 1)
    scaled = isinstance(algorithm, ESH)
    speed = np.exp(path.r[:, 0]) if scaled else np.linalg.norm(path.u[:, 0], axis=-1)
    return Result(
        name,
        algorithm,
        mmd,
        float(ess.mean()),
        _microseconds(path, size),
        samples,
        path.x[shown, 0],
        speed[shown],
    )


def _one_per_chain(path: Path, k: int, seed: int) -> np.ndarray:
    if k == 0 or not isinstance(path.algorithm, ESH):
        return path.x[k]
    until = dataclasses.replace(
        path, x=path.x[: k + 1], r=path.r[: k + 1], log_weight=path.log_weight[:k]
    )
    return until.ergodic_sample(path.chains, seed=seed)


def _microseconds(path: Path, size: Size, turns: int = 9) -> float:
    """Of one step of all chains, compiled and recorded: the fastest of a few runs."""
    times = []
    for _ in range(turns):
        begun = time.perf_counter()
        path.extend(size.gradients)
        times.append(time.perf_counter() - begun)
    return min(times) / size.gradients * 1e6


def table(comparison: Comparison) -> Table:
    """The numbers."""
    size = comparison.size
    shown = Table(
        title=f"A mixture of 8 modes in 2-D: {size.chains} chains from one mode, "
        f"{size.gradients} gradients each",
        title_justify="left",
        caption=f"Between exact samples MMD² scatters by ±{comparison.null:.4f}; "
        f"“good after”: gradients until it is below {NEAR * comparison.null:.4f}. "
        "The ESS is the paper's.",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    shown.add_column("sampler", no_wrap=True)
    for name in ("step", "MMD²", "95 % interval", "good after", "ESS/grad", "µs/step"):
        shown.add_column(name, justify="right", no_wrap=True)
    for result in comparison.results:
        last, reached = result.mmd[-1], comparison.reached(result)
        shown.add_row(
            result.name,
            f"{result.algorithm.step_size}",
            f"{last.value:.4f}",
            f"{last.low:.4f} … {last.high:.4f}",
            "–" if reached is None else str(reached),
            f"{result.ess:.4f}",
            f"{result.microseconds:.0f}",
            style="bold" if result.name == "ESH" else None,
        )
    return shown


def verdict(comparison: Comparison) -> str:
    """What the table says, in words."""
    esh, *rivals = comparison.results
    gradients, reached = comparison.size.gradients, comparison.reached(esh)
    if reached is None:
        words = f"By MMD² ESH can still be told from exact samples after {gradients} gradients"
    else:
        words = f"By MMD² ESH can't be told from exact samples after {reached} gradients"
    for rival in rivals:
        if comparison.reached(rival) is not None:
            words += f", {rival.name} after {comparison.reached(rival)}"
    others = [rival.name for rival in rivals if comparison.reached(rival) is None]
    if others:
        words += f"; {_listed(others)} not within {gradients}"
    best = max(rivals, key=lambda rival: rival.ess)
    return (
        f"{words}. ESH has {esh.ess / best.ess:.1f} times the effective samples per gradient of "
        f"{best.name}, the best of the others. MMD² sees where the mass is, and hardly how wide "
        "each mode: what un-adjusted steps do to that takes a closer look."
    )


def _listed(names: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def figure(comparison: Comparison) -> Figure:
    """Paths and samples over the density, and MMD² against gradients. Draw inside `style()`."""
    size, results = comparison.size, comparison.results
    drawn = Figure(figsize=(8.4, 6.0), layout="constrained")
    grid = drawn.add_gridspec(3, len(results), height_ratios=(1, 1, 2.3))
    target, reach = targets.mog_prior(), 0.82
    for column, result in enumerate(results):
        colour = plotting.look(result.algorithm).colour
        for row in range(2):
            axes = drawn.add_subplot(grid[row, column])
            plotting.density(axes, target, reach)
            plotting.bare(axes)
            if row == 0:
                axes.set_title(result.name, color=colour, fontweight="bold")
                plotting.trace(axes, result.path, result.speed, colour)
            else:
                axes.plot(*result.samples.T, ".", color=colour, markersize=2.2, alpha=0.6)
            if column == 0:
                label = (
                    f"a path,\n{size.traced} gradients"
                    if row == 0
                    else (f"{size.chains} chains,\n{size.gradients} gradients")
                )
                axes.set_ylabel(label)
    _curves(drawn.add_subplot(grid[2, :]), comparison)
    return drawn


def _curves(axes, comparison: Comparison) -> None:
    null, x = comparison.null, comparison.checkpoints
    axes.axhspan(-NEAR * null, NEAR * null, color=plotting.FAINT, alpha=0.2, linewidth=0)
    for result in comparison.results:
        seen = plotting.look(result.algorithm)
        values = [mmd.value for mmd in result.mmd]
        low, high = ([getattr(mmd, key) for mmd in result.mmd] for key in ("low", "high"))
        axes.fill_between(x, low, high, color=seen.colour, alpha=0.15, linewidth=0)
        axes.plot(
            x, values, color=seen.colour, marker=seen.marker, linestyle=seen.dash, label=result.name
        )
    axes.set_yscale("symlog", linthresh=2 * NEAR * null, linscale=0.6)
    axes.set(
        xlabel="gradients for each chain", ylabel="MMD² to exact samples", xlim=(-1, x[-1] + 1)
    )
    axes.text(2, 0, "exact samples", color=plotting.FAINT, va="center", fontsize=8)
    _labels(axes, comparison)


def _labels(axes, comparison: Comparison) -> None:
    """Names at the ends of the curves: below them, and above where another is close below."""
    floor = 2 * NEAR * comparison.null
    ordered = sorted(comparison.results, key=lambda result: -result.mmd[-1].value)
    ends = [max(result.mmd[-1].value, floor) for result in ordered]
    for result, end, following in zip(ordered, ends, [*ends[1:], 0.0], strict=True):
        above = end < 2 * following
        axes.annotate(
            result.name,
            (comparison.checkpoints[-1], result.mmd[-1].value),
            xytext=(0, 4 if above else -5),
            textcoords="offset points",
            ha="right",
            va="bottom" if above else "top",
            color=plotting.look(result.algorithm).colour,
            fontweight="bold",
        )


EFFECTS = (28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0)
ERRORS = (15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0)


def eight_schools(p) -> Any:
    """The log-density of the effects of coaching at eight schools (Rubin 1981), non-centred."""
    import jax.numpy as jnp

    tau = jnp.exp(p["log_tau"])
    residuals = (jnp.asarray(EFFECTS) - p["mu"] - tau * p["eta"]) / jnp.asarray(ERRORS)
    prior = (p["mu"] / 5) ** 2 + jnp.sum(p["eta"] ** 2)
    half_cauchy = p["log_tau"] - jnp.log1p((tau / 5) ** 2)
    return half_cauchy - 0.5 * (prior + jnp.sum(residuals**2))


def posterior(progress: bool = False) -> Posterior:
    """Eight schools in one call."""
    init = {"mu": np.zeros(()), "log_tau": np.zeros(()), "eta": np.zeros(8)}
    return sample(logdensity=eight_schools, init=init, seed=0, progress=progress)


def run(out: pathlib.Path, console: Console | None = None) -> None:
    """Sample and compare: print the summary, the table and the verdicts, write page and picture."""
    console = Console() if console is None else console
    out.parent.mkdir(parents=True, exist_ok=True)
    found = posterior(progress=True)
    gradients, seconds = sum(found.stats.gradients.values()), sum(found.stats.seconds.values())
    console.print("Eight schools, schuss.sample(logdensity=…, init=…)", style="bold")
    console.print(str(found.summary()), highlight=False)
    console.print(f"{gradients} gradients, {seconds:.1f} s with compiling.", highlight=False)
    page = found.report(out.with_suffix(".html"))
    console.print(f"The page about it is {page}\n", highlight=False, soft_wrap=True)

    comparison = compare(console=console)
    console.print(table(comparison))
    console.print(verdict(comparison))
    with plotting.style():
        figure(comparison).savefig(out)
    console.print(f"The picture is {out}", highlight=False, soft_wrap=True)
