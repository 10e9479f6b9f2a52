"""Appendix B.2: do samples of e^(−E) with fresh velocities stay samples under the scaled flow?

The flow with force divisor κ visits x in proportion to e^(−(d−1)E/κ). At the paper's κ = d exact
samples leave e^(−E), with no first derivative at t = 0, for e^(−(d−1)E/d); at κ = d − 1 they stay.
On E = Σx⁴/4 that takes E[E] from d/4 to d²/(4(d − 1)), a relative change of 1/(d − 1).
"""

import pathlib
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from schuss import plotting
from schuss.algorithms import ESH
from schuss.paper.item import Advance, Item, Settings, short
from schuss.paper.markdown import table
from schuss.sampler import Sampler
from schuss.targets import coupled_quartic, quartic
from schuss.trajectory import trajectory

STEP, DISTANCE, EVERY = 0.05, 50.0, 10
FINE, EARLY = 0.005, 0.3
DIMS = (2, 4, 8, 32)
IMAGES = 3072
TEMPERED = 1.4793
"""E[E] under e^(−E/2) on the coupled quartic, by quadrature in the tests."""


def _drift(kappa: float, chains: int, seed: int) -> dict[str, Any]:
    """E[E] over the distance, from exact samples."""
    target, rng = coupled_quartic(), np.random.default_rng(seed)
    assert target.sample is not None
    x = target.sample(rng, chains)
    path = trajectory(
        target,
        init=x,
        sampler=ESH(step_size=STEP, kappa=kappa),
        steps=round(DISTANCE / STEP),
        every=EVERY,
        seed=seed + 1,
    )
    # States of one path at different times are one sample only: the error is that of one time.
    late = path.energy[len(path.energy) // 2 :].mean(axis=0)
    return {
        "distance": short(np.arange(len(path.energy)) * EVERY * STEP),
        "energy": short(path.energy.mean(axis=1)),
        "late": short(late.mean()),
        "error": short(late.std(ddof=1) / np.sqrt(chains)),
    }


def _derivative(chains: int, seed: int) -> dict[str, Any]:
    """First and second derivative of E[E] at t = 0, κ = d, from paired changes of each chain."""
    target, rng = coupled_quartic(), np.random.default_rng([seed, 1])
    assert target.sample is not None
    path = trajectory(
        target,
        init=target.sample(rng, chains),
        sampler=ESH(step_size=FINE),
        steps=round(EARLY / FINE),
        seed=seed + 2,
    )
    t = np.arange(1, len(path.energy)) * FINE
    design = np.stack([t, t**2 / 2, t**3 / 6], axis=1)
    fitted, *_ = np.linalg.lstsq(design, path.energy[1:] - path.energy[0], rcond=None)
    mean, error = fitted.mean(axis=1), fitted.std(axis=1, ddof=1) / np.sqrt(chains)
    return {"values": short(mean[:2]), "errors": short(error[:2])}


def _law(dim: int, chains: int, steps: int, seed: int) -> dict[str, Any]:
    """The last states' E[E] on Σx⁴/4 where velocities are refreshed, for both κ."""
    target, rng = quartic(dim), np.random.default_rng([seed, dim])
    assert target.sample is not None
    x, row = target.sample(rng, chains), {"dim": dim}
    for name, kappa in (("d", float(dim)), ("d − 1", dim - 1.0)):
        sampler = ESH(step_size=0.05, kappa=kappa, refresh=2 * np.sqrt(dim))
        run = Sampler(sampler, steps=steps, keep="last", seed=seed).run(target=target, init=x)
        energy = target.energy(np, np.asarray(run.x)) / (dim / 4)
        row[name] = short(energy.mean() - 1)
        row[f"error {name}"] = short(energy.std(ddof=1) / np.sqrt(chains))
    return row | {"predicted": short(1 / (dim - 1))}


def _compute(settings: Settings, advance: Advance) -> dict[str, Any]:
    chains = 500 if settings.quick else 20_000
    found: dict[str, Any] = {"chains": chains, "truth": short(coupled_quartic().truth.energy)}  # pyright: ignore
    found["tempered"] = TEMPERED
    for name, kappa in (("d", 2.0), ("d − 1", 1.0)):
        found[f"drift {name}"] = _drift(kappa, chains, settings.seed)
        advance(f"κ = {name}")
    found["derivative"] = _derivative(chains, settings.seed)
    advance("derivatives at 0")
    steps = 200 if settings.quick else 2000
    dims = DIMS[:1] if settings.quick else DIMS
    found["law"] = [_law(dim, chains, steps, settings.seed) for dim in dims]
    found["images"] = short(1 / (IMAGES - 1))
    advance("dimensions")
    return found


def _draw(result: dict[str, Any], folder: pathlib.Path) -> list[str]:
    folder.mkdir(parents=True, exist_ok=True)
    figure = Figure(figsize=(6.5, 2.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    looks = {"d": plotting.look("ESH").colour, "d − 1": plotting.look("ULA").colour}
    for name, colour in looks.items():
        drift = result[f"drift {name}"]
        left.plot(drift["distance"], drift["energy"], color=colour, label=f"κ = {name}")
        dims = [row["dim"] for row in result["law"]]
        values = [row[name] for row in result["law"]]
        errors = [3 * row[f"error {name}"] for row in result["law"]]
        right.errorbar(dims, values, errors, fmt="o", color=colour, capsize=2)
    for level in ("truth", "tempered"):
        left.axhline(result[level], color=plotting.FAINT, linewidth=1, linestyle=(0, (1, 1)))
    left.set(xlabel="distance", title="E[E] of chains that began exact, d = 2")
    left.set(ylim=(0.5, None))
    left.legend(loc="center right")
    line = np.geomspace(2, 32, 60)
    right.plot(line, 1 / (line - 1), color=plotting.FAINT, linewidth=1, label="1/(d − 1)")
    right.axhline(0, color=plotting.FAINT, linewidth=0.7)
    right.set(xscale="log", xlabel="d", title="relative change of E[E], Σx⁴/4")
    right.set(xticks=DIMS, xticklabels=[str(d) for d in DIMS])
    right.minorticks_off()
    right.legend()
    figure.savefig(folder / "stationarity.png")
    return ["stationarity.png"]


def _tell(result: dict[str, Any]) -> str:
    rows = [
        (
            row["dim"],
            f"{row['d']:+.4f} ± {row['error d']:.4f}",
            f"{row['predicted']:+.4f}",
            f"{row['d − 1']:+.4f} ± {row['error d − 1']:.4f}",
        )
        for row in result["law"]
    ]
    paper, other = result["drift d"], result["drift d − 1"]
    first, second = (
        f"{value:+.4f} ± {error:.4f}"
        for value, error in zip(
            *(result["derivative"][k] for k in ("values", "errors")), strict=True
        )
    )
    return "\n\n".join(
        [
            f"{result['chains']} exact samples of the coupled quartic (d = 2) with fresh "
            f"velocities: over the second half of a distance of {DISTANCE:g} E[E] is "
            f"{paper['late']:.4f} ± {paper['error']:.4f} with the paper's κ = d and "
            f"{other['late']:.4f} ± {other['error']:.4f} with κ = d − 1; e^(−E) has "
            f"{result['truth']:.4f} and e^(−E/2) {result['tempered']:.4f}. At t = 0 the first "
            f"derivative of E[E] with κ = d is {first} and the second {second}: the proof's step "
            "from the first derivative to all times is what fails.",
            "Relative change of E[E] on E = Σx⁴/4 with refreshed velocities:",
            table(("d", "κ = d", "1/(d − 1)", "κ = d − 1"), rows),
            f"For images of {IMAGES} numbers 1/(d − 1) is {result['images']:.1e}.",
        ]
    )


ITEM = Item(
    name="stationarity",
    title="Is the target stationary?",
    place="Appendix B.2",
    compute=_compute,
    draw=_draw,
    tell=_tell,
    parts=lambda settings: 4,
)
