"""Whether a gradient that was written by hand is that of the values it comes with."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

POINTS = 4
"""Places that are looked at, each along a random direction of its own."""

MOST = 3
"""Contradictions among them from which on the gradient is wrong."""

REACHES = (0.1, 1e-3, 1e-5, 1e-7, 3.0)
"""Changes of the value that steps are made for. Ripples want short ones, rounding long ones."""

PARTS = (1.0, 0.3, 0.09)
"""Steps in units of a reach's. Multiples of a rounding error can't agree at such ratios."""

AWAY = 3.0
"""Places are so many steps from where chains start, which may well be a kink."""

WRONG, AGREE, ASLANT = 0.1, 0.05, 0.03
"""Error of a gradient; how far steps may differ; how much of a gradient a direction must see."""


class Words(NamedTuple):
    """How the user calls the function, its value, and what to return."""

    name: str
    value: str
    sign: int  # of the value, in units of the energy
    remedy: str


ENERGY = Words("value_and_grad", "E", 1, "return energies and their own gradients ∂E/∂x")
LOG_P = Words("fn", "log p", -1, "return log p and its own gradient ∂ log p/∂x")


class Look(NamedTuple):
    """Central differences of the value at each point, and what the gradient says of them."""

    found: np.ndarray  # (parts, points): f(x + h v) − f(x − h v)
    given: np.ndarray  # g · 2 h v
    usable: np.ndarray  # (points,)

    @property
    def ratio(self) -> np.ndarray:
        """found / given, 1 where the gradient is right."""
        return self.found / self.given

    @property
    def right(self) -> np.ndarray:
        """Points where one of the steps has the change that the gradient says."""
        off = np.abs(self.found - self.given)
        return np.any(off <= WRONG * np.maximum(abs(self.found), abs(self.given)), axis=0)

    @property
    def clear(self) -> np.ndarray:
        """Points where all steps tell the same."""
        return self.usable & (np.ptp(self.ratio, axis=0) < AGREE * abs(self.ratio.mean(axis=0)))


def check(words: Words, energies: Callable, x: np.ndarray, rng: np.random.Generator) -> int:
    """Refuse a gradient that clearly contradicts its values near the starts `x` (chains, dim).

    `energies` maps (points, dim) to −log p and its gradient. f(x + h v) − f(x − h v) is compared
    with 2 h v·g for steps of several sizes. A point speaks against the gradient if no step agrees
    with it and the steps of one reach agree with each other. Gives the number of evaluations.
    """
    x = x[np.arange(POINTS) % len(x)]
    spent = POINTS
    told, found, given = np.zeros(POINTS, bool), np.zeros(POINTS), np.zeros(POINTS)
    with np.errstate(all="ignore"):
        value, slope = energies(x)
        # Where nothing is finite, or all is flat, nothing speaks against the gradient.
        right = ~(np.isfinite(value) & np.isfinite(slope).all(axis=1) & slope.any(axis=1))
        # Along them the value would change by about 1, if the gradient stayed the same.
        ways = rng.standard_normal((2, *x.shape))
        ways = ways / np.linalg.norm(slope * ways, axis=2, keepdims=True)
        direction, side = np.where(right[:, None], 0.0, ways)
        for reach in REACHES:
            look = _look(energies, x + AWAY * reach * side, reach * direction)
            spent += POINTS * (1 + 2 * len(PARTS))
            new = look.clear & ~told
            found, given = np.where(new, [look.found[-1], look.given[-1]], [found, given])
            right, told = right | look.right, told | look.clear
            if right.all():
                break
    wrong = told & ~right
    if wrong.sum() >= MOST:
        raise ValueError(_told(words, words.sign * found[wrong], words.sign * given[wrong]))
    return spent


def _look(energies: Callable, x: np.ndarray, step: np.ndarray) -> Look:
    g = energies(x)[1]
    rows = []
    for part in PARTS:
        up, down = x + part * step, x - part * step
        # What is added to large coordinates is rounded.
        rows.append((energies(up)[0] - energies(down)[0], np.sum(g * (up - down), axis=1)))
    found, given = map(np.stack, zip(*rows, strict=True))
    finite = np.isfinite(found).all(axis=0) & np.isfinite(given).all(axis=0)
    seen = np.abs(np.sum(g * step, axis=1)) > ASLANT * np.linalg.norm(g * step, axis=1)
    return Look(found, given, finite & seen)


def _told(words: Words, found: np.ndarray, given: np.ndarray) -> str:
    ratio = found / given
    if np.all(np.abs(ratio + 1) < WRONG):
        cause = "the gradient has the opposite sign"
    elif np.ptp(ratio) < WRONG * np.abs(ratio).max():
        cause = f"the gradient is {1 / ratio[0]:.2g} times what it should be"
    else:
        cause = f"the gradient isn't that of the {words.value} beside it"
    return (
        f"{words.name} contradicts itself at {len(ratio)} of {POINTS} places near the starts: "
        f"along a random direction {words.value} changes by {found[0]:.3g} where the gradient says "
        f"{given[0]:.3g}; {cause}: {words.remedy}"
    )
