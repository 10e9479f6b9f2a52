"""Whether a log Z can be trusted, why not, and what to do."""

import numpy as np

from schuss.diagnostics import max_weight, weight_ess
from schuss.evidence.groups import difference
from schuss.evidence.references import Reference, Uniform
from schuss.evidence.resample import most_apart
from schuss.evidence.smc import Outcome
from schuss.results.verdict import FEW, WRONG, Reason, Verdict

SPREAD = 1.0
"""Of the groups' log Z: above it the mean of their Z hangs on the largest of them."""

MEAN_ERROR = 0.15
"""Of a coordinate's mean, in its sd: a standard error of .07 in the shares of two equal modes."""

APART = 2.0
"""Kurtosis below which draws lie in separate places: 3 for a Gaussian, 1.8 for a uniform one."""

TWO_WAYS, TWO_WAYS_ERRORS = 0.1, 4.0
"""Difference of log Z by weights and by bridges, and that in its standard errors."""

ACCEPTANCE = 0.3
VIRIAL, VIRIAL_ERRORS = 0.25, 6.0
EDGE, AT_EDGE = 0.01, 0.002
"""The outer share of a box, and how much of the draws may lie there."""

LARGEST, LEAST = 0.2, 20.0
"""The largest weight, and the number of particles that the weights must leave."""

STOPPED = {
    "improper": Reason(
        WRONG,
        "the path to the target leads to a density that can't be normalised: the particles run "
        "away",
        float("nan"),
        0.0,
        "Check the sign (energy= is −log p, logdensity= is log p) and that every prior is proper; "
        "a target with far heavier tails than the reference needs a wider one",
    ),
    "stuck": Reason(
        WRONG,
        "the path to the target couldn't be followed: its steps became too small",
        float("nan"),
        0.0,
        "Choose a reference nearer to the target, or look for places where the energy jumps",
    ),
    "budget": Reason(
        FEW,
        "max_gradients was used up before the path reached the target",
        float("nan"),
        0.0,
        "Allow more gradients, or choose a reference nearer to the target",
    ),
}


def judge_smc(outcome: Outcome, x, weights, reference: Reference) -> Verdict:
    """All that speaks against an estimate by tempering; x is (groups, draws, dim)."""
    numbers = {"temperatures": len(outcome.rows)}
    if outcome.stopped:
        return Verdict(False, (STOPPED[outcome.stopped],), numbers)
    reasons = [
        *_lost(outcome),
        *_spread(outcome.log_z),
        *_two_ways(outcome, numbers),
        *_moving(outcome),
        *_virial(outcome),
        *_means(x, weights, numbers),
        *_edges(x, weights, reference),
    ]
    ordered = sorted(reasons, key=lambda reason: reason.kind != WRONG)
    return Verdict(not ordered, tuple(ordered), numbers)


def judge_weights(logs: np.ndarray) -> Verdict:
    """All that speaks against plain importance weights, (particles,)."""
    numbers = {"max_weight": float(max_weight(logs)), "weight_ess": float(weight_ess(logs))}
    if numbers["max_weight"] <= LARGEST and numbers["weight_ess"] >= LEAST:
        return Verdict(True, (), numbers)
    what = (
        f"one particle of {len(logs)} holds {numbers['max_weight']:.0%} of the weight, and the "
        f"weights are worth {numbers['weight_ess']:.1f} particles, the limit is {LEAST:g}: log Z "
        "is most likely too low"
    )
    remedy = (
        "Use method='smc': for a fixed target the flow can't lower the variance of the weights, "
        "and more particles hardly help"
    )
    reason = Reason(WRONG, what, numbers["weight_ess"], LEAST, remedy)
    return Verdict(False, (reason,), numbers)


def _lost(outcome: Outcome) -> list[Reason]:
    if not outcome.lost:
        return []
    what = f"the energy was not a number at {outcome.lost} draws of the reference"
    remedy = "Find out where; return inf there if the target has no density"
    return [Reason(WRONG, what, outcome.lost, 0, remedy)]


def _spread(log_z: np.ndarray) -> list[Reason]:
    spread = float(np.std(log_z, ddof=1)) if np.all(np.isfinite(log_z)) else float("inf")
    if spread <= SPREAD:
        return []
    what = (
        f"the groups of particles disagree about log Z, with a standard deviation of {spread:.2g}, "
        f"the limit is {SPREAD:g}"
    )
    return [Reason(FEW, what, spread, SPREAD, "Use more particles, say particles=1024")]


