"""Whether a log Z can be trusted, why not, and what to do."""

import numpy as np

from schuss.diagnostics import max_weight, weight_ess
from schuss.evidence.groups import combine, difference
from schuss.evidence.modes import apart_anywhere
from schuss.evidence.references import Reference, Uniform
from schuss.evidence.smc import MOST, WORTH, Outcome
from schuss.results.verdict import FEW, WRONG, Reason, Verdict

SPREAD = 1.0
"""Of the groups' log Z: above it the mean of their Z hangs on the largest of them."""

MEAN_ERROR = 0.15
"""Of a coordinate's mean, in its sd."""

MODE_ERROR = 0.09
"""Of the mean in the direction in which the draws lie apart, in its sd: a standard error of .045 in
the shares of two equal modes."""

SLOWEST = MOST / WORTH
"""Correlation time of E − E₀, in moves, for which there are moves enough."""

APART = 2.0
"""Separation from which draws lie in separate places: that of two Gaussians four sd apart."""

TWO_WAYS, TWO_WAYS_ERRORS = 0.1, 4.0
"""Difference of log Z by weights and by bridges, and that in its standard errors."""

ACCEPTANCE = 0.3
VIRIAL, VIRIAL_ERRORS = 0.25, 6.0
OUTERMOST, TAIL, TAIL_ERRORS = 0.05, 2.1, 5.0
"""The share of particles that tails are judged by, and the least index α that is trusted.

Light tails scatter and the heaviest don't, so that many errors cost no power. Of 256 exact draws
of Student's t in up to 50 dimensions all are told with one degree of freedom, nine tenths or more
with two, and none with five; nor any of a normal, Laplace's or Gumbel's density.
"""

FEWEST, TAIL_OF_FEW = 8, 1.5
"""The least number to judge tails by, and the least index where that is a larger share: not far
enough out to be sure of more."""

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
        *_slow(outcome, numbers),
        *_virial(outcome),
        *_tails(outcome, numbers),
        *_means(outcome, x, weights, numbers),
        *_edges(x, weights, reference),
    ]
    ordered = sorted(reasons, key=lambda reason: reason.kind != WRONG)
    return Verdict(not ordered, tuple(ordered), numbers)


def judge_weights(logs: np.ndarray) -> Verdict:
    """All that speaks against plain importance weights, (particles,); −inf where one was lost."""
    lost = int(np.sum(logs == -np.inf))
    if lost == len(logs):
        return Verdict(False, _stopped(lost, len(logs)), {})
    numbers = {"max_weight": float(max_weight(logs)), "weight_ess": float(weight_ess(logs))}
    reasons = _stopped(lost, len(logs)) + _degenerate(len(logs), **numbers)
    return Verdict(not reasons, reasons, numbers)


def _stopped(lost: int, particles: int) -> tuple[Reason, ...]:
    """A flow that ends at a wall doesn't come to what lies behind others' ends: mass is missed."""
    if not lost:
        return ()
    what = (
        f"{lost} of {particles} particles came to where the energy or its gradient isn't finite, "
        "and were stopped: log Z is too low"
    )
    remedy = "Use method='smc', which walls don't disturb, or reflect at them: ESH(box=…)"
    return (Reason(WRONG, what, lost, 0, remedy),)


def _degenerate(particles: int, max_weight: float, weight_ess: float) -> tuple[Reason, ...]:
    if max_weight <= LARGEST and weight_ess >= LEAST:
        return ()
    what = (
        f"one particle of {particles} holds {max_weight:.0%} of the weight, and the weights are "
        f"worth {weight_ess:.1f} particles, the limit is {LEAST:g}: log Z is most likely too low"
    )
    remedy = (
        "Use method='smc': for a fixed target the flow can't lower the variance of the weights, "
        "and more particles hardly help"
    )
    return (Reason(WRONG, what, weight_ess, LEAST, remedy),)


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


def _slow(outcome: Outcome, numbers) -> list[Reason]:
    """Particles that stay near where resampling put them: mass that should grow elsewhere doesn't.

    The groups all miss it alike, so that their spread doesn't tell.
    """
    time = float(np.median([row.correlation_time for row in outcome.rows[-3:]]))
    numbers["correlation_time"] = time
    if time <= SLOWEST:
        return []
    what = (
        f"the particles hardly mix near the target: E − E₀ is correlated over {time:.0f} moves, "
        f"the limit is {SLOWEST:g}, as in a narrow neck or a tail far heavier than the "
        "reference's; log Z may be wrong by more than its error"
    )
    remedy = (
        "Choose a reference with wider tails, or coordinates without a neck (a hierarchy "
        "non-centred, say); more particles alone don't help"
    )
    return [Reason(WRONG, what, time, SLOWEST, remedy)]


