"""The course of a run: down to the typical set, tuned there, then exact.

    start      L-BFGS from where the user began
    burn-in    the unadjusted flow, a step size for each chain, until energies stop falling
    tuning     the unadjusted flow in growing windows; metric, step and refreshment from all draws
    adapting   per-step Metropolis in growing windows, its step by acceptance; local where steps
               are refused on steep slopes
    sampling   the same with everything frozen

All decisions are taken here, between calls of a compiled loop, from statistics that the chains
share. Without `exact` the draws of tuning, and burn-in's last, count too; and the flow goes on as
it is instead of being adjusted where steps are long, as they are on targets close to a Gaussian, or
where it takes many to make a draw: a flow never has to turn round.
"""

import math
from collections.abc import Iterator

import numpy as np

from schuss.results.checks.evidence import PROPER
from schuss.sampling import burn_in, flow, windows
from schuss.sampling.archive import Archive
from schuss.sampling.cooling import raw_draws
from schuss.sampling.field import ROOM
from schuss.sampling.standing import Standing
from schuss.sampling.tuned import Tuned
from schuss.tuning.burn_in import strayed
from schuss.tuning.descent import descend
from schuss.tuning.metric import foreseen, kinship

NOWHERE = 1e30
"""No density has its mass so far away."""


class Course(Standing):
    """A run that goes on for as long as it is asked to, `most` steps in a call of the loop."""

    most = ROOM

    def run(self, *, thin: int | None = None, limit: int | None = None) -> Iterator[bool]:
        """Go on; yields after every call of the loop, True at the end of a window.

        In the last phase every `thin`-th state is kept, and at most `limit` of a chain.
        """
        self.wanted_thin, self.limit = thin, limit
        if self.phase == "start":
            self._start()
            yield False
        if self.phase == "burn-in":
            yield from self._burn_in()
            yield True
        while self.phase == "tuning":
            yield from self._tune()
        while self.phase == "adapting":
            yield from self._adapt()
        while True:
            yield from self._sample()

    def _start(self):
        if foreseen(self.dim):
            self.compile_ahead()
        if self.descent:
            found = descend(self.field.evaluate, self.x)
            if np.abs(found.x[np.argmin(found.energy)]).max() > NOWHERE:
                raise ValueError(
                    "the energy falls without end: the way down from the start leads to |x| > "
                    f"{NOWHERE:.0e}, so the density can't be normalised. {PROPER}"
                )
            self.x, self.energy, self.g = found.x, found.energy, found.g
            self.gradients["start"] += found.iterations * self.chains
        else:
            self.energy, self.g = self.field.evaluate(self.x)
            self.gradients["start"] += self.chains
        lowest = np.argmin(self.energy)
        self.lowest, self.lowest_x = float(self.energy[lowest]), self.x[lowest]
        self.phase = "burn-in"
        self.note()

    def _burn_in(self):
        last = burn_in.begin(self.now, self.metric)
        while not last.over:
            if last.rows:
                yield False
            last = burn_in.further(self.field, last, self.rng)
            chunk = last.rows[-1]
            self.follow(last.now, chunk)
            self.gradients["burn-in"] += chunk.energy.size * flow.FLOW.gradients
            self.restarted += int(last.gone.sum())
            self.remember(chunk, last.settled)
            self.metric, self.step = last.metric, float(np.median(last.steps))
            self.note(energy=float(chunk.energy.mean()))
        self.phase = "tuning"
        for rows in last.steady:
            self.keep(rows)
        tuned = self._refitted(*self.looked_at(self.tuning)) if last.steady else self.tuned
        self.change(tuned.stepping(tuned.step * burn_in.NEXT))
        if self.compiling is None:
            self.compile_ahead()

    def _tune(self):
        early = self.window < 2
        steps = windows.tuning(self.window)
        for more in self._steps(steps, windows.CHUNK if early else self.most):
            if early:
                self.change(self._restepped(self.tuned, self.skip()))
            if more:
                yield False
        self._retune()
        self.window += 1
        last = self.window >= windows.MOST_TUNING
        seen = self.seen / raw_draws(self.field.temperature)
        enough = last or windows.tuned(seen, self.dim, self.rhat)
        if enough and (self.exact or not self._better_unadjusted()):
            self._begin_exact()
        elif not self.exact and (self.ess >= self.freeze or last):
            self._freeze()
        yield True

    def _better_unadjusted(self) -> bool:
        made = self.tuning.size * self.chains
        return self.long or made > flow.FAR_APART * np.median(self.sizes[: self.dim])

    def _begin_exact(self):
        if self.compiling is not None:
            self.compiling.join()
        self.phase, self.window, self.adjusted = "adapting", 0, True
        self.change(self.tuned.adjusted(*self._errors(self.skip())))
        self.archive = Archive(self.chains, self.dim)
        self.refits = self.total

    def _adapt(self):
        for more in self._steps(windows.adapting(self.window) // self.kernel.gradients):
            if more:
                yield False
        self._readapt()
        self.window += 1
        if self.field.temperature != 1:
            # States in the heat are far more alike than the draws that they are cooled to.
            self.assess()
        if windows.adapted(self.seen, self.window):
            self._freeze()
        yield True

    def _freeze(self):
        """Nothing changes from here on."""
        raw, n = raw_draws(self.field.temperature), self.archive.size * self.chains
        ess, share = (self.ess, 4) if raw == 1 else (self.assess(), 2 * raw)
        self.thin = self.wanted_thin or int(np.clip(n / max(ess, 1.0) / share, 1, 500))
        if not self.exact:
            self.adapted = self.tuning.cut(self.skip()).thinned(self.thin)
        if self.adjusted:
            adapted = self.archive.thinned(self.thin)
            self.adapted = adapted if self.adapted is None else self.adapted.joined(adapted)
        self.phase, self.window = "sampling", 0
        self.archive = Archive(self.chains, self.dim, self.thin, self.limit)
        self.tuning = Archive(self.chains, self.dim)
        self.steps_tuning = self.steps_tuning[:, :0]

    def _sample(self):
        for more in self.sampled(windows.sampling(self.window)):
            if more:
                yield False
        self.window += 1
        yield True

    def sampled(self, steps: int) -> Iterator[bool]:
        """Steps with everything frozen; yields after each call whether there are more."""
        return self._steps(steps, windows.calls(self.window) * self.most)

    def _steps(self, steps: int, most: int | None = None) -> Iterator[bool]:
        """The steps of a window in calls of the loop; yields after each whether there are more."""
        every = self.every
        most = min(most or self.most, self.field.room(self.chains) * every)
        steps, most = -(-steps // every) * every, max(most // every, 1) * every
        place = {"tuning": 2, "adapting": 3, "sampling": 4}[self.phase]
        source = self.field.source(place, self.window)
        for first in range(0, steps, most):
            source = self.advance(min(most, steps - first), first, source)
            yield first + most < steps

    def _retune(self):
        """Metric, step and refreshment length from all draws that count."""
        skip = self.skip()
        x, g = self.looked_at(self.tuning, skip)
        tuned = self._refitted(x, g, skip)
        if tuned.usable:
            fade = np.array([[1.0], [kinship(self.metric, tuned.metric)]])
            self.steps_tuning = self.steps_tuning * fade
        self.change(self._restepped(tuned, skip).refreshed(x))
        self.note(energy=float(self.energy.mean()))

    def _refitted(self, x: np.ndarray, g: np.ndarray, skip: int = 0) -> Tuned:
        """The metric from draws of the flow and their gradients, less the first `skip`."""
        self.judge(x, self.tuning.stack("energy", skip))
        return self.tuned.refitted(x, g, self.effective)

    def _restepped(self, tuned: Tuned, skip: int) -> Tuned:
        """The step of the flow by the errors that steps of tuning made."""
        return tuned.restepped(*self._errors(skip), flow.tolerance(self.ess, self.exact))

    def _errors(self, skip: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Errors of steps of tuning but the first tenth, their ε, and how much they count."""
        made = self.steps_tuning.shape[1]
        counted = min(made - made // 10, self.tuning.size - skip)
        epsilon, weight = self.steps_tuning[:, -counted:, None]
        return self.tuning.stack("error")[-counted:], epsilon, weight

    def _readapt(self):
        """The step by acceptance; the metric and the length when there is much more to learn."""
        rate = float(self.accepted[0] / max(self.accepted[1], 1))
        self.accepted = np.zeros(2)
        energy = self.archive.stack("energy")
        first = strayed(energy, windows.CHUNK) if len(energy) >= 64 else 0
        if first:
            self.archive = self.archive.cut(first)
            energy = self.archive.stack("energy")
        x, g = self.looked_at(self.archive)
        if len(x) >= 16:
            self.judge(x, energy)
        tuned = self.tuned.accepted(rate, self.tried[1, self.judged :])
        tuned = tuned.localised(self.tried) if tuned.long == self.long else tuned
        if tuned.long != self.long:
            self.tried = self.tried[:, :0]
        self.judged = self.tried.shape[1]
        if self.total > 1.3 * self.refits and len(x) * self.kernel.gradients >= 64:
            earlier = self.looked_at(self.tuning, self.skip())
            every_x, every_g = map(np.concatenate, zip(earlier, (x, g), strict=True))
            tuned = tuned.refitted(every_x, every_g, self.effective).refreshed(x)
            self.refits = self.total
        self.change(tuned)
        self.note(acceptance=rate, energy=float(energy.mean()) if len(x) else math.nan)
