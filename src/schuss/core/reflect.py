"""The walls of a box.

reflect: fold the position, flip the velocity. Volume preserving and reversible.
clamp: move the position to the wall, as Langevin dynamics of images is often run. Neither.
"""


def reflect(xp, x, u, lower, upper):
    """Fold x into [lower, upper] as often as it takes; an infinite bound doesn't reflect."""
    low, high = xp.isfinite(lower), xp.isfinite(upper)
    closed = low & high
    base = xp.where(low, lower, xp.zeros_like(lower))
    width = xp.where(closed, upper - base, xp.ones_like(base))

    offset = x - base
    period = 2 * width
    offset = offset - period * xp.floor(offset / period)
    flipped = offset > width
    folded = base + xp.where(flipped, period - offset, offset)

    below, above = low & (x < lower), high & (x > upper)
    mirrored = xp.where(below, 2 * lower - x, xp.where(above, 2 * upper - x, x))
    x = xp.where(closed, folded, mirrored)
    flip = (closed & flipped) | (~closed & (below | above))
    return x, xp.where(flip, -u, u)


def clamp(xp, x, u, lower, upper):
    """Positions no further than the walls."""
    return xp.minimum(xp.maximum(x, lower), upper), u


BOUNDARIES = {"reflect": reflect, "clamp": clamp}