def _virial(outcome: Outcome) -> list[Reason]:
    """E[(z − m) ∂E/∂z] = 1 in every coordinate of a density without walls."""
    if outcome.pull is None or outcome.walls:
        return []
    y, slope = outcome.pull
    mean, error = _mean_and_error((y - y.mean(axis=0)) * slope)
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


def _tails(outcome: Outcome, numbers) -> list[Reason]:
    """How a density falls far out, by what pulls at the outermost particles.

    y ∂E/∂y → 1 + α where it falls like |y|^(−1−α) along a coordinate, and y·∇E → d + α where it
    falls like |y|^(−d−α) with the distance; in light tails both grow without end. From α about 2
    down there is no variance, and so much of the mass may lie beyond all particles that log Z
    misses it: they all miss it alike.
    """
    if outcome.pull is None or outcome.walls:
        return []
    y, slope = outcome.pull
    count = max(round(OUTERMOST * len(y)), FEWEST)
    if count > len(y) // 4:
        return []
    away = y - np.median(y, axis=0)
    scale = np.median(np.abs(away), axis=0)
    radius = np.sum((away / np.where(scale > 0, scale, np.inf)) ** 2, axis=1)
    work = away * slope
    far = np.argsort(np.column_stack([np.abs(away), radius]), axis=0)[-count:]
    outer = np.take_along_axis(np.column_stack([work, work.sum(axis=1)]), far, axis=0)
    mean, error = _mean_and_error(outer)
    index = mean - np.append(np.ones(y.shape[1]), y.shape[1])
    least = TAIL if OUTERMOST * len(y) >= FEWEST else TAIL_OF_FEW
    heavy = index + TAIL_ERRORS * error <= least
    if not heavy.any():
        return []
    surest = int(np.argmin(np.where(heavy, error, np.inf)))
    numbers["tail_index"] = float(index[surest])
    where = "the target" if surest == y.shape[1] else f"coordinate {surest}"
    what = (
        f"{where} has tails that fall like |x|^−{mean[surest]:.1f}, too heavy for "
        "particles that set out from the reference: log Z may be too low by more than its error"
    )
    remedy = "Choose a reference with tails as heavy, or coordinates in which they are light"
    return [Reason(WRONG, what, numbers["tail_index"], least, remedy)]


def _mean_and_error(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(len(values))


def _means(outcome: Outcome, x, weights, numbers) -> list[Reason]:
    """How well the groups agree about where the draws lie."""
    along, separation, _ = apart_anywhere(x.reshape(-1, x.shape[-1]), weights.reshape(-1))
    relative = _mean_errors(x, weights)
    apart = float(_mean_errors(along.reshape(*weights.shape, 1), weights)[0])
    worst = int(np.argmax(relative))
    numbers["mean_error"], numbers["separation"] = float(relative[worst]), separation
    if separation > APART:
        # Modes that have parted gather errors of their own in log Z, of which the error of log Z
        # is the sum and that of the shares the difference: a second opinion about its size.
        _, error = combine(outcome.log_z)
        numbers["mode_error"] = float(np.hypot(apart, error) / np.sqrt(2))
        if numbers["mode_error"] > MODE_ERROR:
            what = (
                "modes not resolved: the draws lie in separate places, and how many belong in each "
                f"is known to {numbers['mode_error']:.2f} sd only, the limit is {MODE_ERROR:g}"
            )
            remedy = "Use more particles, say 1024 or 4096"
            return [Reason(FEW, what, numbers["mode_error"], MODE_ERROR, remedy)]
    if max(relative[worst], apart) <= MEAN_ERROR:
        return []
    where = f"coordinate {worst}"
    if apart > relative[worst]:
        where = "the direction in which the draws lie most apart"
    value = float(max(relative[worst], apart))
    what = f"the mean along {where} is known to {value:.2f} sd only, the limit is {MEAN_ERROR:g}"
    return [Reason(FEW, what, value, MEAN_ERROR, "Use more particles, say 1024 or 4096")]


def _mean_errors(x, weights) -> np.ndarray:
    """Standard errors of the means over groups, in sd of each column of x (groups, draws, n)."""
    groups, share = len(x), weights.sum(axis=1)
    means = np.einsum("gd,gdi->gi", weights / np.where(share > 0, share, 1.0)[:, None], x)
    mean = share @ means
    sd = np.sqrt(np.einsum("gd,gdi->i", weights, (x - mean) ** 2))
    error = np.sqrt(groups / (groups - 1) * (share[:, None] ** 2 * (means - mean) ** 2).sum(axis=0))
    return error / np.where(sd > 0, sd, np.inf)


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
