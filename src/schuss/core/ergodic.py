"""Ergodic sampling (Alg. 2): a uniformly random moment of un-scaled time, interpolated."""


def clock(xp, r, step_size, dim):
    """Un-scaled time t = ∫ e^r dt̄/d at every state along the first axis, by the trapezoid rule."""
    speed = xp.exp(r)
    pieces = (speed[1:, ...] + speed[:-1, ...]) * (step_size / (2 * dim))
    return xp.concat([xp.zeros_like(speed[:1, ...]), xp.cumulative_sum(pieces, axis=0)], axis=0)


def interpolate(xp, x, times, moments):
    """x at the given moments, linearly between the states of a single path.

    x is (steps, dim), times (steps,) and increasing, moments (draws,).
    """
    after = xp.clip(xp.searchsorted(times, moments), 1, times.shape[0] - 1)
    t0, t1 = xp.take(times, after - 1), xp.take(times, after)
    share = ((moments - t0) / xp.where(t1 > t0, t1 - t0, xp.ones_like(t0)))[:, None]
    return (1 - share) * xp.take(x, after - 1, axis=0) + share * xp.take(x, after, axis=0)
