"""Test energies: the paper's, a few more whose truth is known, and a library of posteriors."""

from collections.abc import Callable

from schuss.targets import necks, posteriors
from schuss.targets.funnel import funnel
from schuss.targets.gaussian import gaussian, icg, icg_rotated, isotropic, scg, scg_bias
from schuss.targets.mixture import mixture, mog, mog_prior, toy_mog
from schuss.targets.quartic import coupled_quartic, quartic
from schuss.targets.roller_coaster import roller_coaster
from schuss.targets.shapes import banana, double_well, pinwheel, rings, two_moons
from schuss.targets.target import Target, Truth
from schuss.targets.valley import deep_well, valley

TARGETS: dict[str, Callable[[], Target]] = {
    "mog": mog,
    "mog-prior": mog_prior,
    "icg": icg,
    "scg": scg,
    "scg-bias": scg_bias,
    "funnel": funnel,
    "valley": valley,
    "deep-well": deep_well,
    "roller-coaster": roller_coaster,
    "toy-mog": toy_mog,
    "rings": rings,
    "isotropic": isotropic,
    "icg-rotated": icg_rotated,
    "quartic": quartic,
    "coupled-quartic": coupled_quartic,
    "banana": banana,
    "two-moons": two_moons,
    "double-well": double_well,
    "pinwheel": pinwheel,
} | necks.NECKS


def get(name: str) -> Target:
    """The target or posterior registered under `name`; underscores may stand for hyphens."""
    known = TARGETS | posteriors.POSTERIORS
    key = str(name).replace("_", "-")
    if key not in known:
        raise ValueError(f"name must be a known target, got {name!r}; pass one of {list(known)}")
    return known[key]()


__all__ = [
    "TARGETS",
    "Target",
    "Truth",
    "banana",
    "coupled_quartic",
    "deep_well",
    "double_well",
    "funnel",
    "gaussian",
    "get",
    "icg",
    "icg_rotated",
    "isotropic",
    "mixture",
    "mog",
    "mog_prior",
    "necks",
    "pinwheel",
    "posteriors",
    "quartic",
    "rings",
    "roller_coaster",
    "scg",
    "scg_bias",
    "toy_mog",
    "two_moons",
    "valley",
]
