"""The Jarzynski figure: log Z of a random Gaussian from the weights of the ESH flow.

Chains start from e^(−E₀), E₀ = ½|x|², and run deterministically. The mean of e^w estimates Z/Z₀ at
every time, with

    w = E₀(x₀) − E(x₀) + r_t             as the paper has it (Eq. 9), which needs H conserved
    w = E₀(x₀) − E(x_t) − (d−1) r_t      exact for any step size.

The largest normalised weight says when the estimate hangs on one chain: beside the figure, that of
256 chains on the ill-conditioned Gaussian in more and more dimensions.
"""

import math
import pathlib
import warnings
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from schuss import plotting
from schuss.algorithms import ESH
from schuss.diagnostics import max_weight, weight_ess
from schuss.evidence import Normal, evidence
from schuss.paper.item import Advance, Item, Settings, short
from schuss.results import NotConverged
from schuss.targets import Target, gaussian
from schuss.trajectory import trajectory

DIM, FINE, COARSE = 3, 0.1, 0.55
FALL = 20  # steps in which the energy falls
EVERY = 10
FORMS = {"paper": False, "exact": True}
DIMS, PARTICLES = (2, 10, 50, 200), 256


class Size(NamedTuple):
    """Chains, steps, and at how many steps every state is kept, and not every tenth."""

    chains: int
    steps: int
    early: int


def _size(settings: Settings) -> Size:
    return Size(1000, 100, 20) if settings.quick else Size(10_000, 1000, 150)


def random_gaussian(rng: np.random.Generator) -> Target:
    """E = ½ xᵀ Σ⁻¹ x in a random basis, the eigenvalues of Σ uniform in (.1, .2)."""
    basis, _ = np.linalg.qr(rng.standard_normal((DIM, DIM)))
    covariance = (basis * rng.uniform(0.1, 0.2, DIM)) @ basis.T
    return gaussian((covariance + covariance.T) / 2, name="random-gaussian")


