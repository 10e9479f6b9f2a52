"""What a run learns about its target: metric, step, length of refreshment, and local steps."""

import math
from typing import Any, NamedTuple

import numpy as np

from schuss.tuning import length, metric, slopes, step_size

LONG, LONGEST = 1.2, 1.6
"""Steps, in units of √d, that only what is close to a Gaussian allows, and the longest that pay."""

SURELY_LONG = 1.4
"""Steps that will hardly turn out shorter than long ones while tuning goes on."""

SMALL = 16
"""Dimensions up to which there are no long steps, which would want a kernel of their own."""

SHORTER = 0.65
"""A leapfrog step in units of one with two gradients that is accepted as often."""


class Tuned(NamedTuple):
    """The parameters of both samplers. What is learnt gives new ones."""

    metric: metric.Metric
    step: float  # in the coordinates of the metric
    length: float
    local: bool = False  # whether steps are shorter on slopes over e^knee
    knee: float = 0.0
    long: bool = False  # whether steps are those for what is close to a Gaussian

    @property
    def dim(self) -> int:
        """Coordinates of the target."""
        return len(self.metric.scale)

    @property
    def small(self) -> bool:
        """Whether there are few coordinates."""
        return self.dim <= SMALL

    @property
    def epsilon(self) -> float:
        """The step in units of x."""
        return self.step * math.exp(metric.log_scale(self.metric))

    @property
    def foreseen(self) -> "Tuned":
        """What to compile ahead for: with long steps only where these will hardly get shorter."""
        return self._replace(long=self.long and self.step >= SURELY_LONG * math.sqrt(self.dim))

    @property
    def usable(self) -> bool:
        """Whether all of it is finite: of chains that run away nothing can be learnt."""
        return all(np.isfinite(part).all() for part in (*self.metric, self.step, self.length))

    @property
    def told(self) -> dict[str, Any]:
        """What is noted of them."""
        return {
            "step_size": self.step,
            "refresh": self.length,
            "metric": metric.rank(self.metric),
            "local": self.local,
        }

    def refitted(self, x: np.ndarray, g: np.ndarray, effective: float) -> "Tuned":
        """The metric from draws and gradients (n, chains, dim); the step is as long as before."""
        fitted = metric.fit(_flat(x), _flat(g), effective)
        change = math.exp(metric.log_scale(self.metric) - metric.log_scale(fitted))
        return self._replace(metric=fitted, step=self.step * change)

    def restepped(
        self, error: np.ndarray, epsilon: np.ndarray, weight: np.ndarray, wanted: float
    ) -> "Tuned":
        """The step by the errors (n, chains) that steps of `epsilon` (n, 1) in units of x made."""
        steps = epsilon * math.exp(-metric.log_scale(self.metric))
        step = step_size.from_errors(error, steps, self.dim, wanted, weight)
        step = min(step, LONGEST * math.sqrt(self.dim))
        return self.stepping(float(np.clip(step, 0.5 * self.step, 1.5 * self.step)))

    def stepping(self, step: float) -> "Tuned":
        """With steps of two gradients that are as long as this."""
        long = not self.small and step >= LONG * math.sqrt(self.dim)
        return self._replace(step=step, long=long)

    def accepted(self, rate: float, likely: np.ndarray) -> "Tuned":
        """The step by how often steps were accepted, and how unlike each other they were."""
        wanted = step_size.CAREFUL if self.local else step_size.wanted_acceptance(likely)
        step = self.step * step_size.from_acceptance(rate, wanted)
        if not self.long:
            return self._replace(step=step)
        tuned = self.stepping(min(step, LONGEST * math.sqrt(self.dim)))
        return tuned if tuned.long else tuned.leaping()

    def leaping(self) -> "Tuned":
        """With leapfrog steps in place of those that take two gradients."""
        return self._replace(step=self.step * SHORTER, long=False)

    def adjusted(self, error: np.ndarray, epsilon: np.ndarray, weight: np.ndarray) -> "Tuned":
        """For the exact sampler, by what steps of the flow led to, given as in `restepped`."""
        if self.long:
            return self
        rate = step_size.acceptance(error * (self.epsilon / epsilon) ** 3, weight)
        factor = step_size.from_acceptance(rate, bounds=(0.5, 2.0))
        return self._replace(step=self.step * factor).leaping()

    def refreshed(self, x: np.ndarray) -> "Tuned":
        """The length of refreshment by the draws (n, chains, dim).

        On a Gaussian √d is enough, while the first draws, of a worse metric, ask for more.
        """
        found = length.refreshment(self.step, x, self.length)
        return self._replace(length=min(found, math.sqrt(self.dim)) if self.long else found)

    def localised(self, tried: np.ndarray) -> "Tuned":
        """Local steps where others were refused on steep slopes, and from then on."""
        if self.long:
            return self.leaping() if slopes.refused(tried, slopes.MUCH_LESS) else self
        if not self.local and not slopes.refused(tried):
            return self
        return self._replace(local=True, knee=slopes.knee(tried, self.dim))


def untuned(dim: int) -> Tuned:
    """Before anything is known."""
    return Tuned(metric.unit(dim), 1.0, math.sqrt(dim))


def _flat(x):
    return x.reshape(-1, x.shape[-1])
