"""Whether the draws can be trusted, why not, and what to do."""

import dataclasses
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from schuss.results import checks
from schuss.results.checks import FEW, WRONG, Evidence, Reason
from schuss.results.stats import Moments

__all__ = ["FEW", "WRONG", "NotConverged", "Reason", "Verdict", "judge", "judge_moments"]

HUGE = 1e100
"""Draws beyond this are taken for a run-away; their squares would overflow."""

MUCH = 1000
"""Larger values of R-hat all say the same."""


class NotConverged(UserWarning):
    """The draws failed a check."""


@dataclasses.dataclass(frozen=True)
class Verdict:
    """Converged if there is no reason against it; notes are what deserves a word all the same."""

    converged: bool
    reasons: tuple[Reason, ...]
    numbers: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    interrupted: str = ""  # how far the run had come, where it was interrupted

    @property
    def improper(self) -> bool:
        """Whether a reason is that the density may be improper."""
        return any("may be improper" in reason.what for reason in self.reasons)

    @property
    def headline(self) -> str:
        """The verdict in one line."""
        first = f"Interrupted after {self.interrupted}. " if self.interrupted else ""
        told = []
        if "rhat" in self.numbers:
            rhat = self.numbers["rhat"]
            told.append(f"worst R-hat {rhat:.3f}" if rhat < MUCH else f"worst R-hat over {MUCH}")
        if "ess" in self.numbers:
            told.append(f"smallest ESS {self.numbers['ess']:.0f}")
        if self.converged:
            return f"{first}Converged: " + (", ".join(told) or "no check failed") + "."
        kinds = [kind for kind in (WRONG, FEW) if any(r.kind == kind for r in self.reasons)]
        return (
            f"{first}NOT converged ({' and '.join(kinds)})" + "".join(f", {t}" for t in told) + "."
        )

    def __str__(self) -> str:
        lines = [self.headline]
        lines += [f"  {r.kind}: {r.what}. {r.remedy}." for r in self.reasons]
        lines += [f"  note: {note}." for note in self.notes]
        return "\n".join(lines)

    def warn(self, stacklevel: int = 2) -> None:
        """A `NotConverged` warning with the reasons and remedies, if there are any."""
        if not self.converged:
            warnings.warn(str(self), NotConverged, stacklevel=stacklevel + 1)


