"""The course of a run: down to the typical set, tuned there, then exact.

    start      L-BFGS from where the user began
    burn-in    the unadjusted flow, a step size for each chain, until energies stop falling
    tuning     the unadjusted flow in growing windows; metric, step and refreshment from all draws
    adapting   per-step Metropolis in growing windows, its step by acceptance; local where steps
               are refused on steep slopes
    sampling   the same with everything frozen

All decisions are taken here, between calls of a compiled loop, from statistics that the chains
share. Without `exact` the draws of tuning count too; and where steps are long, as they are on
targets close to a Gaussian, the flow goes on as it is instead of being adjusted.
"""

import contextlib
import math
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from schuss.core import adaptive, local_step, persistent
from schuss.core.dynamics import ESH
from schuss.core.integrators import LEAPFROG, MINIMAL_NORM
from schuss.core.refresh import amount
from schuss.sampling.archive import Archive
from schuss.sampling.field import ROOM, Field, Rows
from schuss.sampling.witnesses import Witnesses
from schuss.tuning import burn_in, length, metric, slopes, step_size
from schuss.tuning.descent import descend

FLOW = adaptive.kernel(ESH, MINIMAL_NORM)
EXACT = persistent.kernel(ESH, LEAPFROG)
LOCAL = persistent.kernel(ESH, LEAPFROG, local=True)

CHUNK = 8
"""Steps between two decisions in burn-in, and the unit of the tuning windows."""

BURN_IN_ERROR, TUNING_ERROR = 0.01, 3e-3
"""Wanted variance of the energy error per dimension."""

ADAPTING = (64, 64, 128, 192, 320, 512, 768, 1152)
"""Steps of the adapting windows; they go on growing by half until the draws are enough."""

DIVERGED = 1000.0
"""A step with a larger energy error has diverged."""

MOST_ADAPTING = 14
ENOUGH_TO_SWITCH, ENOUGH_TO_FREEZE = 30, 100
"""Smallest effective sample size at which the exact phase begins, and at which all is frozen."""

TYPICAL_TO_SWITCH, MIXED_TO_SWITCH = 150, 2.0
"""The median one that does as well, and the largest R-hat: sizes of few draws may be far too large.
"""

FREE_OF_BIAS = 50
"""Effective sample size up to which the flow's bias stays below the scatter of its estimates."""

MOST_TUNING = 16

LONG = 1.0
"""Steps of the flow, in units of √d, from which on it goes on unadjusted where it may."""

SHORTER = 0.7
"""The first step of the exact phase, whose integrator is the leapfrog, in units of the flow's."""

SPREAD = 0.1
"""How much the logarithms of local steps vary."""


