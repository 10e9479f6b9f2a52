"""The virial theorem, which sees a bias that all chains share, and densities without a norm."""

import math

import numpy as np
from scipy.special import ndtri, stdtrit

from schuss.diagnostics.vectorised import fast_ess
from schuss.results.checks.evidence import (
    CHANCE,
    ESS,
    PROPER,
    WORST,
    WRONG,
    Evidence,
    Found,
    Reason,
    more,
    shares,
)

MOST_DIM = 200
"""Beyond it no direction is looked for."""

VIRIAL, VIRIAL_FEW, FLAT = 0.25, 4.0, 0.1
"""How far from 1 matters; what too few draws can explain; what counts as no force at all."""

OUTER = 0.25
"""The share of draws that are called furthest out."""


def virial(evidence: Evidence, ess: np.ndarray) -> Found:
    """E[(x_i − m_i) ∂_i E]/T = 1, against an error that counts autocorrelation and disagreement.

    Where the `ess` (dim,) of a coordinate is low, a spread not yet explored explains values from 0
    to `VIRIAL_FEW`, and that is reported already. Who moved in other coordinates needed them, for
    forces in these that are far too uneven for an average: only that there are any is looked at.
    """
    if evidence.gradient is None:
        return Found([], {}, [])
    x, g, w = evidence.x, evidence.gradient, evidence.weights
    if g.shape != x.shape:
        raise ValueError(
            f"gradient must have the shape of x, got {g.shape} for {x.shape}, draws before chains; "
            f"pass the gradient of the energy at every draw"
        )
    if not np.isfinite(g).all():
        return Found([], {}, ["some gradients aren't finite, so the virial wasn't checked"])
    p = shares(evidence)
    unheld = _unheld(p, x, g / evidence.temperature, ess, evidence.names)
    if evidence.charted:
        return Found(unheld, {}, [])
    mean = np.einsum("tc,tci->i", p, x)
    # Centring both leaves the expectation as it is and takes the noise of one mean out.
    force = g - np.einsum("tc,tci->i", p, g)
    with np.errstate(over="ignore", invalid="ignore"):
        product = (x - mean) * force / evidence.temperature
        values = np.einsum("tc,tci->i", p, product)
    off = np.abs(values - 1)
    worst = int(np.where(np.isnan(off), np.inf, off).argmax())
    numbers = {
        "virial": float(values[worst]),
        "virial_of": evidence.names[worst],
        "virials": values,
    }
    # Without any force the virial is zero but for rounding, on either side.
    explained = (ess < ESS) & (values > -1e-6) & (values < VIRIAL_FEW)
    suspects = np.flatnonzero(~(off <= VIRIAL) & ~explained)
    suspects = suspects[np.argsort(-off[suspects])][:WORST]
    notes = []
    if not unheld and np.any(ess < ESS):
        along = _level(evidence.names, p, x - mean, force / evidence.temperature)
        if along:
            notes.append(
                f"the energy hardly changes along {along} over the range visited: if more draws "
                "don't help, the density may be improper there"
            )
    bad = []
    for i in suspects.tolist():
        part = product[:, :, i : i + 1]
        if not np.isfinite(part).all():
            bad.append((i, 0.0))
            continue
        effective = max(float(fast_ess(part, w)[0]), 2.0)
        spread = np.einsum("tc,tc->", p, (product[:, :, i] - values[i]) ** 2)
        # A sample with too little spread also has too small an error: the one at 1 is meant.
        error = math.sqrt(float(spread) / effective) / min(1.0, max(abs(float(values[i])), 0.1))
        if off[i] > -stdtrit(effective - 1, CHANCE / 2 / values.size) * error:
            bad.append((i, error))
    if not bad:
        return Found(unheld, numbers, notes)
    i, error = bad[0]
    numbers["virial_error"] = error
    text = (
        f"E[(x − m) ∂E] of {evidence.names[i]}{more(len(bad))} is {values[i]:.2f} ± {error:.2f}, "
        f"where every density has 1"
    )
    remedy = (
        "The draws aren't from this density yet: the burn-in isn't over, a tail is missed, the "
        "step is too large for unadjusted sampling, or the gradient isn't that of the energy"
    )
    reason = Reason(WRONG, text, float(values[i]), VIRIAL, remedy)
    return Found([*unheld, reason], numbers, notes)


def _unheld(
    p: np.ndarray, x: np.ndarray, g: np.ndarray, ess: np.ndarray, names: tuple[str, ...]
) -> list[Reason]:
    """Among coordinates with few effective draws, those whose outermost ones no force holds."""
    few = np.flatnonzero(ess < ESS)
    loose = few[_loose(p, x[:, :, few], g[:, :, few], ess[few])] if few.size else few
    if not loose.size:
        return []
    count = loose.size
    text = (
        f"the energy rises too little along {names[loose[0]]}{more(count)} to hold the outermost "
        "draws; the density may be improper"
    )
    remedy = f"{PROPER}. If it is proper, the chains have seen little of it so far"
    return [Reason(WRONG, text, count, 0, remedy)]


