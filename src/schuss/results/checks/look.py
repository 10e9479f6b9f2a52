"""All checks of the draws themselves."""

from schuss.results.checks.agreement import convergence
from schuss.results.checks.balance import improper, virial
from schuss.results.checks.chains import apart, equal_chains, stuck
from schuss.results.checks.evidence import FEW, Evidence, Found, Reason
from schuss.results.checks.necks import necks
from schuss.results.checks.regions import REMEDY
from schuss.results.checks.steps import weights


def look(evidence: Evidence) -> Found:
    """Everything found in the draws; an improper density drowns out the rest."""
    draws, chains, _ = evidence.x.shape
    least = 8 if chains == 1 else 4
    if draws < least:
        text = f"{draws} draws a chain are too few to compare chains at all"
        remedy = f"Ask for {least} or more, say draws=1000"
        return Found([Reason(FEW, text, draws, least, remedy)], {}, [])
    same, still = equal_chains(evidence), stuck(evidence)
    weighed, compared = weights(evidence), convergence(evidence)
    bias = virial(evidence, compared.numbers["esses"])
    growing = improper(evidence, bias.numbers.get("virials"))
    numbers = compared.numbers | weighed.numbers | bias.numbers
    for array in ("esses", "virials"):
        numbers.pop(array, None)
    if growing:
        # Nothing else that failed has a remedy of its own then.
        return Found(growing, numbers, [])
    # One description of the regions is enough, and none where a chain stands still.
    disagree = any(reason.remedy == REMEDY for reason in compared.reasons)
    away = [] if still or disagree else apart(evidence)
    reasons = same + still + away + weighed.reasons + bias.reasons + compared.reasons
    if not same and not still:
        reasons = reasons + necks(evidence, compared.numbers["esses"]).reasons
    notes = compared.notes + bias.notes
    if chains == 1:
        notes = [*notes, "one chain can't tell of modes that it wasn't in; several would"]
    return Found(reasons, numbers, notes)
