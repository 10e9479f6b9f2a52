"""Energies with hand-written gradients, for every array library."""


def gaussian(xp, x):
    """½|x|²."""
    return 0.5 * xp.sum(x * x, axis=-1), x


def bowl(xp, x):
    """Σ(x⁴/4 + x²/2) + (Σx)²/2: smooth, coupled, with no symmetry that a flow could conserve."""
    total = xp.sum(x, axis=-1)
    square = x * x
    energy = xp.sum(square * square / 4 + square / 2, axis=-1) + total * total / 2
    return energy, x * square + x + total[:, None]
