"""What several claims read off the MMD² curves."""

from typing import Any

from schuss.paper.samplers import TARGETS

GAUSSIAN_AND_MIXTURE = ("mog", "mog-prior", "scg", "scg-bias", "icg")
"""The targets of Figure 4: the funnel's MMD² says nothing."""
LANGEVIN = ("ULA 0.1", "MALA 0.1")
OTHERS = ("HMC k=5", "MALA 0.1", "NH", "NUTS", "ULA 0.1")
NEAR = 3.0
"""Standard deviations of MMD² between exact samples within which samples can't be listed apart."""


def value(mmd: dict[str, Any], target: str, sampler: str, gradients: int) -> float:
    """MMD² after so many gradients."""
    return mmd["curves"][target][sampler]["value"][mmd["gradients"].index(gradients)]


def limits(mmd: dict[str, Any], target: str, sampler: str, gradients: int) -> tuple[float, float]:
    """Its 95 % interval."""
    curve, at = mmd["curves"][target][sampler], mmd["gradients"].index(gradients)
    return curve["low"][at], curve["high"][at]


def floor(mmd: dict[str, Any], target: str) -> float:
    """MMD² up to which samples can't be listed from exact ones."""
    return NEAR * mmd["null"][target]["sd"]


def behind(mmd: dict[str, Any], target: str, sampler: str, others, gradients: int) -> bool:
    """Whether a sampler can be listed from exact ones, and its interval lies above another's."""
    if value(mmd, target, sampler, gradients) <= floor(mmd, target):
        return False
    low, _ = limits(mmd, target, sampler, gradients)
    return any(low > max(limits(mmd, target, o, gradients)[1], floor(mmd, target)) for o in others)


def titles(names) -> str:
    """As the paper calls them."""
    return ", ".join(TARGETS[name] for name in names) or "none"
