"""The paper's tables and figures, one file each, rebuilt by `schuss reproduce`."""

from schuss.paper import (
    cifar_ebm,
    cifar_jarzynski,
    digits_ebm,
    ergodicity,
    funnel,
    integrators,
    jarzynski,
    jem,
    mmd,
    mnist_ebm,
    movies,
    roller_coaster,
    table1,
    toy_ebm,
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
"""All items that need a CPU and minutes, in the order of the paper."""

NEURAL: tuple[Item, ...] = tuple(
    module.ITEM for module in (jem, cifar_ebm, mnist_ebm, digits_ebm, toy_ebm, cifar_jarzynski)
)
"""The neural ones, which need PyTorch and some of them a GPU: each is rebuilt only by its name."""

__all__ = ["ITEMS", "NEURAL", "Item"]
