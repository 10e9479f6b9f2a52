"""Does a low ESS give away a flow that isn't ergodic? The paper's ESS of orbits known to be cycles.

On ½|x|² in two dimensions the circle of radius √d is an orbit of the scaled flow; all its orbits
keep their angular momentum. On the strongly correlated Gaussian chains disagree for good. Beside
them the mixture, where from one mode every chain is chaotic, and the same flows with a velocity
that is refreshed over L = 2√d.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from schuss.algorithms import ESH
from schuss.diagnostics import paper_ess
from schuss.paper.item import Advance, Item, Settings, short
from schuss.paper.markdown import table
from schuss.targets import Target, isotropic, mog, mog_prior, scg
from schuss.trajectory import trajectory

STEP, STEPS, LONG = 0.1, 200, 5000


class Flow(NamedTuple):
    """A flow and where it begins."""

    name: str
    target: Target
    circle: bool = False


def _flows() -> tuple[Flow, ...]:
    return (
        Flow("circle on ½|x|²", isotropic(2), circle=True),
        Flow("½|x|²", isotropic(2)),
        Flow("SCG", scg()),
        Flow("MOG", mog()),
        Flow("MOG-prior", mog_prior()),
    )


def _start(flow: Flow, chains: int, seed: int) -> dict[str, Any]:
    if not flow.circle:
        return {"chains": chains}
    angle = np.random.default_rng(seed).random(chains) * 2 * math.pi
    outward = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    tangent = np.stack([-np.sin(angle), np.cos(angle)], axis=-1)
    return {"init": math.sqrt(2) * outward, "velocity": tangent}


def _measure(flow: Flow, chains: int, steps: int, refresh: float | None, seed: int):
    """The paper's ESS of 200 steps, and the scatter of ⟨x²⟩ over chains of a long run."""
    truth = flow.target.truth
    assert truth is not None
    given = _start(flow, chains, seed)
    if refresh:
        given.pop("velocity", None)
    sampler = ESH(step_size=STEP, refresh=refresh)
    short_run = trajectory(
        flow.target, sampler=sampler, steps=STEPS, seed=seed, **given, engine="numpy"
    )
    ess = paper_ess(short_run.x[1:], *truth[:4])
    long = trajectory(
        flow.target, sampler=sampler, steps=steps, every=10, seed=seed, **given, engine="numpy"
    )
    weight = np.exp(-(long.energy[1:] - long.energy.min()) / flow.target.dim)[..., None]
    squares = (weight * long.x[1:] ** 2).sum(axis=0) / weight.sum(axis=0)
    return {
        "ess": short(ess.mean()),
        "ess_error": short(ess.std(ddof=1) / math.sqrt(len(ess))),
        "spread": short((squares.std(axis=0, ddof=1) / squares.mean(axis=0)).mean()),
        "off": short(np.abs(squares.mean(axis=0) / truth.second_moment - 1).max()),
    }


def _compute(settings: Settings, advance: Advance) -> dict[str, Any]:
    chains, steps = (20, 500) if settings.quick else (200, LONG)
    rows = []
    for flow in _flows():
        for refresh in (None, 2 * math.sqrt(2)):
            row = {"flow": flow.name, "refreshed": refresh is not None}
            rows.append(row | _measure(flow, chains, steps, refresh, settings.seed))
        advance(flow.name)
    return {"chains": chains, "distance": short(steps * STEP), "rows": rows}


def _tell(result: dict[str, Any]) -> str:
    rows = [
        (
            row["flow"] + (", refreshed" if row["refreshed"] else ""),
            f"{row['ess']:.1e} ± {row['ess_error']:.0e}",
            f"{row['spread']:.3f}",
            f"{row['off']:.0%}",
        )
        for row in result["rows"]
    ]
    return "\n\n".join(
        [
            f"The paper's ESS per gradient after {STEPS} steps of {STEP:g}, {result['chains']} "
            "chains; and after a distance of "
            f"{result['distance']:g} the relative sd of ⟨x²⟩ over the chains, and how far the "
            "worst coordinate's mean over chains is from the truth:",
            table(("flow", "ESS", "sd of ⟨x²⟩", "off by"), rows),
        ]
    )


ITEM = Item(
    name="cycles",
    title="ESS and cycles",
    place="Section 3, metrics",
    compute=_compute,
    draw=lambda result, folder: [],
    tell=_tell,
    parts=lambda settings: len(_flows()),
)
