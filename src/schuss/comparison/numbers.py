"""A comparison as numbers: a row for each sampler, and everything as plain JSON."""

import math
from typing import Any, NamedTuple

import numpy as np

from schuss.comparison.compare import Comparison
from schuss.comparison.outcome import Outcome


class Row(NamedTuple):
    """Medians over the runs of a sampler that gave draws; nan where there are none."""

    sampler: str
    gradients: float
    ess_per_1000: float
    b2max: float
    rhat: float
    seconds: float  # all runs together, with compilation
    trusted: int
    runs: int
    failure: str  # why a run gave no draws


def rows(comparison: Comparison) -> list[Row]:
    """One for each sampler that was run."""
    found = []
    for name, outcomes in comparison.outcomes.items():
        if not outcomes:
            continue
        good = [outcome for outcome in outcomes if outcome.records]
        found.append(
            Row(
                name,
                _median([outcome.gradients for outcome in good]),
                _median([1000 * o.ess / o.gradients for o in good]),
                _median([comparison.b2max(outcome) for outcome in good]),
                _median([outcome.rhat for outcome in good]),
                comparison.seconds[name],
                sum(_trusted(outcome) for outcome in outcomes),
                len(outcomes),
                next((outcome.failure for outcome in outcomes if outcome.failure), ""),
            )
        )
    return found


def curve(
    comparison: Comparison, name: str, of: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Gradients, and the median, the lowest and the highest "b2max" or "ess" over the seeds.

    A run counts from its first record on, with the last one it had by then.
    """
    runs = []
    for outcome in comparison.outcomes[name]:
        if outcome.records:
            spent = np.array([record.gradients for record in outcome.records])
            runs.append((spent, _along(comparison, outcome, of)))
    if not runs:
        none = np.empty(0)
        return none, none, none, none
    first = max(spent[0] for spent, _ in runs)
    last = max(spent[-1] for spent, _ in runs)
    grid = np.unique(np.concatenate([spent for spent, _ in runs]))
    grid = grid[(grid >= first) & (grid <= last)]
    values = np.stack(
        [along[np.searchsorted(spent, grid, side="right") - 1] for spent, along in runs]
    )
    return grid, np.median(values, axis=0), values.min(axis=0), values.max(axis=0)


def plain(comparison: Comparison) -> dict[str, Any]:
    """All of it as JSON; null for what isn't finite.

    The seconds of a row have compilation in them where a sampler compiles as it runs, in its first.
    """
    return {
        "target": comparison.name,
        "dim": comparison.dim,
        "gradients": comparison.gradients,
        "reference": comparison.reference.words,
        "finished": comparison.finished,
        "rows": [
            {
                "target": comparison.name,
                "sampler": outcome.sampler,
                "seed": outcome.seed,
                "gradients": outcome.gradients,
                "b2max": _number(comparison.b2max(outcome)),
                "ess": _number(outcome.ess),
                "rhat": _number(outcome.rhat),
                "flagged": not _trusted(outcome),
                "seconds": _number(outcome.seconds),
                "chains": outcome.chains,
                "reasons": _reasons(outcome),
                "curve": {
                    "gradients": [record.gradients for record in outcome.records],
                    "b2max": list(map(_number, _along(comparison, outcome, "b2max"))),
                    "ess": list(map(_number, _along(comparison, outcome, "ess"))),
                },
            }
            for outcomes in comparison.outcomes.values()
            for outcome in outcomes
        ],
        "seconds_with_compilation": {
            name: _number(value) for name, value in comparison.seconds.items()
        },
    }


def _along(comparison: Comparison, outcome: Outcome, of: str) -> np.ndarray:
    if of == "ess":
        return np.array([record.ess for record in outcome.records])
    truth = comparison.reference.truth
    if truth is None:
        return np.full(len(outcome.records), np.nan)
    return outcome.b2max(truth)


def _reasons(outcome: Outcome) -> list[str]:
    if outcome.failure:
        return [outcome.failure]
    return [] if outcome.verdict is None else [reason.what for reason in outcome.verdict.reasons]


def _trusted(outcome: Outcome) -> bool:
    return outcome.verdict is not None and outcome.verdict.converged


def _median(values: list[float]) -> float:
    return float(np.median(values)) if values else math.nan


def _number(value: float) -> float | None:
    return float(f"{value:.6g}") if math.isfinite(value) else None
