"""The paper's tables and figures, one file each, rebuilt by `schuss reproduce`."""

from schuss.paper import (
    cifar_ebm,
    cifar_jarzynski,
    cycles,
    digits_ebm,
    ergodicity,
    estimators,
    factors,
    funnel,
    integrators,
    jarzynski,
    jem,
    kick_precision,
    mmd,
    mnist_ebm,
    movies,
    roller_coaster,
    shell,
    stationarity,
    step_sizes,
    structure,
    table1,
    thermostats,
    toy_ebm,
    trajectories,
    valley,
    warm_start,
    weighted_buffer,
)
from schuss.paper.item import Item

ITEMS: tuple[Item, ...] = tuple(
    module.ITEM
    for module in (
        trajectories,
        structure,
        roller_coaster,
        shell,
        integrators,
        step_sizes,
        mmd,
        table1,
        cycles,
        valley,
        warm_start,
        thermostats,
        factors,
        stationarity,
        jarzynski,
        estimators,
        kick_precision,
        movies,
        ergodicity,
        funnel,
    )
)
"""All items that need a CPU and minutes, in the order of the paper."""

NEURAL: tuple[Item, ...] = tuple(
    module.ITEM
    for module in (
        jem,
        cifar_ebm,
        mnist_ebm,
        digits_ebm,
        toy_ebm,
        cifar_jarzynski,
        weighted_buffer,
    )
)
"""The neural ones, which need PyTorch and some of them a GPU: each is rebuilt only by its name."""

__all__ = ["ITEMS", "NEURAL", "Item"]
