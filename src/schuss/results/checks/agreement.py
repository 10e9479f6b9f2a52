"""Whether chains agree, and whether their length explains it if they don't."""

import math
from collections.abc import Callable

import numpy as np
from scipy.special import chdtri, fdtri

from schuss.diagnostics.vectorised import nested_rhat, strict_ess_and_rhat
from schuss.results.checks import regions
from schuss.results.checks.evidence import (
    CHANCE,
    ESS,
    ESS_GOOD,
    FEW,
    WORST,
    WRONG,
    Evidence,
    Found,
    Reason,
    labeller,
    more,
    shares,
)
from schuss.results.checks.regions import OWN_ESS, own_ess

RHAT, RHAT_MOST = 1.05, 1.1
"""Chains of one law with ESS n in m halves have R̂² ≈ 1 + m/n · χ²_{m−1}/(m − 1). At n = 400 and
four chains 1.05 is exceeded by chance in 1 of 10 000 columns, so it holds for the worst of
hundreds, where 1.01 would ask for n ≈ 2000; it means that the sd is known to 5 %. Where the ESS of
the chains explains more than 1.05 that much is allowed, up to 1.1."""

SHORT = 50
"""Draws below which chains that share starts are compared by groups: none can be split then."""

SPREAD, SPREAD_ERRORS = 3.0, 4.0
"""How many times the variance of another chain one may have, and how many errors besides."""

SHORT_CHAINS = "The chains are too short to agree"


def convergence(evidence: Evidence) -> Found:
    """R-hat and ESS of x, (x − m)² and E: of their normal scores, and the ESS of themselves too.

    Scores don't see how long a chain stays in a heavy tail, which is what a mean suffers from.
    """
    x, w = evidence.x, evidence.weights
    mean = np.einsum("tc,tci->i", shares(evidence), x)
    found = strict_ess_and_rhat(x, w, centre=mean)
    energy = strict_ess_and_rhat(evidence.energy[:, :, None], w)
    ess, rhat = (np.concatenate(parts) for parts in zip(found, energy, strict=True))
    dim = x.shape[2]
    # A coordinate that never varies is a failure; a square or an energy that doesn't may be right.
    ignored = (ess == 0) & np.isinf(rhat) & (np.arange(ess.size) >= dim)
    ess, rhat = np.where(ignored, np.inf, ess), np.where(ignored, 1.0, rhat)
    label = labeller(evidence.names)
    numbers = {
        "rhat": float(rhat.max()),
        "rhat_of": label(int(rhat.argmax())),
        "ess": float(ess.min()),
        "ess_of": label(int(ess.argmin())),
        "ess_energy": float(ess[-1]),
        "esses": np.minimum(ess[:dim], ess[dim:-1]),
    }

    def column(i: int) -> np.ndarray:
        if i < dim:
            return x[:, :, i]
        return (x[:, :, i - dim] - mean[i - dim]) ** 2 if i < 2 * dim else evidence.energy

    nested = _nested(evidence, mean)
    numbers |= nested.numbers
    reasons, notes = list(nested.reasons), []
    blamed = np.zeros(ess.size, bool)
    if "nested_rhat" not in numbers:
        moving = np.where(ess > 0, rhat, 1.0)
        reasons += _disagreement(evidence, moving, column, label, blamed)
    low = (ess < ESS) & ~blamed
    if low.any():
        # One number of draws to ask for is enough: what the sizes want is more.
        reasons = [
            r._replace(remedy=SHORT_CHAINS) if r.remedy.startswith(SHORT_CHAINS) else r
            for r in reasons
        ]
        reasons.append(_too_few(evidence, np.where(low, ess, np.inf), int(low.sum()), label))
    elif ESS <= ess.min() < ESS_GOOD:
        notes.append(
            f"the smallest ESS is {ess.min():.0f} ({label(int(ess.argmin()))}); "
            f"{ESS_GOOD} makes tails and error bars dependable"
        )
    return Found(reasons, numbers, notes)


def _too_few(evidence: Evidence, ess: np.ndarray, count: int, label: Callable) -> Reason:
    worst = int(ess.argmin())
    others = f" and {count - 1} more like it" if count > 1 else ""
    text = f"the ESS of {label(worst)} is {ess[worst]:.0f}{others}, the limit is {ESS}"
    if ess[worst] == 0:
        return Reason(
            WRONG,
            f"{label(worst)} never varies{others}",
            0.0,
            ESS,
            "Check that the density depends on it, and that the chains move",
        )
    draws = evidence.x.shape[0]
    wanted = draws * math.ceil(2 * ESS / ess[worst])
    return Reason(FEW, text, float(ess[worst]), ESS, f"Ask for about draws={wanted}")


