"""The uniform distribution on a shell of constant energy (Eq. 3), v = 0, and the line (App. A.2).

Points (x, v) uniform in a box are kept where |H − c| ≤ h. Under K_ESH the x of those kept follow
e^(−E) for every c and h; under Newton's kinetic energy in two dimensions they are uniform in x.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.integrate import quad, solve_ivp

from schuss.algorithms import ESH, Unscaled
from schuss.core.dynamics import kinetic
from schuss.paper.item import Advance, Item, Settings, short
from schuss.paper.markdown import table
from schuss.targets import coupled_quartic, mog_prior, quartic
from schuss.trajectory import trajectory

LEVELS, WIDTH, REACH = (-2.0, 0.0, 5.0), 0.5, 4.0
NEWTON_LEVELS = (1.0, 2.0, 5.0)
STEP, STEPS = 0.1, 1000
SPEEDS = (1e-2, 1.0, 1e2)


def on_shell(rng: np.random.Generator, level: float, q: float, proposals: int) -> np.ndarray:
    """Positions x of points uniform in |E(x) + K_q(v) − c| ≤ h, (n, 2)."""
    target, top = coupled_quartic(), level + WIDTH
    # The largest |v| that the shell allows: K(v) ≤ c + h where E = 0.
    longest = math.sqrt(2) * (math.exp(top / 2) if q == 1 else math.sqrt(top))
    x = rng.uniform(-REACH, REACH, (proposals, 2))
    radius, angle = longest * np.sqrt(rng.random(proposals)), rng.random(proposals) * 2 * math.pi
    v = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    energy = target.energy(np, x) + (kinetic(np, v, 1) if q == 1 else radius**2 / 2)
    return x[np.abs(energy - level) <= WIDTH]


def _levels(rng: np.random.Generator, proposals: int) -> list[dict[str, Any]]:
    """Means of E over shells, against e^(−E)."""
    target, out = coupled_quartic(), []
    assert target.truth is not None and target.truth.energy is not None
    for q, levels in ((1, LEVELS), (0, NEWTON_LEVELS)):
        for level in levels:
            energy = target.energy(np, on_shell(rng, level, q, proposals))
            error = energy.std(ddof=1) / math.sqrt(len(energy))
            off = (energy.mean() - target.truth.energy) / error
            row = {"q": q, "level": level, "kept": len(energy), "energy": energy.mean()}
            out.append(
                {k: short(value) for k, value in (row | {"error": error, "off": off}).items()}
            )
    return out


def to_infinity(dim: int, start: float = 0.0) -> float:
    """Time of the exact flow up an axis of E = Σx⁴/4 to infinity, |v| = 1 at the start.

    dx/dt = d/v with v = e^((E₀ − E)/d), which is one dimension's problem on any axis.
    """
    first = start**4 / 4
    whole, _ = quad(lambda x: math.exp((first - x**4 / 4) / dim) / dim, start, math.inf)
    return whole


def _line(chains: int, seed: int) -> dict[str, Any]:
    """On the line: the exact flow almost to infinity, and what errors do to the two leapfrogs."""
    whole = to_infinity(1)
    given: Any = {"method": "DOP853", "rtol": 1e-10, "atol": 1e-14}
    ride = solve_ivp(lambda t, z: (1 / z[1], -(z[0] ** 3)), (0, 0.999 * whole), (0.0, 1.0), **given)
    target = quartic(1)
    paths = {
        name: trajectory(
            target, chains=chains, sampler=sampler, steps=STEPS, seed=seed, engine="numpy"
        )
        for name, sampler in (
            ("scaled", ESH(step_size=STEP)),
            ("original", Unscaled(step_size=STEP)),
        )
    }
    turned = {
        name: np.mean((np.sign(path.u[1:]) != np.sign(path.u[:-1])).any(axis=0))
        for name, path in paths.items()
    }
    return {
        "time_to_infinity": short(whole),
        "slowest": short(ride.y[1].min()),
        "farthest": short(ride.y[0].max()),
        "turned": {name: short(share) for name, share in turned.items()},
    }


def _plane(chains: int, seed: int) -> list[dict[str, Any]]:
    """In higher dimensions: the smallest |v|, and whether chains turn back."""
    out = []
    for dim in (2, 3, 10):
        target = quartic(dim)
        path = trajectory(
            target,
            chains=chains,
            sampler=ESH(step_size=STEP / 4),
            steps=STEPS,
            seed=seed,
            engine="numpy",
        )
        predicted = (path.energy[0] - path.energy) / dim
        away = np.linalg.norm(path.x, axis=-1)
        out.append(
            {
                "dim": dim,
                "slowest": short(np.exp(path.r.min())),
                "law": short(np.median(np.abs(path.r - predicted))),
                "farthest": short(away.max()),
                "turned": short(np.mean(away[-1] < STEP / 4 * STEPS - 2 * away[0])),
            }
        )
    return out


def _head_on() -> dict[str, Any]:
    """Up an axis in two dimensions: straight against the force, and a little beside it."""
    angles = np.asarray([0.0, 1e-8, 1e-4, 1e-2])
    path = trajectory(
        quartic(2),
        init=np.tile([[0.5, 0.0]], (len(angles), 1)),
        velocity=np.stack([np.cos(angles), np.sin(angles)], axis=-1),
        sampler=ESH(step_size=STEP / 10),
        steps=STEPS,
        engine="numpy",
    )
    return {
        "time_to_infinity": short(to_infinity(2, 0.5)),
        "angles": short(angles),
        "highest": short(path.x[..., 0].max(axis=0)),
        "turned": short(path.u[..., 0].min(axis=0) < 0),
    }


def _levels_of_flow(chains: int, seed: int) -> dict[str, Any]:
    """Whether the level of H matters to the samples of a chain: another |v(0)|, the same path."""
    path = trajectory(
        mog_prior(),
        chains=chains,
        sampler=ESH(step_size=STEP),
        steps=200,
        seed=seed,
        engine="numpy",
    )
    drift = np.abs(path.hamiltonian - path.hamiltonian[0])
    return {"drift": short(np.median(drift[-1]))}


def _compute(settings: Settings, advance: Advance) -> dict[str, Any]:
    proposals = 100_000 if settings.quick else 3_000_000
    chains = 20 if settings.quick else 200
    parts: dict[str, Callable[[], Any]] = {
        "levels": lambda: _levels(np.random.default_rng(settings.seed), proposals),
        "line": lambda: _line(chains, settings.seed),
        "plane": lambda: _plane(chains, settings.seed),
        "head_on": _head_on,
        "flow": lambda: _levels_of_flow(chains, settings.seed),
    }
    found: dict[str, Any] = {"truth": short(coupled_quartic().truth.energy), "chains": chains}  # pyright: ignore
    for name, make in parts.items():
        found[name] = make()
        advance(name)
    return found


def _tell(result: dict[str, Any]) -> str:
    names = {0: "Newton", 1: "ESH"}
    levels = [
        (
            names[row["q"]],
            f"{row['level']:g}",
            row["kept"],
            f"{row['energy']:.4f} ± {row['error']:.4f}",
        )
        for row in result["levels"]
    ]
    plane = [
        (row["dim"], f"{row['slowest']:.2g}", f"{row['farthest']:.3g}", f"{row['turned']:.0%}")
        for row in result["plane"]
    ]
    line, straight = result["line"], result["head_on"]
    climbs = ", ".join(
        f"{angle:g} rad beside it up to {height:.3g}"
        for angle, height in zip(straight["angles"], straight["highest"], strict=True)
    )
    return "\n\n".join(
        [
            f"E[E] over points uniform in |H − c| ≤ {WIDTH:g}, coupled quartic in two dimensions; "
            f"e^(−E) has {result['truth']:.4f}:",
            table(("kinetic energy", "c", "points", "mean of E"), levels),
            f"The scaled flow from N(0, I) on E = Σx⁴/4, {result['chains']} chains, distance "
            f"{STEP / 4 * STEPS:g}:",
            table(
                ("d", "smallest abs. v, 1 at the start", "farthest abs. x", "turned back"), plane
            ),
            "On the line (E = x⁴/4, from the bottom with v = 1) the exact flow never turns and is "
            f"at infinity, with v = 0, after a time of {line['time_to_infinity']:.3f}; at 99.9 % "
            f"of it v is {line['slowest']:.2g}. Errors turn it all the same: rounding in "
            f"{line['turned']['scaled']:.0%} of the chains of the scaled leapfrog, the step in "
            f"{line['turned']['original']:.0%} of the original one's. An axis of two dimensions is "
            "a line: the exact flow straight up from x = 0.5 is at infinity after "
            f"{straight['time_to_infinity']:.3f}. The scaled leapfrog climbs {climbs}.",
        ]
    )


ITEM = Item(
    name="shell",
    title="The shell, v = 0 and the line",
    place="Equation 3 and Appendix A.2",
    compute=_compute,
    draw=lambda result, folder: [],
    tell=_tell,
    parts=lambda settings: 5,
)
