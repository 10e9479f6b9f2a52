"""The checks behind a verdict: each takes arrays and gives reasons, numbers and notes."""

from schuss.results.checks.agreement import moments
from schuss.results.checks.balance import outward
from schuss.results.checks.chains import frozen, runaway
from schuss.results.checks.digits import digits, places
from schuss.results.checks.evidence import FEW, WRONG, Evidence, Found, Reason
from schuss.results.checks.left_behind import left_behind
from schuss.results.checks.look import look
from schuss.results.checks.steps import acceptance, broken, cut_short, energy_error, steps

__all__ = [
    "FEW",
    "WRONG",
    "Evidence",
    "Found",
    "Reason",
    "acceptance",
    "broken",
    "cut_short",
    "digits",
    "energy_error",
    "frozen",
    "left_behind",
    "look",
    "moments",
    "outward",
    "places",
    "runaway",
    "steps",
]