def _disagreement(
    evidence: Evidence,
    rhat: np.ndarray,
    column: Callable[[int], np.ndarray],
    label: Callable[[int], str],
    blamed: np.ndarray,
) -> list[Reason]:
    """Columns whose chains disagree, told apart by whether the length of the chains explains it.

    Marks in `blamed` the columns whose low ESS is the chains' disagreement.
    """
    suspects = np.flatnonzero(rhat > RHAT)
    if not suspects.size:
        return []
    suspects = suspects[np.argsort(-rhat[suspects])]
    suspects, unseen = suspects[:WORST], suspects[WORST:]
    halves = 2 * evidence.x.shape[1]
    quantile = chdtri(halves - 1, CHANCE / rhat.size) / (halves - 1)
    short, elsewhere = [], []
    for i in suspects.tolist():
        own = own_ess(column(i), evidence.weights)
        by_chance = math.sqrt(1 + halves / max(own.sum(), 1.0) * quantile)
        limit = min(RHAT_MOST, max(RHAT, by_chance))
        if rhat[i] <= limit:
            continue
        if rhat[i] > by_chance and np.median(own) >= OWN_ESS:
            elsewhere.append((i, limit))
            blamed[i] = True
        else:
            short.append((i, limit))
    reasons = []
    if elsewhere:
        blamed[unseen] = True
        i, limit = elsewhere[0]
        dim = len(evidence.names)
        what = f"{label(i)}{more(len(elsewhere), unseen.size)}"
        who = regions.disagreement(evidence, column(i), what, i % dim if i < 2 * dim else None)
        text = (
            f"{who}; R-hat is {rhat[i]:.3g}, the limit is {limit:.3g}, though each chain moved "
            "freely"
        )
        reasons.append(Reason(WRONG, text, float(rhat[i]), limit, regions.REMEDY))
    if short:
        i, limit = short[0]
        text = f"R-hat of {label(i)}{more(len(short))} is {rhat[i]:.3g}, the limit is {limit:.3g}"
        wanted = 4 * evidence.x.shape[0]
        remedy = f"{SHORT_CHAINS}: ask for about draws={wanted}"
        reasons.append(Reason(FEW, text, float(rhat[i]), limit, remedy))
    return reasons


def _nested(evidence: Evidence, mean: np.ndarray) -> Found:
    """Nested R-hat in place of the split one where many chains with few draws share starts.

    Longer ones are compared with each other: modes that all groups have a part of would be missed.
    """
    draws, chains, dim = evidence.x.shape
    few = chains < 16 or draws >= SHORT
    if evidence.groups is None or few or evidence.weights is not None:
        return Found([], {}, [])
    labels, sizes = np.unique(evidence.groups, return_counts=True)
    size = int(sizes.min())
    if labels.size < 2 or size < 2:
        return Found([], {}, [])
    chosen = np.concatenate([np.flatnonzero(evidence.groups == k)[:size] for k in labels])
    # The last draws only: the start should be forgotten by now, not on average.
    late = slice(draws // 2, None)
    energy = evidence.energy[late, :, None]
    centred = evidence.x[late] - mean
    columns = np.concatenate([centred, centred**2, energy], axis=2)[:, chosen]
    rhat = nested_rhat(columns, labels.size)
    constant = np.all(columns == columns[:1, :1], axis=(0, 1))
    rhat = np.where(constant & (np.arange(rhat.size) >= dim), 1.0, rhat)
    worst = int(rhat.argmax())
    limit = math.sqrt(1 + _nested_chance(labels.size, size, rhat.size))
    limit = max(RHAT, limit)
    numbers = {"nested_rhat": float(rhat[worst])}
    if rhat[worst] <= limit:
        return Found([], numbers, [])
    name = labeller(evidence.names)(worst)
    text = f"nested R-hat of {name} is {rhat[worst]:.3g}, the limit is {limit:.3g}"
    remedy = "The chains haven't forgotten their starts: run them longer"
    return Found([Reason(FEW, text, float(rhat[worst]), limit, remedy)], numbers, [])


def _nested_chance(groups: int, size: int, columns: int) -> float:
    """What B/W reaches by chance with one effective draw a chain, over all columns."""
    return float(fdtri(groups - 1, groups * (size - 1), 1 - CHANCE / columns)) / size


def moments(kept_moments, kept: np.ndarray, names: tuple[str, ...]) -> Found:
    """R-hat of whole chains, √(1 + Var(means)/mean(variances)), and the ESS where it is known."""
    mean = np.asarray(kept_moments.mean, dtype=np.float64)[kept]
    variance = np.asarray(kept_moments.variance, dtype=np.float64)[kept]
    numbers, reasons = {}, []
    if mean.shape[0] > 1:
        within = variance.mean(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            rhat = np.where(within > 0, np.sqrt(1 + mean.var(axis=0, ddof=1) / within), np.inf)
        i = int(rhat.argmax())
        numbers |= {"rhat": float(rhat[i]), "rhat_of": names[i]}
        if rhat[i] > RHAT_MOST:
            text = f"R-hat of {names[i]} is {rhat[i]:.3g}, the limit is {RHAT_MOST}"
            remedy = "Run longer, and keep draws once to see why"
            reasons.append(Reason(FEW, text, float(rhat[i]), RHAT_MOST, remedy))
    if kept_moments.ess is not None:
        ess = np.asarray(kept_moments.ess, dtype=np.float64)
        i = int(ess.argmin())
        numbers |= {"ess": float(ess[i]), "ess_of": names[i]}
        if ess[i] < ESS:
            text = f"the ESS of {names[i]} is {ess[i]:.0f}, the limit is {ESS}"
            reasons.append(Reason(FEW, text, float(ess[i]), ESS, "Run longer"))
        reasons += _spreads(variance, ess, names)
    return Found(reasons, numbers, [])


def _spreads(variance: np.ndarray, ess: np.ndarray, names: tuple[str, ...]) -> list[Reason]:
    """Chains of which one has many times the variance of another.

    The logarithm of a variance from n independent draws of a Gaussian has the sd √(2/n); other
    densities have more, so that a factor is allowed besides.
    """
    chains = len(variance)
    low, high = variance.min(axis=0), variance.max(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        limits = SPREAD * np.exp(SPREAD_ERRORS * np.sqrt(2 * chains / np.maximum(ess, 1.0)))
        ratio = np.where(low > 0, high / low, 1.0)
    i = int(np.argmax(ratio / limits))
    if not ratio[i] > limits[i]:
        return []
    text = f"one chain has {ratio[i]:.3g} times the variance of another in {names[i]}"
    remedy = "They are in different places: run longer, and keep draws once to see where"
    return [Reason(WRONG, text, float(ratio[i]), float(limits[i]), remedy)]
