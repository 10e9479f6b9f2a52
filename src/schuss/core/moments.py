"""Weighted means and variances of a stream, in the memory of two states."""

from typing import NamedTuple

from schuss.core.reservoir import log_sum


class Moments(NamedTuple):
    """Per chain: weighted mean and variance of x, mean of E, and logs of Σw and Σw²."""

    mean: object
    variance: object
    energy: object
    log_total: object
    log_squares: object


def init(xp, x):
    """Nothing seen yet."""
    nothing = xp.full_like(x[:, 0], -float("inf"))
    return Moments(xp.zeros_like(x), xp.zeros_like(x), xp.zeros_like(nothing), nothing, nothing)


def update(xp, moments, x, energy, log_weight):
    """Take in one state (Chan's update, so that no precision is lost to a large mean)."""
    single = Moments(x, xp.zeros_like(x), energy, log_weight, 2 * log_weight)
    return merge(xp, moments, single)


def merge(xp, first, second):
    """Moments of two streams together."""
    log_total = log_sum(xp, first.log_total, second.log_total)
    empty = second.log_total == -float("inf")
    # The share of the second stream: zero where it is empty, whatever the first one holds.
    share = xp.where(empty, xp.zeros_like(log_total), xp.exp(second.log_total - log_total))
    p = share[:, None]
    step = second.mean - first.mean
    return Moments(
        first.mean + p * step,
        (1 - p) * first.variance + p * second.variance + p * (1 - p) * step * step,
        first.energy + share * (second.energy - first.energy),
        log_total,
        log_sum(xp, first.log_squares, second.log_squares),
    )


def normalise(xp, moments):
    """The same moments with a total weight of one: a finished window of an orbit."""
    empty = moments.log_total == -float("inf")
    total = xp.where(empty, xp.zeros_like(moments.log_total), moments.log_total)
    return moments._replace(
        log_total=moments.log_total - total, log_squares=moments.log_squares - 2 * total
    )
