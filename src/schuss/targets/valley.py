"""The paper's valley and deep well: E = ½ xᵀ diag(a, b) x from two opposite starts."""

import functools
from dataclasses import replace

from schuss.targets.draws import point_start
from schuss.targets.gaussian import gaussian
from schuss.targets.target import Target


@functools.cache
def valley(a: float = 1.0, b: float = 100.0, name: str = "valley") -> Target:
    """E = ½ (a x₁² + b x₂²), chains at (−4, .4) and (4, −.4) in turn."""
    if not (a > 0 and b > 0):
        raise ValueError(f"a and b must be positive, got {a} and {b}; pass e.g. a=1.0, b=100.0")
    return replace(gaussian([1 / a, 1 / b], name=name), start=point_start((-4.0, 0.4), (4.0, -0.4)))


@functools.cache
def deep_well() -> Target:
    """The steep round well, E = ½ · 100 |x|²."""
    return valley(100.0, 100.0, name="deep-well")
