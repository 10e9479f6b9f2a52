"""Thermostats beside ESH, the iso-kinetic one, and what a refreshed velocity does to mixing.

Nosé–Hoover chain    three thermostats of mass 1 (Martyna et al. 1992), the scheme of
                     Martyna et al. (1996) with one step of the chain
Langevin thermostat  v' = −g − γv + √(2γ) ξ by BAOAB (Leimkuhler and Matthews 2013), γ = 1
iso-kinetic          v' = −(I − vvᵀ/v²) g with v² = κ (Morriss and Dettmann 1998)
"""

import math
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.integrate import solve_ivp

from schuss import plotting, targets
from schuss.algorithms import ESH, NoseHoover
from schuss.core.nose_hoover import thermostat
from schuss.diagnostics import mmd2, null_level, reference
from schuss.paper.item import Advance, Item, Settings, short
from schuss.paper.markdown import table
from schuss.paper.samplers import TARGETS
from schuss.paper.step_sizes import samples_by_time, whitened
from schuss.targets import Target, coupled_quartic, mog_prior
from schuss.trajectory import trajectory

GRADIENTS = 200
STEPS = (0.01, 0.03, 0.1)
"""The paper's step for thermostats, and larger ones."""
CHECKED = (10, 20, 50, 100, 200)
FRICTION, LINKS = 1.0, 3
LENGTHS = (None, 3.0, 1.0, 0.3)
EARLY = 40
KINDS = ("Nosé–Hoover", "Nosé–Hoover chain", "Langevin thermostat")


def chain_half(v, positions, rates, h: float):
    """Half a step of a chain of thermostats of mass 1: the scaled v, and both parts of the chain.

    Conserved with the rest is Σξ̇²/2 + dξ₁ + ξ₂ + ξ₃.
    """
    d, rates = v.shape[1], list(rates)
    square = np.sum(v * v, axis=1)

    def force(k: int, square):
        return square - d if k == 0 else rates[k - 1] ** 2 - 1

    def push(k: int, square):
        if k == LINKS - 1:
            rates[k] = rates[k] + h / 2 * force(k, square)
            return
        damp = np.exp(-h / 4 * rates[k + 1])
        rates[k] = rates[k] * damp**2 + h / 2 * force(k, square) * damp

    for k in reversed(range(LINKS)):
        push(k, square)
    scale = np.exp(-h * rates[0])
    positions = [p + h * rate for p, rate in zip(positions, rates, strict=True)]
    for k in range(LINKS):
        push(k, square * scale**2)
    return v * scale[:, None], positions, rates


def nose_hoover_chain(target: Target, x, v, step: float, gradients: int) -> dict[str, np.ndarray]:
    """Positions, v²/d and the conserved quantity after each gradient."""
    zero = np.zeros(len(x))
    positions, rates = [zero] * LINKS, [zero] * LINKS
    g, path, heat, kept = target.gradient(np, x), [x], [], []

    def conserved():
        chain = sum(rate**2 for rate in rates) / 2 + target.dim * positions[0]
        return target.energy(np, x) + np.sum(v * v, axis=1) / 2 + chain + sum(positions[1:])

    kept.append(conserved())
    with np.errstate(all="ignore"):
        for _ in range(gradients):
            v, positions, rates = chain_half(v, positions, rates, step / 2)
            v = v - step / 2 * g
            x = x + step * v
            g = target.gradient(np, x)
            v, positions, rates = chain_half(v - step / 2 * g, positions, rates, step / 2)
            path.append(x)
            heat.append(np.mean(v * v, axis=1))
            kept.append(conserved())
    return {"x": np.stack(path), "heat": np.stack(heat), "conserved": np.stack(kept)}


def langevin(target: Target, x, v, step: float, gradients: int, rng) -> dict[str, np.ndarray]:
    """BAOAB: kick, drift, noise, drift, kick."""
    keep = math.exp(-FRICTION * step)
    g, path, heat = target.gradient(np, x), [x], []
    with np.errstate(all="ignore"):
        for _ in range(gradients):
            v = v - step / 2 * g
            x = x + step / 2 * v
            v = keep * v + math.sqrt(1 - keep**2) * rng.standard_normal(v.shape)
            x = x + step / 2 * v
            g = target.gradient(np, x)
            v = v - step / 2 * g
            path.append(x)
            heat.append(np.mean(v * v, axis=1))
    return {"x": np.stack(path), "heat": np.stack(heat)}


def _follow(kind: str, target: Target, step: float, chains: int, seed: int) -> np.ndarray:
    """Positions after each gradient, (201, chains, dim)."""
    rng = np.random.default_rng([seed, 1])
    x = target.start(rng, chains)
    if kind == KINDS[0]:
        sampler = NoseHoover(step_size=step)
        return trajectory(
            target, init=x, sampler=sampler, steps=GRADIENTS, seed=seed, engine="numpy"
        ).x
    v = rng.standard_normal(x.shape)
    if kind == KINDS[1]:
        return nose_hoover_chain(target, x, v, step, GRADIENTS)["x"]
    return langevin(target, x, v, step, GRADIENTS, rng)["x"]


