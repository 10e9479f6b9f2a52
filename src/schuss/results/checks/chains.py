"""Chains that stopped, don't move, are copies, or sample regions of their own."""

import math

import numpy as np

from schuss.diagnostics.vectorised import fast_ess
from schuss.results.checks.evidence import PROPER, WRONG, Evidence, Reason, chain_words, listed
from schuss.results.checks.regions import OWN_ESS, REMEDY, disagreement

MOVES, STILL, APART = 0.01, 1e-3, 6.0
"""Share of draws that differ from the last; variance against the usual; sd of the energy."""

BULK, BEYOND, SOME = 0.9, 1.0, 100
"""The central share of a chain's draws; how many of the usual widths lie between it and the
others; so many draws, evenly spaced, tell."""

WIDER = 6.0
"""How many times as wide as the usual one the central share of a chain's draws may be, or how many
times narrower."""


def frozen(broken: np.ndarray) -> list[Reason]:
    """Chains that met a non-finite energy or gradient."""
    count = int(broken.sum())
    if not count:
        return []
    which = listed(np.flatnonzero(broken).tolist())
    text = (
        f"{count} of {broken.size} chains ({which}) met a non-finite energy or gradient and stopped"
    )
    remedy = (
        "Look at the density there: a logarithm of zero, an overflow, or a bound that needs a "
        "change of variables; or try a smaller step_size"
    )
    return [Reason(WRONG, text, count, 0, remedy)]


def runaway() -> Reason:
    """Nothing finite of moderate size is left to look at."""
    text = "the draws ran away to infinity; the density may be improper"
    return Reason(WRONG, text, math.inf, 0, PROPER)


def equal_chains(evidence: Evidence) -> list[Reason]:
    """Chains that are copies of each other, and so no evidence about each other."""
    x = evidence.x
    _, first, place = np.unique(x[-1], axis=0, return_index=True, return_inverse=True)
    twins = [
        c
        for c, group in enumerate(place.reshape(-1))
        if first[group] != c and np.array_equal(x[:, c], x[:, first[group]])
    ]
    if not twins:
        return []
    text = f"{len(twins) + 1} chains are equal, draw for draw, so they don't check each other"
    remedy = "Give each chain its own start and its own random numbers"
    return [Reason(WRONG, text, len(twins), 0, remedy)]


def stuck(evidence: Evidence) -> list[Reason]:
    """Chains that hardly move; a narrow region that they move freely in isn't meant."""
    x = evidence.x
    draws = len(x)
    moves = np.any(x[1:] != x[:-1], axis=2).mean(axis=0)
    least = MOVES if draws >= 100 else 0.5 / draws
    still = moves < least
    value, threshold = float(moves.min()), float(least)
    variance = x.var(axis=0)
    usual = np.median(variance, axis=0)
    ratio = np.where(usual > 0, variance / np.where(usual > 0, usual, 1.0), 1.0).mean(axis=1)
    small = np.flatnonzero((ratio < STILL) & ~still).tolist()
    slow = [c for c in small if np.median(_ess(evidence, c)) < OWN_ESS]
    if not still.any():
        value, threshold = float(ratio.min()), STILL
    still[slow] = True
    if not still.any():
        return []
    text = f"{chain_words(evidence, still)} hardly moved while the run went on"
    remedy = (
        "Try a smaller step_size or another start; a density with a narrow neck or a hard edge "
        "may need other coordinates"
    )
    return [Reason(WRONG, text, value, threshold, remedy)]


def _ess(evidence: Evidence, chain: int) -> np.ndarray:
    w = None if evidence.weights is None else evidence.weights[:, [chain]]
    return fast_ess(evidence.x[:, [chain]], w)


def apart(evidence: Evidence) -> list[Reason]:
    """Chains that sample regions of their own: by place, by width, or by energy.

    One among many hardly moves R-hat, whose ranks bound what a single chain can do to it.
    """
    draws, chains, _ = evidence.x.shape
    if chains < 3:
        return []
    long = draws >= SOME
    return (long and (_by_place(evidence) or _by_width(evidence))) or _by_energy(evidence)


def _bulk(x: np.ndarray) -> np.ndarray:
    """The ends of the central share of each chain's draws, 2 × (chains, dim)."""
    return np.quantile(x[:: len(x) // SOME], ((1 - BULK) / 2, (1 + BULK) / 2), axis=0)


def _by_energy(evidence: Evidence) -> list[Reason]:
    energy = evidence.energy
    means = energy.mean(axis=0)
    distance = np.abs(means - np.median(means))
    # Short chains know too little of their own spread, so that of the means counts as well.
    spread = max(float(np.median(energy.std(axis=0))), 1.48 * float(np.median(distance)))
    away = float(distance.max()) / spread if spread > 0 else 0.0
    if not away > APART:
        return []
    who = disagreement(evidence, energy, "the energy")
    text = f"{who}, whose mean energies differ by {away:.1f} sd"
    return [Reason(WRONG, text, away, APART, REMEDY)]


def _by_width(evidence: Evidence) -> list[Reason]:
    """Chains that move freely over much less than others do, or over much more."""
    low, high = _bulk(evidence.x)
    usual = np.median(high - low, axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(usual > 0, (high - low) / usual, 1.0)
        off = np.abs(np.log(ratio))
    chain, i = (int(k) for k in np.unravel_index(np.argmax(off), off.shape))
    if not off[chain, i] > math.log(WIDER) or _ess(evidence, chain)[i] < OWN_ESS:
        return []
    square = (evidence.x[:, :, i] - evidence.x[:, :, i].mean()) ** 2
    who = disagreement(evidence, square, f"the spread of {evidence.names[i]}", i)
    return [Reason(WRONG, who, float(ratio[chain, i]), WIDER, REMEDY)]


def _by_place(evidence: Evidence) -> list[Reason]:
    """Chains that stay where others aren't, at whatever energy.

    A chain that gets about reaches the others even where tails are heavy.
    """
    low, high = _bulk(evidence.x)
    usual_low, usual_high = np.median(low, axis=0), np.median(high, axis=0)
    width = usual_high - usual_low
    gap = np.maximum(low - usual_high, usual_low - high)
    away = np.where(width > 0, gap / np.where(width > 0, width, 1.0), 0.0)
    if not away.max() > BEYOND:
        return []
    i = int(np.argmax(away.max(axis=0)))
    who = disagreement(evidence, evidence.x[:, :, i], evidence.names[i], i)
    text = f"{who}, {away.max():.1f} times their width apart"
    return [Reason(WRONG, text, float(away.max()), BEYOND, REMEDY)]
