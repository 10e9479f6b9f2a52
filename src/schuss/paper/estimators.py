"""Algorithms 1 to 3: the leapfrog as printed, and three estimators of one average over time.

The same paths give E[h] by a uniformly random time and interpolation (Alg. 2), by weights |v|, and
by reservoirs (Alg. 3). Algorithm 4 has an item of its own.
"""

from typing import Any

import numpy as np
from scipy.stats import chisquare

from schuss.algorithms import ESH
from schuss.core import ergodic, kick, reservoir
from schuss.paper.item import Advance, Item, Settings, short
from schuss.paper.markdown import table
from schuss.targets import Target, mog, mog_prior
from schuss.trajectory import trajectory

STEP = 0.02
LITERAL_STEPS, LITERAL_STEP = 1000, 0.01
DRAWS = 200  # of each chain by Algorithms 2 and 3
STATES = 40  # of the path on which reservoirs are compared with their weights
FUNCTIONS = {
    "abs. x squared": lambda x: np.sum(x**2, axis=-1),
    "x₁ > 0.25": lambda x: (x[..., 0] > 0.25).astype(float),
    "E": lambda x: mog().energy(np, x.reshape(-1, 2)).reshape(x.shape[:-1]),
}


def algorithm_1(
    target: Target, x: np.ndarray, u: np.ndarray, step: float, steps: int, *, literal: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Algorithm 1 line by line: x and r at every step. `literal` keeps its last line as printed.

    That line reads r(t + ε) = r(t) + a(ε/2, …); its r(t) must be the r(t + ε/2) of two lines above.
    """
    d, half = float(target.dim), np.asarray(step / 2)
    r, path = np.zeros(len(x)), [x]
    speeds = [r]
    for _ in range(steps):
        g = target.gradient(np, x)
        u, gained = kick.kick(np, u, g, half, d)
        middle = r + gained
        x = x + step * u
        u, gained = kick.kick(np, u, target.gradient(np, x), half, d)
        r = (r if literal else middle) + gained
        path.append(x)
        speeds.append(r)
    return np.stack(path), np.stack(speeds)


def _printed(seed: int) -> dict[str, float]:
    """Mean |ΔH| over the path, as printed and with the last line put right."""
    rng, target = np.random.default_rng(seed), mog()
    x, u = target.start(rng, 50), rng.standard_normal((50, 2))
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    out = {}
    for name, literal in (("as printed", True), ("put right", False)):
        path, r = algorithm_1(target, x, u, LITERAL_STEP, LITERAL_STEPS, literal=literal)
        energy = np.asarray([target.energy(np, row) for row in path])
        h = energy + target.dim * r
        out[name] = short(np.abs(h - h[0]).mean())
    return out


def by_time(rng: np.random.Generator, x: np.ndarray, r: np.ndarray, draws: int) -> np.ndarray:
    """Algorithm 2 for every chain of x (states, chains, dim), (draws, chains, dim)."""
    times = ergodic.clock(np, r - r.max(axis=0), STEP, x.shape[-1])
    found = []
    for chain in range(x.shape[1]):
        moments = np.sort(rng.random(draws)) * times[-1, chain]
        found.append(ergodic.interpolate(np, x[:, chain], times[:, chain], moments))
    return np.stack(found, axis=1)


def by_reservoir(rng: np.random.Generator, x: np.ndarray, r: np.ndarray, draws: int) -> np.ndarray:
    """Algorithm 3, `draws` reservoirs for every chain of x (states, chains, dim)."""
    states, chains, dim = x.shape
    kept = reservoir.init(np, np.zeros((draws * chains, dim)))
    for k in range(states):
        here = np.broadcast_to(x[k], (draws, chains, dim)).reshape(-1, dim)
        weight = np.broadcast_to(r[k], (draws, chains)).reshape(-1)
        kept = reservoir.update(np, kept, here, weight, rng.random(draws * chains))
    return kept.x.reshape(draws, chains, dim)


def _estimates(settings: Settings) -> dict[str, Any]:
    chains, steps = (8, 500) if settings.quick else (64, 20_000)
    seed = settings.seed
    path = trajectory(
        mog_prior(),
        chains=chains,
        sampler=ESH(step_size=STEP),
        steps=steps,
        seed=seed,
        engine="numpy",
    )
    x, r = path.x[1:], path.r[1:]
    rng = np.random.default_rng([seed, 2])
    share = np.exp(r - r.max(axis=0))
    share /= share.sum(axis=0)
    timed = by_time(rng, x, r, DRAWS)
    # A reservoir of every tenth state: 200 of them for each chain, and all of them judged below.
    kept = by_reservoir(rng, x[::10], r[::10], DRAWS)
    rows = {}
    exact = mog()
    assert exact.sample is not None
    sample = exact.sample(rng, 400_000)
    for name, h in FUNCTIONS.items():
        each = {
            "weights": (share * h(x)).sum(axis=0),
            "random time": h(timed).mean(axis=0),
            "reservoir": h(kept).mean(axis=0),
        }
        rows[name] = {
            "truth": short(h(sample).mean()),
            "mean": {key: short(value.mean()) for key, value in each.items()},
            "error": {
                key: short(value.std(ddof=1) / np.sqrt(chains)) for key, value in each.items()
            },
            "apart": {
                key: _apart(each[key] - each["weights"]) for key in ("random time", "reservoir")
            },
        }
    return {"chains": chains, "steps": steps, "rows": rows}


def _apart(difference: np.ndarray) -> float:
    """The mean of a paired difference in standard errors."""
    return short(difference.mean() / (difference.std(ddof=1) / np.sqrt(len(difference))))


def _reservoirs(draws: int, seed: int) -> dict[str, Any]:
    """Which state of one path reservoirs keep, against the weights: a χ² test."""
    path = trajectory(
        mog_prior(), chains=1, sampler=ESH(step_size=0.1), steps=STATES, seed=seed, engine="numpy"
    )
    number = np.arange(STATES, dtype=float)[:, None, None]
    rng, r = np.random.default_rng([seed, 3]), path.r[1:]
    kept = by_reservoir(rng, number, r, draws)[:, 0, 0].astype(int)
    share = np.exp(r[:, 0] - r.max())
    wanted = draws * share / share.sum()
    enough = wanted >= 5
    counts = np.bincount(kept, minlength=STATES)
    observed = np.append(counts[enough], counts[~enough].sum())
    expected = np.append(wanted[enough], wanted[~enough].sum())
    if expected[-1] < 5:
        observed, expected = (
            observed[:-1],
            expected[:-1] * observed[:-1].sum() / expected[:-1].sum(),
        )
    return {"draws": draws, "p": short(chisquare(observed, expected).pvalue)}


def _compute(settings: Settings, advance: Advance) -> dict[str, Any]:
    found: dict[str, Any] = {"algorithm_1": _printed(settings.seed)}
    advance("Algorithm 1")
    found |= _estimates(settings)
    advance("three estimators")
    found["reservoir"] = _reservoirs(2000 if settings.quick else 50_000, settings.seed)
    advance("reservoirs")
    return found


def _tell(result: dict[str, Any]) -> str:
    kinds = ("weights", "random time", "reservoir")
    rows = [
        (
            name,
            f"{row['truth']:.4f}",
            *(f"{row['mean'][kind]:.4f} ± {row['error'][kind]:.4f}" for kind in kinds),
            *(f"{row['apart'][kind]:+.1f}" for kind in kinds[1:]),
        )
        for name, row in result["rows"].items()
    ]
    first = result["algorithm_1"]
    heads = (
        "mean of",
        "exact samples",
        *kinds,
        "time − weights, s.e.",
        "reservoir − weights, s.e.",
    )
    return "\n\n".join(
        [
            f"{result['chains']} chains of {result['steps']} steps of {STEP:g} from a mode of "
            "MOG-prior; errors from the scatter of the chains, differences in standard errors of "
            f"their own. Algorithms 2 and 3 draw {DRAWS} states of each chain.",
            table(heads, rows),
            f"Mean |ΔH| over {LITERAL_STEPS} steps of {LITERAL_STEP:g} by Algorithm 1: "
            f"{first['as printed']:.3g} as printed, {first['put right']:.3g} with r(t + ε/2) in "
            f"its last line. {result['reservoir']['draws']} reservoirs on one path keep its states "
            f"as often as their weights say (χ², p = {result['reservoir']['p']:.2g}).",
        ]
    )


ITEM = Item(
    name="estimators",
    title="Algorithms 1 to 3",
    place="Appendices D.1 and D.2",
    compute=_compute,
    draw=lambda result, folder: [],
    tell=_tell,
    parts=lambda settings: 3,
)