def _curve(target: Target, exact, path: np.ndarray) -> list[float] | None:
    """MMD² at the checked gradients, None where a chain isn't finite."""
    if not np.isfinite(path).all():
        return None
    return [short(mmd2(whitened(target, path[k]), exact)) for k in CHECKED]


def _beside(name: str, chains: int, count: int, seed: int) -> dict[str, Any]:
    target = targets.get(name)
    assert target.sample is not None
    rng = np.random.default_rng([seed, 2])
    exact = reference(whitened(target, target.sample(rng, count)))
    path = trajectory(
        target,
        chains=chains,
        sampler=ESH(step_size=0.1),
        steps=GRADIENTS,
        seed=seed,
        engine="numpy",
    )
    curve = [
        short(
            mmd2(
                whitened(
                    target, samples_by_time(path.x[: k + 1], path.r[: k + 1], np.full(k, 0.1), seed)
                ),
                exact,
            )
        )
        for k in CHECKED
    ]
    found: dict[str, Any] = {"null": short(null_level(exact, chains, replicates=50)), "ESH": curve}
    for kind in KINDS:
        curves = {
            f"{step:g}": _curve(target, exact, _follow(kind, target, step, chains, seed))
            for step in STEPS
        }
        found[kind] = curves
    return found


def _heat(chains: int, seed: int) -> dict[str, Any]:
    """How v²/d comes to rest on MOG-prior, ε = .01: its mean over chains and its swings."""
    target, rng = mog_prior(), np.random.default_rng([seed, 3])
    x, v = target.start(rng, chains), 2 * rng.standard_normal((chains, 2))  # four times too hot
    runs = {
        "Nosé–Hoover chain": nose_hoover_chain(target, x, v, 0.01, 1000)["heat"],
        "Langevin thermostat": langevin(target, x, v, 0.01, 1000, rng)["heat"],
        "Nosé–Hoover": _hoover_heat(target, x, v, 1000),
    }
    out = {}
    for kind, heat in runs.items():
        mean = heat.mean(axis=1)
        late = mean[500:] - mean[500:].mean()
        crossings = int(np.sum(np.sign(late[1:]) != np.sign(late[:-1])))
        out[kind] = {
            "mean": short(mean[::10]),
            "late": short(mean[500:].mean()),
            "crossings": crossings,
        }
    return out


def _hoover_heat(target: Target, x, v, gradients: int) -> np.ndarray:
    zero, heat, g = np.zeros(len(x)), [], target.gradient(np, x)
    xi, rate = zero, zero
    for _ in range(gradients):
        v, xi, rate = thermostat(np, v, xi, rate, 0.005, 1.0)
        v = v - 0.005 * g
        x = x + 0.01 * v
        g = target.gradient(np, x)
        v, xi, rate = thermostat(np, v - 0.005 * g, xi, rate, 0.005, 1.0)
        heat.append(np.mean(v * v, axis=1))
    return np.stack(heat)


def isokinetic(target: Target, x, u, kappa: float, distance: float) -> np.ndarray:
    """x after a distance under the iso-kinetic thermostat with v² = κ, by DOP853."""
    d = target.dim

    def derivative(t, z):
        v, g = z[d:], target.gradient(np, z[None, :d])[0]
        return np.concatenate([v, -g + (g @ v) / (v @ v) * v])

    given: Any = {"method": "DOP853", "rtol": 1e-11, "atol": 1e-11}
    root, ends = math.sqrt(kappa), []
    for one, way in zip(x, u, strict=True):
        z = np.concatenate([one, root * way])
        ends.append(solve_ivp(derivative, (0, distance / root), z, **given).y[:d, -1])
    return np.asarray(ends)


def _isokinetic(seed: int) -> dict[str, Any]:
    """How far its path is from the scaled flow's, for the paper's κ = d and for d − 1."""
    target, rng = coupled_quartic(), np.random.default_rng([seed, 4])
    x, u = rng.standard_normal((2, 5, 2))
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    out = {}
    for name, kappa in (("d", 2.0), ("d − 1", 1.0)):
        other, apart = isokinetic(target, x, u, kappa, 2.0), []
        for step in (0.002, 0.001):
            path = trajectory(
                target,
                init=x,
                velocity=u,
                sampler=ESH(step_size=step, kappa=kappa),
                steps=round(2.0 / step),
                engine="numpy",
            )
            apart.append(short(np.abs(path.x[-1] - other).max()))
        out[name] = apart
    return out