def judge(
    x: ArrayLike,
    energy: ArrayLike,
    *,
    gradient: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    energy_error: ArrayLike | None = None,
    acceptance: ArrayLike | None = None,
    frozen: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    exact: bool = True,
    cut_short: bool = False,
    temperature: float = 1.0,
    start_groups: ArrayLike | None = None,
    left_behind: float = 0.0,
    outward: float = 1.0,
    charted: bool = False,
) -> Verdict:
    """Judge draws `x` (chains, draws, dim) with their `energy` (chains, draws).

    The dtype of `energy` is taken for the precision in which it was computed.
    `gradient` is ∇E at the draws, where the density has no walls (the virial theorem fails at
    them). `temperature` is that of the draws without their weights. Chains with the same label in
    `start_groups` (chains,) began at one place. `left_behind` is the mass of a
    place that chains were at and no draw is, against that of the draws, `outward` the largest
    upper quartile of (x − x₀)·∇E/d in a chain with the start x₀. `cut_short` says that
    the parameters hadn't settled, `charted` that the chains moved in other coordinates. Frozen
    chains fail the verdict and are then left out of the other checks, unless there is no other
    chain.
    """
    rounded = np.asarray(energy)
    x, energy = np.asarray(x, dtype=np.float64), np.asarray(rounded, dtype=np.float64)
    if x.ndim != 3 or x.size == 0 or energy.shape != x.shape[:2]:
        raise ValueError(
            f"x must have shape (chains, draws, dim) and energy (chains, draws), got {x.shape} and "
            f"{energy.shape}; pass one energy for every draw"
        )
    chains, _, dim = x.shape
    names = tuple(f"x[{i}]" for i in range(dim)) if names is None else tuple(names)
    if len(names) != dim:
        raise ValueError(f"names must have {dim} entries like x, got {len(names)}")
    stopped = np.zeros(chains, bool) if frozen is None else np.asarray(frozen, bool).reshape(chains)
    finite = np.asarray(np.isfinite(x).all(axis=(1, 2)) & np.isfinite(energy).all(axis=1))
    broken = np.asarray(stopped | ~finite)
    kept = np.asarray(~broken if not broken.all() else finite)
    reasons = checks.frozen(broken)
    if not kept.any() or np.abs(x[kept]).max() > HUGE:
        return _verdict([*reasons, checks.runaway()], {}, [])
    alone = checks.outward(outward) or checks.places(x[kept], rounded.dtype, names)
    if alone:
        return _verdict([*reasons, *alone], {}, [])
    labels = None if start_groups is None else np.asarray(start_groups).reshape(chains)[kept]
    evidence = Evidence(
        x=np.moveaxis(x[kept], 0, 1),
        energy=energy[kept].T,
        gradient=_over_draws(gradient, kept),
        weights=_over_draws(weights, kept),
        names=names,
        chain_names=tuple(np.flatnonzero(kept).tolist()),
        temperature=1.0 if weights is not None else float(temperature),
        groups=labels,
        charted=charted,
    )
    found = checks.look(evidence)
    reasons += found.reasons + checks.left_behind(left_behind) + checks.cut_short(cut_short)
    if charted:
        reasons += checks.broken(energy_error, kept)
    numbers, notes = dict(found.numbers), list(found.notes)
    for more in (
        checks.digits(rounded[kept]),
        checks.acceptance(acceptance, kept),
        checks.energy_error(energy_error, kept, dim, exact),
    ):
        reasons += more.reasons
        numbers.update(more.numbers)
        notes += more.notes
    return _verdict(reasons, numbers, notes)


def judge_moments(
    moments: Moments,
    *,
    names: Sequence[str] | None = None,
    acceptance: ArrayLike | None = None,
    energy_error: ArrayLike | None = None,
    frozen: ArrayLike | None = None,
    exact: bool = True,
    cut_short: bool = False,
    energy: ArrayLike | None = None,
    left_behind: float = 0.0,
    outward: float = 1.0,
    charted: bool = False,
) -> Verdict:
    """Judge a run of which only the moments were kept: R-hat from whole chains, and the rest."""
    mean = np.asarray(moments.mean, dtype=np.float64)
    chains, dim = mean.shape
    names = tuple(f"x[{i}]" for i in range(dim)) if names is None else tuple(names)
    broken = np.zeros(chains, bool) if frozen is None else np.asarray(frozen, bool).reshape(chains)
    broken = broken | ~np.isfinite(mean).all(axis=1)
    kept = ~broken
    reasons, numbers = checks.frozen(broken) + checks.left_behind(left_behind), {}
    reasons += checks.outward(outward) + checks.cut_short(cut_short)
    if charted:
        reasons += checks.broken(energy_error, kept)
    if not kept.any():
        return _verdict([*reasons, checks.runaway()], {}, [])
    notes = ["only moments were kept, so chains could be compared by their means and variances"]
    found = [
        checks.digits(np.asarray([] if energy is None else energy)),
        checks.moments(moments, kept, names),
        checks.acceptance(acceptance, kept),
        checks.energy_error(energy_error, kept, dim, exact),
    ]
    for more in found:
        reasons += more.reasons
        numbers.update(more.numbers)
        notes += more.notes
    return _verdict(reasons, numbers, notes)


def _over_draws(array: ArrayLike | None, kept: np.ndarray) -> np.ndarray | None:
    """Healthy chains of an array (chains, draws, …), draws first."""
    return None if array is None else np.moveaxis(np.asarray(array, np.float64)[kept], 0, 1)


def _verdict(reasons: list[Reason], numbers: dict, notes: list[str]) -> Verdict:
    ordered = sorted(reasons, key=lambda reason: reason.kind != WRONG)
    return Verdict(not ordered, tuple(ordered), numbers, tuple(notes))
