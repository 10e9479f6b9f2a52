"""Chains that stopped, don't move, are copies, or are somewhere else."""

import math

import numpy as np

from schuss.results.checks.evidence import PROPER, WRONG, Evidence, Reason, chain_words, listed

MOVES, STILL, APART = 0.01, 1e-3, 6.0
"""Share of draws that differ from the last; variance against the usual; sd of the energy."""

BULK, BEYOND, SOME = 0.9, 1.0, 100
"""The central share of a chain's draws; how many of the usual widths lie between it and the
others; so many draws, evenly spaced, tell."""


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
    """Chains that hardly move."""
    x = evidence.x
    draws, chains, _ = x.shape
    moves = np.any(x[1:] != x[:-1], axis=2).mean(axis=0)
    least = MOVES if draws >= 100 else 0.5 / draws
    still = moves < least
    value, threshold = float(moves.min()), float(least)
    if chains > 1:
        variance = x.var(axis=0)
        usual = np.median(variance, axis=0)
        ratio = variance / np.where(usual > 0, usual, 1.0)
        spread = np.where(usual > 0, ratio, 1.0).mean(axis=1)
        if not still.any():
            value, threshold = float(spread.min()), STILL
        still = still | (spread < STILL)
    if not still.any():
        return []
    text = f"{chain_words(evidence, still)} hardly moved while the run went on"
    remedy = (
        "Try a smaller step_size or another start; a density with a narrow neck or a hard edge "
        "may need other coordinates"
    )
    return [Reason(WRONG, text, value, threshold, remedy)]


def apart(evidence: Evidence) -> list[Reason]:
    """Chains whose energy is not that of the others."""
    energy = evidence.energy
    if energy.shape[1] < 3:
        return []
    means = energy.mean(axis=0)
    distance = np.abs(means - np.median(means))
    # Short chains know too little of their own spread, so that of the means counts as well.
    spread = max(float(np.median(energy.std(axis=0))), 1.48 * float(np.median(distance)))
    away = distance / spread if spread > 0 else np.zeros_like(distance)
    far = away > APART
    if not far.any():
        return []
    text = (
        f"the mean energy of {chain_words(evidence, far)} is {away.max():.1f} sd away "
        f"from that of the others"
    )
    remedy = "It sits in another place than the others: run longer, or start it elsewhere"
    return [Reason(WRONG, text, float(away.max()), APART, remedy)]


def elsewhere(evidence: Evidence) -> list[Reason]:
    """Chains that stay where the others aren't, at whatever energy.

    One among many hardly moves R-hat, whose ranks bound what a single chain can do to it. A chain
    that gets about reaches the others even where tails are heavy.
    """
    draws, chains, _ = evidence.x.shape
    if chains < 3 or draws < SOME:
        return []
    some = evidence.x[:: draws // SOME]
    low, high = np.quantile(some, ((1 - BULK) / 2, (1 + BULK) / 2), axis=0)
    usual_low, usual_high = np.median(low, axis=0), np.median(high, axis=0)
    width = usual_high - usual_low
    gap = np.maximum(low - usual_high, usual_low - high)
    away = np.where(width > 0, gap / np.where(width > 0, width, 1.0), 0.0)
    far = away.max(axis=1) > BEYOND
    if not far.any():
        return []
    worst = int(np.argmax(away.max(axis=0)))
    who = "the chains stayed apart from each other"
    if not far.all():
        who = f"{chain_words(evidence, far)} stayed apart from the others"
    text = (
        f"{who}: in {evidence.names[worst]} by {away.max():.1f} times the width of where they are"
    )
    remedy = (
        "There is more than one mode and chains don't pass between them, so that their weights "
        "aren't known: run longer, start in proportion, or use schuss.evidence, which tempers"
    )
    return [Reason(WRONG, text, float(away.max()), BEYOND, remedy)]