def _two_ways(outcome: Outcome, numbers) -> list[Reason]:
    """Weights miss what the states before a step hardly reach; bridges see it from the far side."""
    off, error = difference(outcome.log_z, outcome.bridged)
    numbers["bridge"] = off
    if abs(off) <= max(TWO_WAYS, TWO_WAYS_ERRORS * error):
        return []
    what = (
        f"two ways to log Z differ by {off:.2f}: the weights of the path and bridges between its "
        "temperatures, as where the target has heavier tails than the reference or moves are slow"
    )
    remedy = "Widen the reference, or use more particles"
    return [Reason(WRONG, what, abs(off), TWO_WAYS, remedy)]


def _moving(outcome: Outcome) -> list[Reason]:
    """The step size is found in the first temperatures."""
    rates = [row.acceptance for row in outcome.rows[3:]] or [outcome.rows[-1].acceptance]
    lowest = min(rates)
    if lowest >= ACCEPTANCE:
        return []
    what = f"only {lowest:.0%} of the proposals at some temperature were accepted"
    remedy = (
        "Look for narrow necks, hard edges or places where the energy isn't finite; other "
        "coordinates may help"
    )
    return [Reason(WRONG, what, lowest, ACCEPTANCE, remedy)]


def _virial(outcome: Outcome) -> list[Reason]:
    """E[(z − m) ∂E/∂z] = 1 in every coordinate of a density without walls."""
    if outcome.virial is None or outcome.walls:
        return []
    mean = outcome.virial.mean(axis=0)
    error = outcome.virial.std(axis=0, ddof=1) / np.sqrt(len(outcome.virial))
    off = np.where(np.abs(mean - 1) > VIRIAL_ERRORS * error, np.abs(mean - 1), 0.0)
    worst = int(np.argmax(off))
    if not off[worst] > VIRIAL:
        return []
    what = (
        f"the particles don't fit the target: (x − m) ∂E/∂x of coordinate {worst} has the mean "
        f"{mean[worst]:.2f} where it should be 1"
    )
    remedy = "Use more particles; check that the energy and its gradient are those of one function"
    return [Reason(WRONG, what, float(off[worst]), VIRIAL, remedy)]


def _means(x, weights, numbers) -> list[Reason]:
    """How well the groups agree about where the draws lie."""
    groups, draws, dim = x.shape
    flat, w = x.reshape(-1, dim), weights.reshape(-1)
    along, kurtosis = most_apart(flat, w)
    columns = np.concatenate([x, along.reshape(groups, draws, 1)], axis=-1)
    share = weights.sum(axis=1)
    means = np.einsum("gd,gdi->gi", weights / np.where(share > 0, share, 1.0)[:, None], columns)
    mean = share @ means
    sd = np.sqrt(np.einsum("gd,gdi->i", weights, (columns - mean) ** 2))
    error = np.sqrt(groups / (groups - 1) * (share[:, None] ** 2 * (means - mean) ** 2).sum(axis=0))
    relative = error / np.where(sd > 0, sd, np.inf)
    worst = int(np.argmax(relative))
    numbers["mean_error"] = float(relative[worst])
    numbers["kurtosis"] = kurtosis
    if relative[worst] <= MEAN_ERROR:
        return []
    where = "the direction in which they lie apart" if worst == dim else f"coordinate {worst}"
    if kurtosis < APART:
        what = (
            "modes not resolved: the draws lie in separate places, and the groups disagree about "
            f"how many in each (the mean along {where} is known to {relative[worst]:.2f} sd, the "
            f"limit is {MEAN_ERROR:g})"
        )
    else:
        what = (
            f"the mean along {where} is known to {relative[worst]:.2f} sd only, the limit is "
            f"{MEAN_ERROR:g}"
        )
    return [
        Reason(
            FEW, what, float(relative[worst]), MEAN_ERROR, "Use more particles, say 1024 or 4096"
        )
    ]


def _edges(x, weights, reference: Reference) -> list[Reason]:
    """A box that cuts the target off."""
    if not isinstance(reference, Uniform) or reference.support:
        return []
    place = (x - reference.lower) / (reference.upper - reference.lower)
    outside = np.minimum(place, 1 - place) < EDGE
    share = np.einsum("gd,gdi->i", weights, outside)
    worst = int(np.argmax(share))
    if share[worst] <= AT_EDGE:
        return []
    what = (
        f"the box may cut the target off: {share[worst]:.1%} of the draws lie in the outer "
        f"{EDGE:.0%} of coordinate {worst}, and log Z is that of the box alone"
    )
    remedy = "Widen the box, or say support=True if the target ends there by its nature"
    return [Reason(WRONG, what, float(share[worst]), AT_EDGE, remedy)]
