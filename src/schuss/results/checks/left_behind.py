"""Modes that chains were in before they were tuned, and that the draws don't know."""

from schuss.results.checks.evidence import WRONG, Reason

SHARE = 0.05
"""Mass around such a place, in units of that around the draws, as if both were Gaussians."""


def left_behind(share: float) -> list[Reason]:
    """A narrow mode, say, whose chains were thrown out by steps of the size that suits a wide one.

    Nothing else would tell: chains that have all left it agree.
    """
    if not share > SHARE:
        return []
    text = (
        "a chain began at a place that the draws don't reach, around which there is about "
        f"{share:.2g} times the mass that is around them"
    )
    remedy = (
        "There is another mode, whose share isn't known: compare runs that start in each, or use "
        "schuss.evidence, which tempers"
    )
    return [Reason(WRONG, text, share, SHARE, remedy)]
