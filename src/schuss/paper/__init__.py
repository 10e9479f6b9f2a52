"""The paper's tables and figures, one file each, rebuilt by `schuss reproduce`."""

from schuss.paper import (
    ergodicity,
    funnel,
    integrators,
    jarzynski,
    mmd,
    movies,
    roller_coaster,
    table1,
    trajectories,
    valley,
)
from schuss.paper.item import Item

ITEMS: tuple[Item, ...] = tuple(
    module.ITEM
    for module in (
        trajectories,
        roller_coaster,
        integrators,
        mmd,
        table1,
        valley,
        ergodicity,
        movies,
        jarzynski,
        funnel,
    )
)
"""All items, in the order of the paper."""

__all__ = ["ITEMS", "Item"]
