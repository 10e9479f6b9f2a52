"""What the steps themselves tell: acceptance, energy errors, weights."""

import numpy as np
from numpy.typing import ArrayLike

from schuss.diagnostics.energy_error import energy_error_variance
from schuss.results.checks.evidence import ESS, FEW, WRONG, Evidence, Found, Reason
from schuss.results.stats import DIVERGED

ACCEPTANCE, ACCEPTANCE_NONE = 0.5, 0.05
BROKEN = 1e-3
"""The share of diverging steps that tells of an end where none should be: right runs have none."""

WALLED = 0.03
"""The share of steps into walls from which on these are worth a word."""

EEVPD, EEVPD_NOTE = 0.03, 0.01
"""bias² ≈ EEVPD^(2/3): .03 is a bias of a third of an sd, .01 of a fifth."""


def steps(count: int) -> str:
    """So many steps, in words."""
    return f"{count} step{'' if count == 1 else 's'}"


def weights(evidence: Evidence) -> Found:
    """Weights that leave few draws to count."""
    if evidence.weights is None:
        return Found([], {}, [])
    w = evidence.weights / evidence.weights.max()
    effective = float(w.sum() ** 2 / (w**2).sum())
    numbers = {"weight_ess": effective, "max_weight": float(w.max() / w.sum())}
    if effective >= ESS:
        return Found([], numbers, [])
    text = f"the weights leave {effective:.0f} of {w.size} draws, the limit is {ESS}"
    remedy = "Run longer, or sample at a temperature nearer to 1 (kappa nearer to dim − 1)"
    return Found([Reason(FEW, text, effective, ESS, remedy)], numbers, [])


def acceptance(values: ArrayLike | None, kept: np.ndarray) -> Found:
    """Mean acceptance over the decisions, `values` (chains, draws)."""
    if values is None:
        return Found([], {}, [])
    rates = np.asarray(values, dtype=np.float64)[kept]
    decided = np.isfinite(rates)
    if not decided.any():
        return Found([], {}, [])
    mean = float(rates[decided].mean())
    numbers = {"acceptance": mean}
    if mean >= ACCEPTANCE:
        return Found([], numbers, [])
    nearly = " that chains hardly move" if mean < ACCEPTANCE_NONE else ""
    text = f"the acceptance is {mean:.2g}, under {ACCEPTANCE}{', so low' if nearly else ''}{nearly}"
    remedy = "Use a smaller step_size, or let the run tune it"
    return Found([Reason(WRONG, text, mean, ACCEPTANCE, remedy)], numbers, [])


def cut_short(before_settled: bool) -> list[Reason]:
    """Draws from before the parameters had settled."""
    if not before_settled:
        return []
    text = (
        "the run ended before its parameters had settled, so these are the states of its first "
        "windows"
    )
    return [Reason(FEW, text, 0.0, 1.0, "Ask for more")]


def broken(values: ArrayLike | None, kept: np.ndarray) -> list[Reason]:
    """Steps that diverge in coordinates where every width is even, `values` (chains, draws).

    A scale that may vanish or grow for ever is followed until floats have no digits for what lies
    so close or so far, and turned back there as by a wall. Real walls have infinite errors.
    """
    if values is None:
        return []
    errors = np.asarray(values, dtype=np.float64)[kept]
    share = float(np.mean(np.isfinite(errors) & (errors > DIVERGED)))
    if share <= BROKEN:
        return []
    text = (
        f"{share:.1%} of the steps diverge, in coordinates where no slope should be steep: chains "
        "go where floats can't follow, and the density may be improper"
    )
    remedy = (
        "Give every scale, of a group or of noise, a proper prior that keeps it from vanishing and "
        "from growing without end; if it has one, write the model non-centred"
    )
    return [Reason(WRONG, text, share, BROKEN, remedy)]


def energy_error(values: ArrayLike | None, kept: np.ndarray, dim: int, exact: bool) -> Found:
    """Var(ΔW)/dim, which measures the bias where nothing is rejected."""
    if values is None:
        return Found([], {}, [])
    errors = np.asarray(values, dtype=np.float64)[kept]
    result = energy_error_variance(errors, dim)
    numbers = {"eevpd": result.eevpd}
    notes = []
    # An infinite error is a wall, which a Metropolis test doesn't step over.
    wild = np.sum(np.isnan(errors) if exact else ~np.isfinite(errors)) / max(errors.size, 1)
    if result.non_finite:
        notes.append(f"{steps(result.non_finite)} had no finite energy error")
    if np.mean(np.isinf(errors)) > WALLED:
        notes.append(
            "many steps end where the density is zero: a parameter with bounds is sampled much "
            "better without them, as its log or logit, or through from_pymc or from_numpyro"
        )
    reasons = []
    if wild > 0.01:
        text = f"{100 * wild:.0f} % of the steps had no finite energy error"
        remedy = "Use a smaller step_size, or look for places where the density is not smooth"
        reasons.append(Reason(WRONG, text, float(wild), 0.01, remedy))
    if not exact and result.eevpd > EEVPD:
        text = (
            f"the energy error per dimension is {result.eevpd:.2g}, over {EEVPD}, and nothing "
            f"corrects it"
        )
        remedy = "Use a smaller step_size, or sample exactly"
        reasons.append(Reason(WRONG, text, result.eevpd, EEVPD, remedy))
    elif not exact and not result.eevpd > 0:
        # Langevin steps conserve nothing whose error could be looked at.
        notes.append("nothing measures the error of a finite step: halve step_size and compare")
    elif not exact and result.eevpd > EEVPD_NOTE:
        notes.append(f"the energy error per dimension is {result.eevpd:.2g}: some bias is left")
    return Found(reasons, numbers, notes)
