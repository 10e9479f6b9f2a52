"""When a run ends: what was asked for, what it may cost, the time taken and the time left."""

import dataclasses
import math
import time

from schuss.arguments import positive_number, whole
from schuss.sampling.state import RunState, rows

DRAWS = 1000
"""Draws of each chain where nothing is asked for."""

DRAWS_TO_AN_EFFECTIVE_ONE = 4
"""Draws asked for are thinned so that so many are worth an independent one."""

MAX_PER_DRAW, LEAST_MAX = 1000, 2_000_000
"""Gradients that a run may take at most, for each draw or effective draw asked for, and for all."""

RHAT = 1.1
"""Above it no run ends of itself; below it the verdict knows better."""


@dataclasses.dataclass(frozen=True)
class StoppingRule:
    """One of draws of each chain, an effective sample size, a time, or gradients of all chains."""

    draws: int | None = None
    ess: float | None = None
    seconds: float | None = None
    gradients: int | None = None
    max_gradients: int | None = None
    thin: int | None = None  # transitions to a draw; None where the run chooses

    @property
    def text(self) -> str:
        """The rule in words."""
        if self.draws is not None:
            return f"{self.draws} draws a chain"
        if self.ess is not None:
            return f"an effective sample size of {self.ess:g}"
        return f"{self.seconds:g} s" if self.seconds is not None else f"{self.gradients} gradients"

    def reached(self, draws: int) -> str:
        """So many draws of each chain against the rule, in words."""
        if self.draws is not None:
            return f"{draws} of {self.text}"
        return f"{draws} draws a chain, before {self.text}"

    def wanted_ess(self, chains: int) -> float:
        """The effective sample size at which there may be enough."""
        if self.ess is not None:
            return self.ess
        return (self.draws or 0) * chains / DRAWS_TO_AN_EFFECTIVE_ONE

    def budget(self, chains: int) -> float:
        """Gradients of all chains after which the run ends, whatever there is."""
        if self.gradients is not None:
            return self.gradients
        if self.max_gradients is not None:
            return self.max_gradients
        if self.seconds is not None:
            return math.inf
        each = self.draws * chains if self.draws is not None else self.ess
        return max(MAX_PER_DRAW * (each or 0), LEAST_MAX)

    @property
    def open_ended(self) -> bool:
        """Whether the draws decide when there are enough."""
        return self.seconds is None and self.gradients is None

    def enough(self, state: RunState) -> bool:
        """Whether the draws are as many as were asked for; the verdict has the last word."""
        if not self.open_ended:
            return False
        made, mixing = rows(state.settled_blocks) * state.thin, state.mixing
        if self.draws is not None and made < self.draws * (self.thin or 1):
            return False
        if self.thin is not None and self.draws is not None:
            return True
        # Once for each assessment: a verdict is dear, and says little new before the next one.
        if mixing.draws != made:
            return False
        return mixing.rhat < RHAT and mixing.ess >= self.wanted_ess(len(state.chains.energy))


def stopping_rule(
    draws=None, ess=None, seconds=None, gradients=None, max_gradients=None, thin=None
) -> StoppingRule:
    """Check what was asked for; without anything, 1000 draws a chain."""
    given = {"draws": draws, "ess": ess, "seconds": seconds, "gradients": gradients}
    named = [name for name, value in given.items() if value is not None]
    if len(named) > 1:
        raise ValueError(
            f"pass one of draws, ess, seconds and gradients, got {' and '.join(named)}"
        )
    if not named:
        draws = DRAWS
    if draws is not None:
        draws = whole("draws", draws, 4)
    if gradients is not None:
        gradients = whole("gradients", gradients, 1)
    if max_gradients is not None:
        max_gradients = whole("max_gradients", max_gradients, 1)
    if thin is not None:
        thin = whole("thin", thin, 1)
    for name in ("ess", "seconds"):
        if given[name] is not None:
            positive_number(name, given[name])
    return StoppingRule(draws, ess, seconds, gradients, max_gradients, thin)


class Clock:
    """Seconds by phase."""

    def __init__(self):
        self.begun = self.last = time.perf_counter()
        self.seconds: dict[str, float] = {}
        self.ending = 0.0  # what it takes to make a posterior of the draws and to judge it

    def lap(self, phase: str) -> None:
        """The time since the last lap belongs to a phase."""
        now = time.perf_counter()
        self.seconds[phase] = self.seconds.get(phase, 0.0) + now - self.last
        self.last = now

    @property
    def total(self) -> float:
        """Seconds since the run began."""
        return time.perf_counter() - self.begun


def line(state: RunState, rule: StoppingRule, clock: Clock) -> str:
    """The phase, draws, gradients, convergence, and the time left."""
    chains, gradients = len(state.chains.energy), state.counts.gradients
    parts = [f"{state.phase:<8}"]
    made = rows(state.settled_blocks) * state.thin
    parts.append(f"{made}" + (f"/{rule.draws}" if rule.draws else "") + f" draws × {chains}")
    parts.append(f"{gradients:,} gradients, {gradients / max(clock.total, 1e-9):,.0f}/s")
    if math.isfinite(state.mixing.rhat):
        parts.append(f"R-hat {state.mixing.rhat:.3f}  ESS {state.mixing.ess:.0f}")
    left = remaining(state, rule, clock)
    if left is not None:
        parts.append(f"{left:.0f} s left")
    return "  ".join(parts)


def remaining(state: RunState, rule: StoppingRule, clock: Clock) -> float | None:
    """Seconds left, or None where nothing is known of them."""
    if rule.seconds is not None:
        return max(rule.seconds - clock.total, 0.0)
    if rule.gradients is not None:
        return clock.total * max(rule.gradients / max(state.counts.gradients, 1) - 1, 0.0)
    wanted = rule.wanted_ess(len(state.chains.energy))
    if not state.mixing.ess > 0 or len(state.history) < 2:
        return None
    spent = sum(clock.seconds.get(phase, 0.0) for phase in ("adapting", "sampling"))
    return spent * max(wanted / state.mixing.ess - 1, 0.0)
