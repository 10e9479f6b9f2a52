"""Weighted reservoir sampling (Alg. 3): one sample of a stream, in the memory of one state."""

from typing import NamedTuple


class Reservoir(NamedTuple):
    """The sample so far and the log of the weight seen so far."""

    x: object
    log_total: object


def init(xp, x):
    """An empty reservoir; x only gives the shape and stands in until something has weight."""
    return Reservoir(x + xp.zeros_like(x), xp.full_like(x[:, 0], -float("inf")))


def update(xp, reservoir, x, log_weight, uniform):
    """Keep x with probability weight/(total weight so far); a weight of −inf is never kept."""
    log_total = log_sum(xp, reservoir.log_total, log_weight)
    taken = xp.log(uniform) < log_weight - log_total
    return Reservoir(xp.where(taken[:, None], x, reservoir.x), log_total)


def log_sum(xp, p, q):
    """log(e^p + e^q), −inf included."""
    high, low = xp.maximum(p, q), xp.minimum(p, q)
    gap = xp.where(low > -float("inf"), low - high, xp.full_like(low, -float("inf")))
    return high + xp.log1p(xp.exp(gap))
