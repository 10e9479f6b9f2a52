"""Where draws fall apart, if they do: a direction, and the place along it where they part."""

from typing import NamedTuple

import numpy as np

SMALLEST = 0.05
"""Share of the draws in a part that counts; in high dimensions a single particle lies apart."""


class Line(NamedTuple):
    """Draws along a direction."""

    where: np.ndarray  # (n,)
    apart: float  # `separation`
    direction: np.ndarray  # (dim,): `where` is x along it, up to a constant


def most_apart(x: np.ndarray, weights: np.ndarray) -> Line:
    """x (n, dim) along the direction in which it falls apart most.

    Of the first principal direction and the coordinates of smallest and of largest kurtosis (modes
    alike and unlike in size), the one with the largest `separation`.
    """
    share = weights / weights.sum()
    z = x - share @ x
    square = z * z  # a fourth power takes ten times as long
    scale = np.sqrt(share @ square)
    inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    outermost = int(np.argmax((square @ inverse**2) * (share > 0)))
    fourth = share @ np.square(square, out=square)
    kurtosis = np.where(scale > 0, fourth * inverse**4, 3.0)
    columns = (int(np.argmin(kurtosis)), int(np.argmax(kurtosis)))
    axes = [np.where(np.arange(len(scale)) == i, inverse, 0.0) for i in columns]
    found = [_principal(z, share, inverse, outermost) * inverse, *axes]
    lines = (Line(where, separation(where, share), to) for to in found for where in [z @ to])
    return max(lines, key=lambda one: one.apart)


def apart_anywhere(x: np.ndarray, weights: np.ndarray) -> Line:
    """`most_apart` of all coordinates as well: slower, and misses no mode along one of them."""
    found = most_apart(x, weights)
    each = [separation(column, weights) for column in np.ascontiguousarray(x.T)]
    best = int(np.argmax(each))
    if each[best] <= found.apart:
        return found
    return Line(x[:, best], each[best], np.eye(x.shape[1])[best])


def separation(where: np.ndarray, weights: np.ndarray) -> float:
    """|m₁ − m₂|/(s₁ + s₂) of two parts: 1.3 for a Gaussian, 1.7 for a uniform density.

    Two Gaussians that lie D sd apart have D/2; a part that is too small gives 0.
    """
    order = np.argsort(where)
    where, weights = where[order], weights[order]
    first, total = parting(where, weights), weights.sum()
    if not SMALLEST <= weights[:first].sum() / total <= 1 - SMALLEST:
        return 0.0
    means, sds = [], []
    for part in (slice(first), slice(first, None)):
        share = weights[part] / weights[part].sum()
        means.append(share @ where[part])
        sds.append(np.sqrt(share @ (where[part] - means[-1]) ** 2))
    return float(abs(means[0] - means[1]) / max(sum(sds), 1e-300))


def parting(where: np.ndarray, weights: np.ndarray) -> int:
    """How many of the ascending `where` belong to the first of two parts: 0 if there is but one.

    The two parts have the largest variance between them, W₁W₂(m₁ − m₂)² (Otsu 1979).
    """
    below, moment = np.cumsum(weights), np.cumsum(weights * where)
    above = below[-1] - below
    both = (below > 0) & (above > 0)
    if not both.any():
        return 0
    product = np.where(both, below * above, np.inf)
    between = (moment * below[-1] - moment[-1] * below) ** 2 / product
    return int(np.argmax(between)) + 1


def _principal(z: np.ndarray, share: np.ndarray, inverse: np.ndarray, outermost: int) -> np.ndarray:
    """The first principal direction of z/s by eight rounds of power iteration."""
    direction = z[outermost] * inverse
    for _ in range(8):
        direction = (share * (z @ (direction * inverse))) @ z * inverse
        norm = np.sqrt(direction @ direction)
        if not norm > 0:
            break
        direction = direction / norm
    return direction