def _loose(p: np.ndarray, x: np.ndarray, g: np.ndarray, ess: np.ndarray) -> np.ndarray:
    """Coordinates whose outermost draws aren't held, (dim,) bool, beyond what chance may do.

    By parts E[x ∂E | |x| > R] = 1 + R(p(R) + p(−R))/P(|x| > R), more than 1 for every density and
    every R. For a tail that falls as |x|^(−a) it tends to a, and a tail has a norm for a > 1.
    """
    dim = x.shape[2]
    x, g, share = x.reshape(-1, dim), g.reshape(-1, dim), p.reshape(-1)
    x = x - np.median(x, axis=0)
    order = np.argsort(-np.abs(x), axis=0)
    weight = share[order]
    weight = np.where(np.cumsum(weight, axis=0) <= OUTER, weight, 0.0)
    with np.errstate(all="ignore"):
        weight = weight / weight.sum(axis=0)
        product = np.take_along_axis(x * g, order, axis=0)
        value = np.einsum("ni,ni->i", weight, product)
        spread = np.einsum("ni,ni->i", weight, (product - value) ** 2)
        error = np.sqrt(spread / np.maximum(OUTER * ess, 1.0))
        return value - ndtri(CHANCE / dim) * error < 1


def _level(names: tuple[str, ...], p: np.ndarray, x: np.ndarray, force: np.ndarray) -> str:
    """The coordinates of a direction that draws spread along without a force; none is "".

    Var(v·x) Var(v·∂E) ≥ 1 for every density and direction v, here the widest of the draws in units
    of their deviations.
    """
    dim = x.shape[2]
    with np.errstate(all="ignore"):
        sd = np.sqrt(np.einsum("tc,tci->i", p, x**2))
        scaled = x / sd
        if not 1 < dim <= MOST_DIM or not np.isfinite(scaled).all():
            return ""
        flat = scaled.reshape(-1, dim) * np.sqrt(p).reshape(-1, 1)
        values, vectors = np.linalg.eigh(flat.T @ flat)
        v = vectors[:, -1]
        slope = np.einsum("tc,tc->", p, (force * sd @ v) ** 2)
    if not values[-1] * slope < FLAT**2:
        return ""
    most = np.argsort(-np.abs(v))[:2]
    return " and ".join(names[i] for i in sorted(most)) + " together"


OUTWARD = 10.0
"""How far below 0 work along the way is told. Scatter is of both signs."""


def improper(evidence: Evidence, virials: np.ndarray | None) -> list[Reason]:
    """Draws that move outward without end: the spread grows from quarter to quarter.

    With a gradient, and a virial near or below 0 in such a coordinate; without, and an energy that
    falls in every chain and doesn't level off.
    """
    x, energy = evidence.x, evidence.energy
    draws, chains, _ = x.shape
    if draws < 20:
        return []
    quarters = np.array_split(np.arange(draws), 4)
    start = x[quarters[0]].mean(axis=(0, 1))
    spread = np.stack([((x[q] - start) ** 2).mean(axis=(0, 1)) for q in quarters])
    growing = np.all(spread[1:] > 1.2 * spread[:-1], axis=0) & (spread[3] > 2 * spread[1])
    means = np.stack([energy[q].mean(axis=0) for q in quarters])
    drops = means[:-1] - means[1:]
    noise = np.stack([energy[q].std(axis=0) for q in quarters]).max(axis=0)
    falling = bool(np.all(drops > 0) and np.all(drops[2] > drops[0] / 2)) and chains > 1
    falling = falling and bool(np.all(means[0] - means[3] > 0.5 * noise))
    if virials is not None:
        growing = growing & (virials < FLAT)
    elif not falling:
        return []
    if not growing.any():
        return []
    i = int(np.where(growing, spread[3] / np.maximum(spread[1], 1e-300), -1).argmax())
    count = int(growing.sum())
    energies = ", while the energy keeps falling" if falling else ""
    text = (
        f"{evidence.names[i]}{more(count)} drifts outward without end{energies}; "
        f"the density may be improper"
    )
    value = float(spread[3, i] / max(spread[1, i], 1e-300))
    return [Reason(WRONG, text, value, 2.0, PROPER)]


def outward(work: float) -> list[Reason]:
    """Chains all on their way out: most draws of each have a negative (x − x₀)·∇E/d.

    Its mean is 1 for every density.
    """
    if not work < -OUTWARD:
        return []
    text = "all chains leave their start while the energy falls; the density may be improper"
    return [Reason(WRONG, text, work, -OUTWARD, f"{PROPER}. If it is proper, start nearer to it")]
