"""Groups of chains that sample different regions, with what is known of each.

None of them is called wrong: a wide mode may have most of the mass, a lower density than a narrow
one, and the fewer chains.
"""

import math

import numpy as np
from scipy.special import ndtri

from schuss.diagnostics.vectorised import fast_ess, mid_ranks
from schuss.results.checks.evidence import Evidence, chain_words, listed

APART = 4.0
"""Standard errors between the means of two chains from which on they are in different groups."""

OWN_ESS = 50
"""Effective draws of its own from which on a chain moves freely where it is: chains that disagree
all the same aren't short, they are in different regions."""

MOST = 4
"""Groups that are described one by one."""

REMEDY = (
    "A region isn't the right one for having more chains or a higher density: look at the traces, "
    "run longer until chains pass between the regions, or use schuss.evidence, which weighs them "
    "by tempering"
)


def own_ess(column: np.ndarray, w: np.ndarray | None) -> np.ndarray:
    """ESS of each chain by itself, for `column` (draws, chains)."""
    if w is None:
        return fast_ess(column[:, None, :])
    return np.array(
        [
            fast_ess(column[:, c, None, None], w[:, c, None])[0] if w[:, c].any() else 0.0
            for c in range(column.shape[1])
        ]
    )


def groups(column: np.ndarray, w: np.ndarray | None) -> list[np.ndarray]:
    """Two or more groups of chains by their mean normal score in `column` (draws, chains).

    In order of the means, a group ends where the next chain is `APART` standard errors away, or, if
    there is no such gap, at the widest one.
    """
    scores = ndtri((mid_ranks(column) - 0.5) / column.size)
    mean, sd = _mean_and_sd(scores, w)
    error = sd / np.sqrt(np.maximum(own_ess(scores, w), 1.0))
    order = np.argsort(mean)
    error = np.maximum(np.hypot(error[order[1:]], error[order[:-1]]), 1e-12)
    gaps = np.diff(mean[order]) / error
    ends = np.flatnonzero(gaps > min(APART, gaps.max() * (1 - 1e-9))) + 1
    return sorted((np.sort(part) for part in np.split(order, ends)), key=min)


def disagreement(evidence: Evidence, column: np.ndarray, what: str, i: int | None = None) -> str:
    """The groups of chains in `column`, with their mean log-densities and widths.

    Widths are sds of coordinate `i`, or of that in which the groups differ most.
    """
    found = groups(column, evidence.weights)
    stats = [_group(evidence, chains) for chains in found]
    if i is None:
        means, sds = (np.stack([s[k] for s in stats]) for k in (1, 2))
        tiny = np.finfo(float).tiny
        differ = np.ptp(means, axis=0) / (sds.mean(axis=0) + tiny)
        i = int(np.argmax(differ + np.ptp(np.log(sds + tiny), axis=0)))
    parts = []
    for chains, (density, mean, sd) in list(zip(found, stats, strict=True))[:MOST]:
        chosen = np.isin(np.arange(column.shape[1]), chains)
        count = f"{len(chains)} " if len(chains) > 6 else ""
        parts.append(
            f"{count}{chain_words(evidence, chosen)} (mean log-density {density:.1f}, "
            f"{evidence.names[i]} around {_rounded(mean[i], sd[i])} with sd {sd[i]:.2g})"
        )
    if len(found) > MOST:
        parts.append(f"{len(found) - MOST} more groups")
    return f"the chains disagree about {what}: {_sentence(parts)} sample different regions"


def _rounded(mean: float, sd: float) -> str:
    """A mean with a decimal more than its sd begins with."""
    if not 1e-12 < sd < 1e12:
        return f"{mean:.3g}"
    return f"{mean:.{max(0, 1 - math.floor(math.log10(sd)))}f}"


def _sentence(parts: list[str]) -> str:
    return f"{listed(parts[:-1])} and {parts[-1]}"


def _group(evidence: Evidence, chains: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Mean log-density, and mean and sd of every coordinate."""
    dim = evidence.x.shape[2]
    w = None if evidence.weights is None else evidence.weights[:, chains].reshape(-1, 1)
    mean, sd = _mean_and_sd(evidence.x[:, chains].reshape(-1, dim), w)
    energy, _ = _mean_and_sd(evidence.energy[:, chains].reshape(-1, 1), w)
    return -float(energy[0]), mean, sd


def _mean_and_sd(values: np.ndarray, w: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Over the first axis; draws that all have no weight count the same."""
    if w is None:
        return values.mean(axis=0), values.std(axis=0)
    total = w.sum(axis=0)
    share = np.where(total > 0, w / np.where(total > 0, total, 1.0), 1 / len(w))
    mean = (share * values).sum(axis=0)
    return mean, np.sqrt((share * (values - mean) ** 2).sum(axis=0))
