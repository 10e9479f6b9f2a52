"""The sentences of the paper that are judged, in its order."""

from schuss.paper.claim import Claim, in_module
from schuss.paper.claims import (
    appendix_a_b,
    appendix_c,
    appendix_d,
    appendix_e,
    front,
    section_2,
    section_3,
    section_3_neural,
    section_4_5,
)

CLAIMS: tuple[Claim, ...] = tuple(
    claim
    for module in (
        front,
        section_2,
        section_3,
        section_3_neural,
        section_4_5,
        appendix_a_b,
        appendix_c,
        appendix_d,
        appendix_e,
    )
    for claim in in_module(vars(module))
)

__all__ = ["CLAIMS"]
