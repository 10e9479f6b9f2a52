"""What a run is asked for: draws, an effective sample size, a time, or a number of gradients."""

import dataclasses
import time

from schuss.arguments import positive_number, whole

DRAWS = 1000


@dataclasses.dataclass(frozen=True)
class Wish:
    """Exactly one of these; draws and gradients are counts, `ess` the smallest over all columns."""

    draws: int | None = None  # of each chain
    ess: float | None = None
    seconds: float | None = None
    gradients: int | None = None  # of all chains and phases

    @property
    def text(self) -> str:
        """The wish in words."""
        if self.draws is not None:
            return f"{self.draws} draws a chain"
        if self.ess is not None:
            return f"an effective sample size of {self.ess:g}"
        return f"{self.seconds:g} s" if self.seconds is not None else f"{self.gradients} gradients"

    def reached(self, draws: int) -> str:
        """So many draws of each chain against the wish, in words."""
        if self.draws is not None:
            return f"{draws} of {self.text}"
        return f"{draws} draws a chain, before {self.text}"


def wish(draws=None, ess=None, seconds=None, gradients=None) -> Wish:
    """Check what was asked for; without anything, 1000 draws a chain."""
    given = {"draws": draws, "ess": ess, "seconds": seconds, "gradients": gradients}
    named = [name for name, value in given.items() if value is not None]
    if not named:
        return Wish(draws=DRAWS)
    if len(named) > 1:
        raise ValueError(
            f"pass one of draws, ess, seconds and gradients, got {' and '.join(named)}"
        )
    if draws is not None:
        return Wish(draws=whole("draws", draws, 4))
    if gradients is not None:
        return Wish(gradients=whole("gradients", gradients, 1))
    positive_number(*next((name, given[name]) for name in named))
    return Wish(ess=ess, seconds=seconds)


class Clock:
    """Seconds by phase."""

    def __init__(self):
        self.begun = self.last = time.perf_counter()
        self.seconds: dict[str, float] = {}
        self.ending = 0.0  # for each draw: what it takes to gather and to judge it in the end

    def lap(self, phase: str) -> None:
        """The time since the last lap belongs to a phase."""
        now = time.perf_counter()
        self.seconds[phase] = self.seconds.get(phase, 0.0) + now - self.last
        self.last = now

    @property
    def total(self) -> float:
        """Seconds since the run began."""
        return time.perf_counter() - self.begun
