"""Where a run stands: its chains, parameters, draws and counts; and how steps move it on."""

import math
import threading
from typing import Any

import numpy as np

from schuss.core.kernel import Kernel
from schuss.sampling import ahead, exact, flow, places, whereabouts, windows
from schuss.sampling.archive import Archive
from schuss.sampling.cooling import cooled
from schuss.sampling.field import Field, Rows
from schuss.sampling.tuned import Tuned, untuned
from schuss.sampling.whereabouts import Whereabouts
from schuss.sampling.witnesses import Witnesses
from schuss.tuning import slopes
from schuss.tuning.burn_in import skipped


class Standing:
    """All that a run knows. `Course` decides what comes of it."""

    def __init__(
        self,
        field: Field,
        x: np.ndarray,
        *,
        exact: bool = True,
        descent: bool = True,
        freeze: float = 400,
    ):
        self.field, self.exact, self.descent = field, exact, descent
        self.freeze = freeze  # effective sample size at which unadjusted tuning ends
        self.adjusted = exact  # whether tuning is followed by Metropolis
        self.chains, self.dim = x.shape
        self.begun = x.mean(axis=0)
        self.witnesses = Witnesses.among(self.chains)
        self.rng = np.random.default_rng([field.seed, 7, field.leg])
        self.phase, self.window = "start", 0
        self.x, self.u, self.energy, self.g = whereabouts.begin(self.rng, x)
        self._set(untuned(self.dim))
        self.lowest, self.lowest_x = math.inf, x[0]  # energy met so far, and where
        self.passed = places.nowhere(self.dim)
        self.gradients = {"start": 0, "burn-in": 0, "tuning": 0, "adapting": 0, "sampling": 0}
        self.history: list[dict[str, Any]] = []
        self.tuning = Archive(self.chains, self.dim)
        # For each step of tuning ε in units of x, and how much its error counts by now.
        self.steps_tuning = np.empty((2, 0))
        self.archive = self.tuning
        self.state: Any = None  # of the sampler, None where it begins from where the chains are
        self.refits = 0  # gradients at the last fit of the metric in the exact phase
        self.restarted = 0
        self.ess = self.rhat = math.nan
        self.divergences = 0
        self.accepted = np.zeros(2)  # sum and number of acceptance probabilities of first tries
        self.sizes = np.zeros(1)  # effective sample sizes of x, (x − m)² and E, of all chains
        self.tried = np.empty((2, 0))  # slopes that exact steps began on, and their acceptance
        self.judged = 0  # how many of them the step has been judged by
        self.adapted: Archive | None = None  # draws from before everything was frozen
        self.thin = 1
        self.wanted_thin: int | None = None
        self.compiling: threading.Thread | None = None
        self.compiled_long = False  # whether it is the sampler with long steps
        self.limit: int | None = None

    @property
    def now(self) -> Whereabouts:
        """Where the chains are."""
        return Whereabouts(self.x, self.u, self.energy, self.g)

    @property
    def tuned(self) -> Tuned:
        """What the sampler is tuned to."""
        return Tuned(self.metric, self.step, self.length, self.local, self.knee, self.long)

    @property
    def total(self) -> int:
        """Gradients so far, of all chains and phases."""
        return sum(self.gradients.values())

    @property
    def exactly(self) -> bool:
        """Whether the sampler is the adjusted one by now."""
        return self.adjusted and self.phase in ("adapting", "sampling")

    @property
    def kernel(self) -> Kernel:
        """The present sampler."""
        return exact.kernel(self.tuned) if self.exactly else flow.FLOW

    @property
    def seen(self) -> np.ndarray:
        """The effective sample sizes of what parameters are made from: the witnesses' part."""
        return self.sizes / self.witnesses.each

    @property
    def effective(self) -> float:
        """How many independent draws those of the witnesses are typically worth."""
        return float(np.median(self.seen[: self.dim]))

    @property
    def every(self) -> int:
        """The transitions of which one is told: those between are passed over within the loop.

        Where moments of all of them are wanted, none is.
        """
        return self.thin if self.phase == "sampling" and self.limit is None else 1

    def skip(self) -> int:
        """How many of the first states don't count, the last of burn-in among them."""
        return skipped(self.tuning.stack("energy"), windows.CHUNK)

    def assess(self) -> float:
        """The smallest effective sample size of the draws made since all was frozen."""
        if self.archive.size >= 16:
            draws = {name: self.archive.stack(name) for name in ("x", "energy")}
            if self.field.temperature != 1:
                draws = cooled(draws, self.field.temperature)
            self.judge(self.witnesses.of(draws["x"]), draws["energy"])
        return self.ess

    def advance(self, count: int, first: int, source: Any) -> Any:
        """Make `count` steps of the present sampler and keep them; the source of the next ones."""
        tuned, state, every = self.tuned, self.state, self.every
        if self.exactly:
            state = exact.state(self.now, tuned, self.rng) if state is None else state
            kernel, params, state = exact.holding(tuned, state, self.archive.counts % every, every)
        else:
            kernel, params = flow.FLOW, flow.params(tuned.dim, tuned.length, long=tuned.long)
            steps = np.full(self.chains, tuned.step)
            state = flow.state(self.now, tuned.metric, steps) if state is None else state
        state, source, rows = self.field.advance(
            kernel, params, tuned.metric, state, first, count // every, source, every
        )
        host = self.field.engine.to_numpy
        self.state = state.inner if self.exactly else state
        self.follow(whereabouts.after(self.state, tuned.metric, host), rows)
        self.gradients[self.phase] += count * self.chains * kernel.gradients
        if self.exactly:
            self.divergences += int(host(state.diverged).sum())
            self._count(rows)
            self.archive.add(rows)
        else:
            self.keep(rows)
        if self.phase == "tuning":
            made = np.repeat([[tuned.epsilon], [1.0]], count, axis=1)
            self.steps_tuning = np.concatenate([self.steps_tuning, made], axis=1)
        return source

    def keep(self, rows: Rows) -> None:
        """States of the flow, all of which count."""
        self.archive.add(rows._replace(complete=np.ones_like(rows.complete, bool)))

    def follow(self, now: Whereabouts, rows: Rows) -> None:
        """The chains have come along the rows to where they are now."""
        self.x, self.u, self.energy, self.g = now
        n, chain = np.unravel_index(np.argmin(rows.energy), rows.energy.shape)
        if rows.energy[n, chain] < self.lowest:
            self.lowest, self.lowest_x = float(rows.energy[n, chain]), rows.x(n)[chain]

    def remember(self, rows: Rows, which: np.ndarray) -> None:
        """Keep where some chains were: at the end the draws must know these places.

        On a chart masses are others, and in the heat chains go where no draw will be.
        """
        if which.any() and not self.field.chart and self.field.temperature == 1:
            energy = np.asarray(rows.energy[:, which], float)
            found = places.last(rows.x(chains=which), rows.g(chains=which), energy)
            self.passed = self.passed.joined(found)

    def _count(self, rows: Rows):
        """What exact steps tell: acceptance, and slopes while these may matter."""
        tries = rows.acceptance[np.isfinite(rows.acceptance)]
        self.accepted = self.accepted + np.array([tries.sum(), tries.size])
        if self.phase == "adapting":
            tried = slopes.tries(*map(self.witnesses.of, (rows.pull, rows.acceptance)))
            self.tried = np.concatenate([self.tried, tried], axis=1)

    def looked_at(self, archive: Archive, skip: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """The witnesses' draws and gradients."""
        x, g = (self.witnesses.of(archive.stack(name, skip)) for name in ("x", "g"))
        return x, g

    def judge(self, x: np.ndarray, energy: np.ndarray) -> None:
        """The smallest effective sample size and the largest R-hat of x, (x − m)² and E.

        From the witnesses' positions and the energies of all chains.
        """
        self.sizes, ratios = self.witnesses.sizes_and_rhat(x, energy)
        self.ess, self.rhat = float(self.sizes.min()), float(ratios.max())

    def change(self, tuned: Tuned) -> None:
        """Go on with other parameters. Lookaheads are given up where one changes."""
        tuned = tuned if tuned.usable else self.tuned
        before, after = (
            [np.shape(part) for part in frame] for frame in (self.metric, tuned.metric)
        )
        other = after != before or tuned.foreseen.long != self.compiled_long
        self._set(tuned)
        self.state = None
        if other and self.phase == "tuning":
            self.compile_ahead()

    def _set(self, tuned: Tuned):
        self.metric, self.step, self.length, self.local, self.knee, self.long = tuned

    def compile_ahead(self) -> None:
        """Have the exact phase ready when it begins."""
        if self.exact:
            tuned = self.tuned.foreseen
            self.compiled_long = tuned.long
            self.compiling = ahead.compiling(self.field, self.now, tuned)

    def note(self, **more: float) -> None:
        """One more line of the history."""
        told = {"phase": self.phase, "gradients": self.total, **self.tuned.told}
        self.history.append(told | {"ess": self.ess, "rhat": self.rhat, **more})