def _mixing(chains: int, seed: int) -> list[dict[str, Any]]:
    """Total variation of the shares of the eight modes from equal ones, MOG-prior, ε = .1."""
    angle = 2 * math.pi * np.arange(8) / 8
    centres = np.stack([np.cos(angle), np.sin(angle)], axis=-1) / 2
    rows = []
    for length in LENGTHS:
        path = trajectory(
            mog_prior(),
            chains=chains,
            sampler=ESH(step_size=0.1, refresh=length),
            steps=GRADIENTS,
            seed=seed,
            engine="numpy",
        )
        row: dict[str, Any] = {"length": length}
        for k in (EARLY, GRADIENTS):
            weight = path.energy[: k + 1] if length else -2 * path.r[: k + 1]
            x = samples_by_time(path.x[: k + 1], -weight / 2, np.full(k, 0.1), seed)
            mode = np.argmin(np.sum((x[:, None] - centres) ** 2, axis=-1), axis=1)
            shares = np.bincount(mode, minlength=8) / len(mode)
            row[str(k)] = short(np.abs(shares - 1 / 8).sum() / 2)
        rows.append(row)
    return rows


def _names(settings: Settings) -> tuple[str, ...]:
    return ("mog-prior",) if settings.quick else ("mog", "mog-prior", "scg", "scg-bias", "icg")


def _compute(settings: Settings, advance: Advance) -> dict[str, Any]:
    chains, count = (40, 500) if settings.quick else (500, 4000)
    found: dict[str, Any] = {"chains": chains, "targets": {}}
    for name in _names(settings):
        found["targets"][name] = _beside(name, chains, count, settings.seed)
        advance(TARGETS[name])
    more: dict[str, Callable[[], Any]] = {
        "heat": lambda: _heat(chains, settings.seed),
        "isokinetic": lambda: _isokinetic(settings.seed),
        "mixing": lambda: _mixing(4 * chains, settings.seed),
    }
    for name, make in more.items():
        found[name] = make()
        advance(name)
    return found


def best(curves: dict[str, list[float] | None]) -> tuple[str, list[float]]:
    """The step whose MMD² is smallest at the end."""
    finite = {step: curve for step, curve in curves.items() if curve is not None}
    step = min(finite, key=lambda s: finite[s][-1])
    return step, finite[step]


def _draw(result: dict[str, Any], folder: pathlib.Path) -> list[str]:
    folder.mkdir(parents=True, exist_ok=True)
    figure = Figure(figsize=(6.5, 2.5), layout="constrained")
    axes = figure.subplots()
    looks = dict(zip(KINDS, ("NoseHoover", "HMC", "ULA"), strict=True))
    for kind, row in result["heat"].items():
        seen = plotting.look(looks[kind])
        steps = 10 * np.arange(len(row["mean"]))
        axes.plot(steps, row["mean"], color=seen.colour, linestyle=seen.dash, label=kind)
    axes.axhline(1, color=plotting.FAINT, linewidth=0.8, linestyle=(0, (1, 1)))
    axes.set(xlabel="gradients", title="⟨v²⟩/d on MOG-prior, ε = 0.01, from four times too hot")
    axes.legend()
    figure.savefig(folder / "thermostats.png")
    return ["thermostats.png"]


def _tell(result: dict[str, Any]) -> str:
    rows = []
    for name, row in result["targets"].items():
        cells = [f"{row['ESH'][-1]:.4f}"]
        for kind in KINDS:
            step, curve = best(row[kind])
            paper = row[kind][f"{STEPS[0]:g}"]
            cells.append(f"{paper[-1]:.4f}; {curve[-1]:.4f} (ε {step})")
        rows.append((TARGETS[name], f"{row['null']:.1e}", *cells))
    mixing = [
        (
            "none" if row["length"] is None else f"{row['length']:g}",
            row[str(EARLY)],
            row[str(GRADIENTS)],
        )
        for row in result["mixing"]
    ]
    heat = ", ".join(
        f"{kind} {row['late']:.2f} ({row['crossings']} crossings)"
        for kind, row in result["heat"].items()
    )
    apart = result["isokinetic"]["d"]
    return "\n\n".join(
        [
            f"MMD² of {result['chains']} chains after {GRADIENTS} gradients: with the paper's ε = "
            f"{STEPS[0]:g}; with the best of {', '.join(f'{s:g}' for s in STEPS)}.",
            table(("", "null sd", "ESH 0.1", *KINDS), rows),
            "⟨v²⟩/d over the second half of 1000 steps, and how often its mean over chains "
            f"crosses its own average there: {heat}.",
            "The iso-kinetic thermostat with v² = κ goes the way of the scaled flow with the force "
            f"divisor κ: after a distance of 2 their paths are {apart[0]:.1e} apart with steps of "
            f"0.002 and {apart[1]:.1e} with 0.001.",
            "Total variation between the shares of chains at the eight modes and equal ones, ESH "
            "with ε = 0.1 from one mode, by the length over which the velocity is refreshed:",
            table(("length", f"{EARLY} gradients", f"{GRADIENTS} gradients"), mixing),
        ]
    )


ITEM = Item(
    name="thermostats",
    title="Thermostats",
    place="Section 4",
    compute=_compute,
    draw=_draw,
    tell=_tell,
    parts=lambda settings: len(_names(settings)) + 3,
)