def log_mean(log_weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The log of the mean weight over chains (the last axis), and its standard error."""
    peak = log_weights.max(axis=-1, keepdims=True)
    weights = np.exp(log_weights - peak)
    mean = weights.mean(axis=-1)
    error = weights.std(axis=-1, ddof=1) / (mean * math.sqrt(weights.shape[-1]))
    return np.log(mean) + peak[..., 0], error


def _series(target: Target, x0: np.ndarray, step: float, size: Size, seed: int) -> dict[str, Any]:
    """All curves of one step size: every state at first, every tenth later."""
    reference, log_z0 = (x0**2).sum(axis=1) / 2, DIM / 2 * math.log(2 * math.pi)
    given: Any = {"init": x0, "sampler": ESH(step_size=step), "seed": seed}
    early = trajectory(target, steps=size.early, **given)
    late = trajectory(target, steps=size.steps, every=EVERY, **given)
    first = size.early // EVERY + 1

    def both(of):
        return np.concatenate([of(early), of(late)[first:]])

    r, energy = both(lambda path: path.r), both(lambda path: path.energy)
    drift = np.abs(late.hamiltonian[1:] - late.hamiltonian[0]).mean()
    out: dict[str, Any] = {
        "step_size": step,
        "steps": [*range(size.early), *range(size.early, size.steps + 1, EVERY)],
        "energy": short(energy.mean(axis=1)),
        "kinetic": short(DIM * r.mean(axis=1)),
        "hamiltonian": short((energy + DIM * r).mean(axis=1)),
        "drift": short(drift),
    }
    for name, exact in FORMS.items():
        logs = both(lambda path, exact=exact: path.jarzynski(reference, exact=exact))
        estimate, error = log_mean(logs)
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
        out[name] = {
            "log_z": short(estimate + log_z0),
            "error": short(error),
            "weight_ess": short(weight_ess(logs, axis=1) / len(x0)),
            "max_weight": short(max_weight(logs, axis=1)),
            "weighted_energy": short((weights * energy).sum(axis=1) / weights.sum(axis=1)),
        }
    mistaken, _ = log_mean(reference - energy[-1] + r[-1])
    out["public_log_z"] = short(mistaken + log_z0)
    return out


def _diagnose(dim: int, steps: int, seed: int) -> dict[str, Any]:
    """How few of 256 chains the weights leave in `dim` dimensions, and what that does to log Z."""
    target = gaussian(np.linspace(0.01, 1.0, dim))
    with warnings.catch_warnings():
        # That it can't be trusted is what the table shows.
        warnings.simplefilter("ignore", NotConverged)
        run = evidence(
            target,
            reference=Normal(dim=dim),
            method="jarzynski",
            sampler=ESH(step_size=FINE),
            steps=steps,
            particles=PARTICLES,
            seed=seed,
            engine="numpy",
            progress=False,
        )
    assert target.truth is not None and target.truth.log_z is not None
    return {
        "dim": dim,
        "off": short(run.log_z - target.truth.log_z),
        "max_weight": short(run.stats["max_weight"]),
        "weight_ess": short(run.stats["weight_ess"]),
        "trusted": run.verdict.converged,
    }


def _compute(settings: Settings, advance: Advance) -> dict[str, Any]:
    size = _size(settings)
    rng = np.random.default_rng(settings.seed)
    target = random_gaussian(rng)
    x0 = rng.standard_normal((size.chains, DIM))
    runs = {}
    for name, step in (("fine", FINE), ("coarse", COARSE)):
        runs[name] = _series(target, x0, step, size, settings.seed + 1)
        advance(f"step size {step:g}")
    diagnosis = [_diagnose(dim, size.steps // 5, settings.seed) for dim in DIMS]
    advance("largest weights")
    assert target.truth is not None and target.truth.log_z is not None
    return {
        "chains": size.chains,
        "steps": size.steps,
        "log_z": short(target.truth.log_z),
        "runs": runs,
        "diagnosis": diagnosis,
    }


def _draw(result: dict[str, Any], folder: pathlib.Path) -> list[str]:
    folder.mkdir(parents=True, exist_ok=True)
    figure = Figure(figsize=(6.5, 4.8), layout="constrained")
    places = figure.subplot_mosaic([["means", "means"], ["fine", "coarse"]])
    fine = result["runs"]["fine"]
    axes = places["means"]
    shown = (
        ("energy", "⟨E⟩", plotting.look("ULA").colour, "-"),
        ("kinetic", "d ⟨r⟩", plotting.look("HMC").colour, (0, (4, 1.5))),
        ("hamiltonian", "⟨H⟩ = ⟨E⟩ + d ⟨r⟩", plotting.INK, (0, (1, 1))),
    )
    for key, label, colour, dash in shown:
        axes.plot(fine["steps"], fine[key], color=colour, linestyle=dash, label=label)
    axes.set(title=f"Means over {result['chains']} chains, ε = {FINE:g}")
    axes.legend(loc="center right")
    looks = {
        "paper": (plotting.look("ULA").colour, "paper's weights", "\\\\\\"),
        "exact": (plotting.look("ESH").colour, "exact weights", None),
    }
    for name in ("fine", "coarse"):
        axes, run = places[name], result["runs"][name]
        for form, (colour, label, hatch) in looks.items():
            middle, error = (np.asarray(run[form][key]) for key in ("log_z", "error"))
            axes.fill_between(
                run["steps"],
                middle - error,
                middle + error,
                color=colour,
                alpha=0.25,
                linewidth=0,
                hatch=hatch,
            )
            axes.plot(run["steps"], middle, color=colour, linewidth=1.2, label=label)
        axes.axhline(
            result["log_z"], color=plotting.INK, linestyle=(0, (4, 2)), linewidth=1, label="truth"
        )
        axes.set(title=f"log Z ± one standard error, ε = {run['step_size']:g}")
    places["fine"].set(ylabel="log Z")
    places["fine"].set(ylim=(result["log_z"] - 0.08, result["log_z"] + 0.08))
    places["coarse"].legend(loc="upper left")
    for axes in places.values():
        axes.set_xscale("symlog", linthresh=10, linscale=0.6)
        axes.set(xlabel="steps", xlim=(0, result["steps"]), xticks=(0, 5, 10, 100, result["steps"]))
        axes.set_xticklabels([str(tick) for tick in (0, 5, 10, 100, result["steps"])])
    figure.savefig(folder / "jarzynski.png")
    return ["jarzynski.png"]


def _off(result, run, form) -> float:
    """The last estimate's deviation from the truth in standard errors."""
    last = result["runs"][run][form]
    return (last["log_z"][-1] - result["log_z"]) / last["error"][-1]


def _within(result, run, form) -> float:
    """The share of times at which the estimate is within two standard errors."""
    curve = result["runs"][run][form]
    error = np.abs(np.asarray(curve["log_z"]) - result["log_z"])
    return float(np.mean(error <= 2 * np.asarray(curve["error"])))


def _tell(result: dict[str, Any]) -> str:
    lines = [
        "| ε | weights | log Z at the end | standard error | off by | within 2 s.e. at | "
        "mean \\|ΔH\\| | largest weight |",
        "|---|---|---|---|---|---|---|---|",
        f"| | truth | {result['log_z']:.4f} | | | | | |",
    ]
    for name, run in result["runs"].items():
        for form in FORMS:
            last = run[form]
            lines.append(
                f"| {run['step_size']:g} | {form} | {last['log_z'][-1]:.4f} | "
                f"{last['error'][-1]:.4f} | {_off(result, name, form):+.1f} s.e. | "
                f"{_within(result, name, form):.0%} of times | {run['drift']:.3g} | "
                f"{last['max_weight'][-1]:.2g} |"
            )
    fine, coarse = result["runs"]["fine"], result["runs"]["coarse"]
    start, end = fine["exact"]["weight_ess"][0], fine["exact"]["weight_ess"][-1]
    text = (
        f"With the paper's ε = {FINE:g} the Hamiltonian is "
        f"conserved (mean |ΔH| {fine['drift']:.2g}), ⟨E⟩ falls from {fine['energy'][0]:.1f} to "
        f"{fine['energy'][FALL]:.1f} in {FALL} steps while d⟨r⟩ rises to "
        f"{fine['kinetic'][FALL]:.1f}, and the weights give log Z = "
        f"{fine['paper']['log_z'][-1]:.3f} ± {fine['paper']['error'][-1]:.3f} for a truth of "
        f"{result['log_z']:.3f}; the weighted mean energy is "
        f"{fine['exact']['weighted_energy'][-1]:.3f} for {DIM / 2:g}. At t = 0 this is plain "
        f"importance sampling; the flow takes the effective share of the weights from {start:.2f} "
        f"to {end:.2f}, no large gain. With ε = {COARSE:g} the Hamiltonian drifts and the paper's "
        f"form with it, to {coarse['paper']['log_z'][-1]:.2f} ("
        f"{_off(result, 'coarse', 'paper'):+.0f} "
        "standard errors), while the exact form has "
        f"{coarse['exact']['log_z'][-1]:.3f} ± {coarse['exact']['error'][-1]:.3f}: it is unbiased "
        "for Z at any step size, though the weights of a drifting flow grow heavy tails, and its "
        "standard error must then be read with care. The public code's weights, "
        "with E(x_t) in the place of E(x₀), give "
        f"{fine['public_log_z']:.1f} at ε = {FINE:g}."
    )
    return "\n".join(lines) + "\n\n" + text + "\n\n" + _degeneracy(result["diagnosis"])


def _degeneracy(rows: list[dict[str, Any]]) -> str:
    lines = [
        "| d | off by | largest weight | effective chains | said to be trusted |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        lines.append(
            f"| {row['dim']} | {row['off']:+.2f} | {row['max_weight']:.2g} | "
            f"{row['weight_ess']:.1f} | {'yes' if row['trusted'] else 'no'} |"
        )
    text = (
        f"**The largest weight.** The same weights with {PARTICLES} chains on the ill-conditioned "
        "Gaussian (variances .01 to 1, from N(0, I)): for a fixed target the flow can't lower the "
        "variance of the weights, and as the dimension grows a few chains come to hold all of "
        'them. `schuss.evidence` reports it and says so; tempering (`method="smc"`) is the cure.'
    )
    return text + "\n\n" + "\n".join(lines)


ITEM = Item(
    name="jarzynski",
    title="Partition function by Jarzynski weights",
    place="Appendix C.2",
    compute=_compute,
    draw=_draw,
    tell=_tell,
    parts=lambda settings: 3,
)
