"""What `schuss.evidence` gives back: log Z with its error, weighted draws, and a verdict."""

import dataclasses
import functools
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from schuss.evidence.resample import systematic
from schuss.model import Model
from schuss.results import Posterior, Stats, Summary, Verdict


@dataclasses.dataclass(frozen=True, repr=False)
class Evidence:
    """log Z = log ∫ e^(−E), or the log marginal likelihood of a model.

    `x` are the last states, flat, (groups, draws, dim), each group an estimate of its own, and
    `weights` (groups, draws) add up to one. `interval` covers 95 %. `log_z` is nan where no number
    could be trusted at all, and the verdict says why.
    """

    log_z: float
    error: float  # standard error
    interval: tuple[float, float]
    x: np.ndarray
    weights: np.ndarray
    energy: np.ndarray  # E at x, (groups, draws)
    verdict: Verdict
    group_log_z: np.ndarray  # (groups,)
    stats: Mapping[str, Any]
    method: str
    seed: int
    engine: str
    name: str = ""
    model: Model | None = None

    @property
    def freedom(self) -> int:
        """Degrees of freedom of the error."""
        return len(self.group_log_z) - 1

    @property
    def headline(self) -> str:
        """log Z in one line."""
        if not np.isfinite(self.log_z):
            return "log Z is not known"
        low, high = self.interval
        return (
            f"log Z = {self.log_z:.3f} ± {self.error:.3f} (95 %: {low:.3f} to {high:.3f}), "
            f"{self.stats['gradients']} gradients for each of {self.stats['particles']} particles"
        )

    def __repr__(self) -> str:
        return f"{self.headline}\n{self.verdict}"

    @property
    def draws(self) -> Any:
        """The states as the user knows them: an array, or a dict of a model's named values."""
        return self.x if self.model is None else dict(self.model.constrain(self.x))

    def mean(self, values=None) -> np.ndarray:
        """Weighted mean of x, or of values shaped (groups, draws, …)."""
        return np.tensordot(self.weights, self.x if values is None else values, axes=2)

    def sample(self, n: int, seed: int = 0) -> np.ndarray:
        """n flat positions drawn by weight, (n, dim)."""
        rng = np.random.default_rng(seed)
        chosen = rng.choice(self.weights.size, n, p=self.weights.reshape(-1))
        return self.x.reshape(-1, self.x.shape[-1])[chosen]

    @functools.cached_property
    def posterior(self) -> Posterior:
        """The weighted draws, as `schuss.sample` would give them, with this verdict."""
        return self._posterior(np.arange(self.weights.size).reshape(self.weights.shape), True)

    def _posterior(self, index: np.ndarray, weighted: bool) -> Posterior:
        def pick(values):
            return values.reshape(-1, *values.shape[2:])[index]

        x = pick(self.x)
        spent = self.stats["gradients"] * self.stats["particles"]
        return Posterior(
            judged=self.verdict,
            stats=Stats(
                energy=pick(self.energy),
                gradients={"tempering": spent},
                seconds={"tempering": self.stats["seconds"]},
                history=tuple(self.stats.get("history", ())),
                sampler=f"evidence by {self.method}",
                seed=self.seed,
                engine=self.engine,
            ),
            draws=x if self.model is None else self.model.constrain(x),
            x=x,
            weights=pick(self.weights) if weighted else None,
            name=f"{self.name or 'Evidence'}: {self.headline}",
            dims={} if self.model is None else self.model.dims,
            coords={} if self.model is None else self.model.coords,
        )

    def summary(self) -> Summary:
        """A table of the weighted draws, under log Z and the verdict."""
        table = self.posterior.summary()
        return dataclasses.replace(table, lines=(f"  {self.headline}.", *table.lines))

    def to_arviz(self):
        """The draws resampled by weight, as ArviZ's InferenceData, with log Z in its attributes."""
        index = systematic(self.weights.reshape(-1), self.weights.size, 0.5)
        data = self._posterior(index.reshape(self.weights.shape), False).to_arviz()
        known = {"log_z": self.log_z, "log_z_error": self.error}
        data.attrs.update(known)
        data.posterior.attrs.update(known)
        return data

    def report(self, path: str | os.PathLike = "report.html"):
        """Write one self-contained HTML page about the run, and give its path."""
        return self.posterior.report(path)