class Course:
    """A run that goes on for as long as it is asked to."""

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
        self.witnesses = Witnesses.among(self.chains)
        self.rng = np.random.default_rng([field.seed, 7])
        self.phase, self.window = "start", 0
        self.x = x
        self.u = _directions(self.rng, x.shape)
        self.energy, self.g = np.zeros(self.chains), np.zeros_like(x)
        self.lowest = math.inf  # energy met so far
        self.metric: metric.Metric = metric.unit(self.dim)
        self.step, self.length = 1.0, math.sqrt(self.dim)
        self.gradients = {"start": 0, "burn-in": 0, "tuning": 0, "adapting": 0, "sampling": 0}
        self.history: list[dict[str, Any]] = []
        self.tuning = Archive(self.chains, self.dim)
        self.steps_tuning: list[np.ndarray] = []  # ε in units of x for each row of tuning
        self.archive = self.tuning
        self.state: Any = None
        self.refits = 0
        self.restarted = 0
        self.ess = self.rhat = math.nan
        self.divergences = 0
        self.accepted = np.zeros(2)  # sum and number of acceptance probabilities of first tries
        self.sizes = np.zeros(1)  # effective sample sizes of x, (x − m)² and E, of all chains
        self.tried = np.empty((2, 0))  # slopes that exact steps began on, and their acceptance
        self.local, self.knee = False, 0.0  # whether steps are shorter on slopes over e^knee
        self.adapted: Archive | None = None  # draws from before everything was frozen
        self.thin = 1
        self.wanted_thin: int | None = None
        self.compiling: threading.Thread | None = None
        self.limit: int | None = None

    @property
    def total(self) -> int:
        """Gradients so far, of all chains and phases."""
        return sum(self.gradients.values())

    @property
    def exactly(self) -> bool:
        """Whether the sampler is the adjusted one by now."""
        return self.adjusted and self.phase in ("adapting", "sampling")

    @property
    def seen(self) -> np.ndarray:
        """The effective sample sizes of what parameters are made from: the witnesses' part."""
        return self.sizes / self.witnesses.each

    def assess(self, cool: Callable) -> float:
        """The smallest effective sample size of the draws made since all was frozen.

        `cool(draws, temperature)` makes draws of e^(−E) of those at a temperature.
        """
        if self.archive.size >= 16:
            draws = {name: self.archive.stack(name) for name in ("x", "energy")}
            if self.field.temperature != 1:
                draws = cool(draws, self.field.temperature)
            self._assess(self.witnesses.of(draws["x"]), draws["energy"])
        return self.ess

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
        self._prepare()
        if self.descent:
            found = descend(self.field.evaluate, self.x)
            self.x, self.energy, self.g = found.x, found.energy, found.g
            self.gradients["start"] += found.iterations * self.chains
        else:
            self.energy, self.g = self.field.evaluate(self.x)
            self.gradients["start"] += self.chains
        self.lowest = float(np.min(self.energy))
        self.phase = "burn-in"
        self._note()

    def _prepare(self):
        """Have the exact phase compiled in the background while the others run."""
        if not self.exact or self.field.engine.name != "jax":
            return

        def compile_():
            # What goes wrong here goes wrong again where it can be told to the user.
            with contextlib.suppress(Exception):
                self.field.advance(kernel, *arguments, 0, 0, self.field.source(0))

        kernel = self._kernel()
        arguments = self._exact_params(), self.metric, self._persisting(np.zeros(self.chains))
        self.compiling = threading.Thread(target=compile_)
        self.compiling.start()

    def _burn_in(self):
        steps = step_size.first_step(self.g)
        errors = counts = np.zeros(self.chains)
        rows: list[Rows] = []
        while True:
            state = self._flowing(steps, errors, counts)
            params = self._flow_params(BURN_IN_ERROR, 0.8, 0.5, 1.5, math.sqrt(self.dim))
            source = self.field.source(1, len(rows))
            state, _, chunk = self.field.advance(FLOW, params, self.metric, state, 0, CHUNK, source)
            self._follow(state, chunk)
            self.gradients["burn-in"] += CHUNK * self.chains * FLOW.gradients
            host = self.field.engine.to_numpy
            steps, errors, counts = (
                np.asarray(host(part), float)
                for part in (state.step_size, state.errors, state.count)
            )
            rows.append(chunk)
            means = np.stack([row.energy.mean(axis=0) for row in rows])
            late = rows[len(rows) // 2 :]
            scale = metric.scales_by_chain(
                np.concatenate([row.x() for row in late]), np.concatenate([row.g() for row in late])
            )
            change = math.exp(np.mean(np.log(self.metric.scale / scale)))
            self.metric = metric.scaled(scale)
            steps = steps * change
            self.step = float(np.median(steps))
            self._note(energy=float(chunk.energy.mean()))
            over = burn_in.over(means, self.dim)
            if len(rows) >= 2 * burn_in.LEAST or over:
                self._restart(burn_in.lost(self.energy, steps, self.dim))
            if over:
                break
            yield False
        self.step *= (TUNING_ERROR / BURN_IN_ERROR) ** (1 / 6)
        self.phase = "tuning"

    def _restart(self, lost: np.ndarray):
        """Chains that are left behind begin again where a good one is."""
        if not lost.any():
            return
        good = np.flatnonzero(~lost)
        chosen = self.rng.choice(good, lost.sum())
        x, energy, g, u = self.x.copy(), self.energy.copy(), self.g.copy(), self.u.copy()
        x[lost], energy[lost], g[lost] = x[chosen], energy[chosen], g[chosen]
        u[lost] = _directions(self.rng, (int(lost.sum()), self.dim))
        self.x, self.energy, self.g, self.u = x, energy, g, u
        self.restarted += int(lost.sum())

    def _tune(self):
        early = self.window < 2
        todo = _growing(2, 1.5, self.window) * CHUNK
        source, first = self.field.source(2, self.window), 0
        while todo:
            count = min(todo, CHUNK if early else ROOM)
            source = self._flow(count, first, source)
            todo, first = todo - count, first + count
            if early:
                self._retune_step()
            if todo:
                yield False
        self._retune()
        self.window += 1
        last = self.window >= MOST_TUNING
        seen = self.seen
        enough = seen.min() >= ENOUGH_TO_SWITCH
        enough = enough or np.median(seen[: self.dim]) >= TYPICAL_TO_SWITCH
        enough = (enough and self.rhat < MIXED_TO_SWITCH) or last
        if enough and (self.exact or self.step < LONG * math.sqrt(self.dim)):
            self._begin_exact()
        elif not self.exact and (self.ess >= self.freeze or last):
            self._freeze()
        yield True

    def _flow(self, count, first, source):
        """Steps of the unadjusted flow with a step size that stays."""
        state = self.state
        if state is None:
            nothing = np.zeros(self.chains)
            state = self._flowing(np.full(self.chains, self.step), nothing, nothing)
        params = self._flow_params(1.0, 1.0, 1.0, 1.0, self.length)
        self.state, source, rows = self.field.advance(
            FLOW, params, self.metric, state, first, count, source
        )
        self._follow(self.state, rows)
        phase = "sampling" if self.phase == "sampling" else "tuning"
        self.gradients[phase] += count * self.chains * FLOW.gradients
        self.archive.add(rows._replace(complete=np.ones_like(rows.complete, bool)))
        if self.phase == "tuning":
            epsilon = self.step * math.exp(metric.log_scale(self.metric))
            self.steps_tuning.append(np.full(count, epsilon))
        return source

    def skip(self) -> int:
        """How many of the first draws of tuning don't count: burn-in, and a tenth of the rest."""
        energy = self.tuning.stack("energy")
        chunks = len(energy) // CHUNK
        means = energy[: chunks * CHUNK].reshape(chunks, CHUNK, -1).mean(axis=1)
        spread = float(energy[len(energy) // 2 :].std())
        first = burn_in.settled(means, spread) * CHUNK
        return first + (len(energy) - first) // 10

    def _retune_step(self):
        skip = self.skip()
        error = self.tuning.stack("error", skip)
        steps = np.concatenate(self.steps_tuning)[skip:, None]
        steps = steps * math.exp(-metric.log_scale(self.metric))
        # The bias², about the error to the power ⅔, falls with the variance, 1/ESS.
        wanted = TUNING_ERROR
        if not self.exact and self.ess > FREE_OF_BIAS:
            wanted *= (FREE_OF_BIAS / self.ess) ** 1.5
        step = step_size.from_errors(error, steps, self.dim, wanted)
        step = min(step, 1.4 * math.sqrt(self.dim))
        self.step = float(np.clip(step, 0.5 * self.step, 1.5 * self.step))
        self.state = None

    def _retune(self):
        """Metric, step and refreshment length from all draws that count."""
        skip = self.skip()
        x, g = (self.witnesses.of(self.tuning.stack(name, skip)) for name in ("x", "g"))
        self._assess(x, self.tuning.stack("energy", skip))
        self._refit(x, g)
        self._retune_step()
        self.length = length.refreshment(self.step, x, self.length)
        self._note(energy=float(self.energy.mean()))

    def _refit(self, x, g):
        effective = float(np.median(self.seen[: self.dim]))
        fitted = metric.fit(_flat(x), _flat(g), effective)
        change = math.exp(metric.log_scale(self.metric) - metric.log_scale(fitted))
        grown = [np.shape(part) for part in fitted] != [np.shape(part) for part in self.metric]
        self.metric, self.step, self.state = fitted, self.step * change, None
        if grown and self.phase == "tuning":
            self._prepare()

    def _assess(self, x, energy):
        """The smallest effective sample size and the largest R-hat of x, (x − m)² and E."""
        self.sizes, ratios = self.witnesses.sizes_and_rhat(x, energy)
        self.ess, self.rhat = float(self.sizes.min()), float(ratios.max())

    def _begin_exact(self):
        if self.compiling is not None:
            self.compiling.join()
        self.phase, self.window, self.adjusted = "adapting", 0, True
        self.step *= SHORTER
        self.archive = Archive(self.chains, self.dim)
        self.state, self.refits = None, self.total

    def _adapt(self):
        todo = _adapting(self.window)
        source, first = self.field.source(3, self.window), 0
        while todo:
            count = min(todo, ROOM)
            source = self._exactly(count, first, source)
            todo, first = todo - count, first + count
            if todo:
                yield False
        self._readapt()
        self.window += 1
        enough = self.window >= len(ADAPTING) and self.seen.min() >= ENOUGH_TO_FREEZE
        if enough or self.window >= MOST_ADAPTING:
            self._freeze()
        yield True

    def _kernel(self):
        """The adjusted sampler."""
        return LOCAL if self.local else EXACT

    def _exact_params(self):
        ratio = self.step / self.length
        noise = amount(self.step, self.length, self.dim)
        looks = float(math.floor(0.5 / ratio))
        kappa = self.dim - 1.0
        return persistent.Params(
            self.step, kappa, kappa, noise, looks, 2 * ratio, self.knee, SPREAD
        )

    def _exactly(self, count, first, source):
        """Steps of the adjusted sampler."""
        if self.state is None:
            self.state = self._persisting(self.rng.uniform(-1, 1, self.chains))
        self.state, source, rows = self.field.advance(
            self._kernel(), self._exact_params(), self.metric, self.state, first, count, source
        )
        self._follow(self.state, rows)
        self.divergences += int(np.sum(~(rows.error < DIVERGED)))
        self.gradients[self.phase] += count * self.chains * EXACT.gradients
        self.archive.add(rows)
        if self.phase == "adapting":
            tried = slopes.tries(*map(self.witnesses.of, (rows.pull, rows.acceptance)))
            self.tried = np.concatenate([self.tried, tried], axis=1)
        tries = rows.acceptance[np.isfinite(rows.acceptance)]
        self.accepted = self.accepted + np.array([tries.sum(), tries.size])
        return source

    def _readapt(self):
        """The step by acceptance; the metric and the length when there is much more to learn."""
        rate = float(self.accepted[0] / max(self.accepted[1], 1))
        self.accepted = np.zeros(2)
        energy = self.archive.stack("energy")
        x, g = (self.witnesses.of(self.archive.stack(name)) for name in ("x", "g"))
        if len(x) >= 16:
            self._assess(x, energy)
        self.step *= step_size.from_acceptance(rate)
        if self.local or slopes.refused(self.tried):
            self.local, self.knee = True, slopes.knee(self.tried, self.dim)
        if self.total > 1.8 * self.refits and len(x) >= 64:
            skip = self.skip()
            both = [
                _flat(np.concatenate([self.witnesses.of(self.tuning.stack(name, skip)), own]))
                for name, own in (("x", x), ("g", g))
            ]
            self.refits = self.total
            self._refit(*both)
            self.length = length.refreshment(self.step, x, self.length)
        self._note(acceptance=rate, energy=float(energy.mean()) if len(x) else math.nan)
        # Lookaheads are given up where a parameter changes.
        self.state = None

    def _freeze(self):
        """Nothing changes from here on."""
        n = self.archive.size * self.chains
        self.thin = self.wanted_thin or int(np.clip(n / max(self.ess, 1.0) / 4, 1, 500))
        if not self.exact:
            self.adapted = self.tuning.cut(self.skip()).thinned(self.thin)
        if self.adjusted:
            adapted = self.archive.thinned(self.thin)
            self.adapted = adapted if self.adapted is None else self.adapted.joined(adapted)
        self.phase, self.window = "sampling", 0
        self.archive = Archive(self.chains, self.dim, self.thin, self.limit)
        self.tuning = Archive(self.chains, self.dim)
        self.steps_tuning = []

    def _sample(self):
        todo = 4 * ROOM * min(_growing(1, 1.3, self.window), 16)
        source, first = self.field.source(4, self.window), 0
        while todo:
            count = min(todo, ROOM)
            advance = self._exactly if self.adjusted else self._flow
            source = advance(count, first, source)
            todo, first = todo - count, first + count
            if todo:
                yield False
        self.window += 1
        yield True

    def _flow_params(self, wanted, memory, shrink, grow, length_):
        longest = 2.5 * math.sqrt(self.dim)
        return adaptive.Params(
            1.0, self.dim - 1.0, 2 / length_, wanted, memory, shrink, grow, longest
        )

    def _flowing(self, steps, errors, counts):
        z = self.metric.inverse(np, self.x)
        g = self.metric.pull(np, z, self.g)
        nothing = np.zeros(self.chains)
        return adaptive.State(z, self.u, nothing, self.energy, g, steps, errors, counts)

    def _persisting(self, s):
        z = self.metric.inverse(np, self.x)
        g, nothing = self.metric.pull(np, z, self.g), np.zeros(self.chains)
        here = (z, self.u, nothing, self.energy, g)
        scale = nothing
        if self.local:
            scale = local_step.draw(np, g, self.rng.uniform(size=self.chains), self.knee, SPREAD)
        return persistent.State(*here, *here, nothing, s, scale)

    def _follow(self, state, rows: Rows):
        """Where the chains are now."""
        self.x, self.g = rows.x(-1), rows.g(-1)
        self.energy = np.asarray(rows.energy[-1], float)
        self.lowest = min(self.lowest, float(np.min(rows.energy)))
        self.u = np.asarray(self.field.engine.to_numpy(state.u), float)

    def _note(self, **more):
        self.history.append(
            {
                "phase": self.phase,
                "gradients": self.total,
                "step_size": self.step,
                "refresh": self.length,
                "metric": metric.rank(self.metric),
                "local": self.local,
                "ess": self.ess,
                "rhat": self.rhat,
                **more,
            }
        )


def _directions(rng, shape):
    u = rng.standard_normal(shape)
    return u / np.linalg.norm(u, axis=-1, keepdims=True)


def _flat(x):
    return x.reshape(-1, x.shape[-1])


def _growing(first, factor, k):
    """The k-th of lengths that grow by a factor, each a whole number: 2, 3, 5, 8, 12, …"""
    size = first
    for _ in range(k):
        size = math.ceil(size * factor)
    return size


def _adapting(k):
    if k < len(ADAPTING):
        return ADAPTING[k]
    return _growing(ADAPTING[-1], 1.5, k - len(ADAPTING) + 1)
