"""Where draws fall apart, if they do: a direction, and the place along it where they part."""

import numpy as np

SMALLEST = 0.05
"""Share of the draws in a part that counts; in high dimensions a single particle lies apart."""


def most_apart(x: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, float]:
    """Where x (n, dim) lies along the direction in which it falls apart most, and by how much.

    Of the first principal direction and the coordinates of smallest and of largest kurtosis (modes
    alike and unlike in size), the one with the largest `separation`.
    """
    share = weights / weights.sum()
    mean = share @ x
    z = x - mean
    scale = np.sqrt(share @ z**2)
    z = z / np.where(scale > 0, scale, np.inf)
    square = z * z  # a fourth power takes ten times as long
    kurtosis = np.where(scale > 0, share @ (square * square), 3.0)
    chosen = (int(np.argmin(kurtosis)), int(np.argmax(kurtosis)))
    found = [z @ _principal(z, share), *(z[:, i] for i in chosen)]
    apart = [separation(where, share) for where in found]
    best = int(np.argmax(apart))
    return found[best], apart[best]


def apart_anywhere(x: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, float]:
    """`most_apart` of all coordinates as well: slower, and misses no mode along one of them."""
    where, apart = most_apart(x, weights)
    each = [separation(column, weights) for column in x.T]
    best = int(np.argmax(each))
    return (x[:, best], each[best]) if each[best] > apart else (where, apart)


def separation(where: np.ndarray, weights: np.ndarray) -> float:
    """|m₁ − m₂|/(s₁ + s₂) of two parts: 1.3 for a Gaussian, 1.7 for a uniform density.

    Two Gaussians that lie D sd apart have D/2; a part that is too small gives 0.
    """
    order = np.argsort(where, kind="stable")
    first = parting(where[order], weights[order])
    below = weights[order[:first]].sum() / weights.sum()
    if not SMALLEST <= below <= 1 - SMALLEST:
        return 0.0
    means, sds = [], []
    for part in (order[:first], order[first:]):
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


def _principal(z: np.ndarray, share: np.ndarray) -> np.ndarray:
    """The first principal direction by eight rounds of power iteration, from the outermost."""
    direction = z[np.argmax((z**2).sum(axis=1) * (share > 0))]
    for _ in range(8):
        direction = (share * (z @ direction)) @ z
        norm = np.sqrt(direction @ direction)
        if not norm > 0:
            break
        direction = direction / norm
    return direction
