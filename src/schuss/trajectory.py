"""`schuss.trajectory`: follow a sampler and keep its path."""

import dataclasses
from typing import Any

import numpy as np

from schuss.algorithms import ESH, Algorithm, Unscaled, checked
from schuss.arguments import numbers, seed_or_generator, whole, whole_seed
from schuss.core import ergodic, weights
from schuss.core.kernel import Info, Seen
from schuss.diagnostics.weights import normalise
from schuss.engines.engine import Job
from schuss.keywords import explained
from schuss.problem import Problem, check_noise, launch, pose
from schuss.progress import chunks

CHUNK = 8192
"""States recorded between two looks at the keyboard."""


@dataclasses.dataclass(frozen=True, repr=False)
class Path:
    """A path in NumPy arrays: states along the first axis (the start included), then chains.

    What belongs to a step rather than to a state (`log_weight`, `energy_error`, `acceptance`,
    `complete`) is one shorter: entry i is about the step that led to state i + 1.
    """

    x: np.ndarray
    u: np.ndarray  # velocity in the coordinates of the kernel: a unit vector for ESH
    r: np.ndarray  # log|v| for ESH
    energy: np.ndarray
    hamiltonian: np.ndarray  # the conserved quantity of the flow, up to a constant
    log_weight: np.ndarray
    energy_error: np.ndarray
    acceptance: np.ndarray  # probability of each decision, nan where none was taken
    complete: np.ndarray
    frozen: np.ndarray  # chains that met a non-finite energy or gradient and were stopped
    algorithm: Algorithm
    every: int
    gradients: int  # for each chain, the one at the start not counted
    _problem: Problem = dataclasses.field(repr=False)
    _job: Job = dataclasses.field(repr=False)
    _state: Any = dataclasses.field(repr=False)

    def __repr__(self) -> str:
        shape = " × ".join(map(str, self.x.shape[2:]))
        frozen = f", {self.frozen.sum()} frozen" if self.frozen.any() else ""
        return (
            f"Path: {len(self.x)} states of {self.chains} chains in {shape} dimensions{frozen}, "
            f"{self.gradients} gradients each, by {self.algorithm!r}"
        )

    @property
    def chains(self) -> int:
        """Number of chains."""
        return self.x.shape[1]

    @property
    def dim(self) -> int:
        """Coordinates of one position."""
        return self._problem.dim

    @property
    def time(self) -> np.ndarray:
        """Time of the Hamiltonian at every state: un-scaled for ESH (∫ e^r dt̄/d), else ε each."""
        step = np.asarray(self.algorithm.step_size, float) * self.every
        if isinstance(self.algorithm, ESH):
            return ergodic.clock(np, self.r.astype(float), step, self.u.shape[-1])
        return np.arange(len(self.x))[:, None] * np.broadcast_to(step, (self.chains,))

    @property
    def acceptance_rate(self) -> np.ndarray:
        """Mean probability of acceptance of each chain, (chains,); nan where nothing is decided."""
        decided = np.isfinite(self.acceptance)
        total = np.where(decided, self.acceptance, 0.0).sum(axis=0)
        return np.where(decided.any(axis=0), total / np.maximum(decided.sum(axis=0), 1), np.nan)

    @property
    def weights(self) -> np.ndarray:
        """Weights of the states x[1:], (steps, chains), which add up to one."""
        logs = self.log_weight.astype(float)
        if self._job.kernel.windowed:
            logs = _by_window(logs, self.complete)
        if getattr(self.algorithm, "weight", "energy") != "energy":
            logs = _by_chain(logs)
        peak = logs.max()
        if peak == -np.inf and self.frozen.all():
            raise ValueError(
                "every chain was frozen before a state counted: the energy or its gradient isn't "
                "finite there; look at path.frozen and path.x[-1]"
            )
        if peak == -np.inf:
            raise ValueError(
                "no state has weight: no transition was completed at a recorded state; make more "
                "steps, or record every one"
            )
        raw = np.exp(logs - peak)
        return raw / raw.sum()

    def mean(self, values=None) -> np.ndarray:
        """Weighted mean over steps and chains, of x or of values shaped (steps, chains, …)."""
        values = self.x[1:] if values is None else np.asarray(values)
        if values.shape[:2] != self.log_weight.shape:
            raise ValueError(
                f"values must begin with (steps, chains) = {self.log_weight.shape}, got shape "
                f"{values.shape}; the start has no weight: leave it out, as in path.x[1:]"
            )
        return np.tensordot(self.weights, values, axes=2)

    def ergodic_sample(self, n: int, seed: Any = 0) -> np.ndarray:
        """Draw n positions uniformly in un-scaled time, evenly from all chains (Alg. 2).

        For κ ≠ d a moment of scaled time counts e^((κ−d+1)r). The clock of a frozen chain stands.
        """
        n, seed = whole("n", n, 1), whole_seed(seed)
        flow = isinstance(self.algorithm, ESH) and self.algorithm.adjust is None
        if not (flow or isinstance(self.algorithm, Unscaled)):
            raise ValueError(
                "ergodic sampling belongs to the un-adjusted ESH flow; draw from path.x[1:] by "
                "path.weights instead"
            )
        times = self.time
        if flow:
            dim = self.u.shape[-1]
            rate = weights.log_weight_by_speed(self.r.astype(float), self._kappa, dim)
            # The unit of this clock is each chain's own, so that e^rate can't overflow.
            step = np.asarray(self.algorithm.step_size, float) * self.every
            times = ergodic.clock(np, rate - rate.max(axis=0), step, dim)
        going = np.diff(times, axis=0) * np.isfinite(self.log_weight)
        times = np.concatenate([np.zeros_like(times[:1]), np.cumsum(going, axis=0)])
        (usable,) = np.nonzero(times[-1] > 0)
        if not len(usable):
            raise ValueError("every chain was frozen in its first step: there is nothing to draw")
        rng = np.random.default_rng(seed)
        x = self.x.reshape(len(self.x), self.chains, -1)
        rounds = [rng.permutation(usable) for _ in range(-(-n // len(usable)))]
        owner = np.concatenate(rounds)[:n]
        drawn = np.empty((n, x.shape[-1]), x.dtype)
        for chain in usable:
            (mine,) = np.nonzero(owner == chain)
            if len(mine):
                moments = rng.uniform(0, times[-1, chain], len(mine))
                drawn[mine] = ergodic.interpolate(np, x[:, chain], times[:, chain], moments)
        return drawn.reshape(n, *self.x.shape[2:])

    def jarzynski(self, reference_energy, *, exact: bool = True) -> np.ndarray:
        """Log-weights of every state as a sample of e^(−E), (states, chains) (Alg. 4).

        `reference_energy` is E₀ at the starts, (chains,), which were drawn from e^(−E₀). The mean
        of the weights estimates Z/Z₀. `exact=False` has the paper's form, which relies on the
        conservation of the Hamiltonian. A frozen chain keeps the weight of its last state.
        """
        if not isinstance(self.algorithm, ESH) or self.algorithm.adjust is not None:
            raise ValueError("Jarzynski weights belong to the un-adjusted ESH flow")
        reference = numbers("reference_energy", reference_energy)
        if reference.shape != (self.chains,):
            raise ValueError(
                f"reference_energy must have shape ({self.chains},), got {reference.shape}"
            )
        dim = self.u.shape[-1]
        # Where a coordinate was added, the flow's energy has its share, and so has the reference.
        energy = self.hamiltonian - self._kappa * self.r
        reference = reference + (energy - self.energy)[0]
        if exact:
            return weights.jarzynski_exact(reference, energy, self.r, dim)
        return weights.jarzynski(reference, energy[0], self.r, self._kappa, dim)

    @property
    def _kappa(self) -> float:
        return float(self._problem.engine.to_numpy(self._job.params.kappa))

    def extend(self, steps: int, *, progress: bool = False) -> "Path":
        """The same path, `steps` steps longer: the numbers of a run that was never interrupted."""
        done = (len(self.x) - 1) * self.every
        steps, _ = _check_steps(steps, self.every)
        more = follow(
            self._problem,
            self._job,
            self._state,
            [],
            self.algorithm,
            done,
            steps,
            self.every,
            progress,
        )
        joined = {
            name: np.concatenate([getattr(self, name), getattr(more, name)]) for name in _SERIES
        }
        return dataclasses.replace(more, **joined, gradients=self.gradients + more.gradients)


_SERIES = (
    "x",
    "u",
    "r",
    "energy",
    "hamiltonian",
    "log_weight",
    "energy_error",
    "acceptance",
    "complete",
)


@explained
def trajectory(
    target=None,
    *,
    energy=None,
    logdensity=None,
    value_and_grad=None,
    init=None,
    chains: int | None = None,
    sampler: Algorithm | None = None,
    steps: int = 200,
    every: int = 1,
    seed: Any = 0,
    engine: Any = "auto",
    compile: bool = False,
    gradient_dtype: Any = None,
    velocity=None,
    noise=None,
    progress: bool = False,
) -> Path:
    """Follow `sampler` for `steps` steps and keep every `every`-th state.

    The target is a `schuss.targets` one, or a function given as `energy=`, `logdensity=`, or
    `value_and_grad=` (for the NumPy engine). `init` is a batch of positions, (chains, dim) or
    images of any shape; a single position is one chain. `velocity` sets the first velocity and
    `noise` injects all noise (a `schuss.Noise` of stacked arrays, entry t for step t, entry 0 for
    the start). `seed` is a whole number, a NumPy Generator (which is advanced) or SeedSequence, a
    JAX key, or with PyTorch a torch.Generator. `compile` and `gradient_dtype` belong to PyTorch.
    """
    steps, every = _check_steps(steps, every)
    seed = seed_or_generator(seed)
    algorithm = ESH() if sampler is None else checked("sampler", sampler)
    problem = pose(
        target,
        energy=energy,
        logdensity=logdensity,
        value_and_grad=value_and_grad,
        init=init,
        chains=chains,
        seed=seed,
        engine=engine,
        compile=compile,
        gradient_dtype=gradient_dtype,
    )
    job, state, first = launch(problem, algorithm, seed, velocity=velocity, noise=noise)
    if job.kernel.windowed and every > 1:
        raise ValueError("every must be 1 with adjust='orbit', whose windows it would tear apart")
    seen = [[problem.engine.to_numpy(part)[None] for part in first]]
    return follow(problem, job, state, seen, algorithm, 0, steps, every, progress)


def follow(problem, job, state, seen, algorithm, done, steps, every, progress=False) -> Path:
    """Make `steps` steps and join what was seen before to what is seen on the way."""
    engine, infos = problem.engine, []
    check_noise(job, state.x, done + steps)
    for count in chunks(steps // every, CHUNK, "path", progress):
        state, source, record = engine.record(job, state, done, count, every)
        job = job._replace(source=source)
        done += count * every
        seen.append([engine.to_numpy(part) for part in record.seen])
        infos.append([engine.to_numpy(part) for part in record.info])
    seen = Seen(*(np.concatenate(parts) for parts in zip(*seen, strict=True)))
    info = Info(*(np.concatenate(parts) for parts in zip(*infos, strict=True)))
    positions = problem.unflatten(seen.x.reshape(-1, problem.dim))
    return Path(
        x=positions.reshape(len(seen.x), len(problem.x), *problem.shape),
        u=seen.u,
        r=seen.r,
        energy=seen.energy,
        hamiltonian=seen.conserved,
        log_weight=info.log_weight,
        energy_error=info.energy_error,
        acceptance=info.acceptance,
        complete=info.complete,
        frozen=~engine.to_numpy(job.kernel.alive(engine.xp, state)),
        algorithm=algorithm,
        every=every,
        gradients=steps * job.kernel.gradients,
        _problem=problem,
        _job=job,
        _state=state,
    )


def _check_steps(steps, every):
    steps, every = whole("steps", steps, 1), whole("every", every, 1)
    if steps % every:
        raise ValueError(f"steps must be a multiple of every, got {steps} and {every}")
    return steps, every


def _by_chain(logs):
    """Log-weights whose mean is one in each chain: |v| and the time are in units of its own."""
    with np.errstate(divide="ignore"):
        return np.log(normalise(logs, axis=0) * np.isfinite(logs).sum(axis=0))


def _by_window(logs, complete):
    """Log-weights normalised within each window; an unfinished window counts for nothing."""
    out = np.full(logs.shape, -np.inf)
    for chain in range(logs.shape[1]):
        begin = 0
        for end in np.flatnonzero(complete[:, chain]) + 1:
            window = logs[begin:end, chain]
            peak = window.max()
            out[begin:end, chain] = window - peak - np.log(np.exp(window - peak).sum())
            begin = end
    return out
