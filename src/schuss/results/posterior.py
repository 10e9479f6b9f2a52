"""`Posterior`: the draws of a run, and what one does with them."""

import dataclasses
import functools
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from schuss.results import checks, naming
from schuss.results.checks.evidence import listed
from schuss.results.stats import Moments, Stats
from schuss.results.summary import Summary, element_names, summarise
from schuss.results.verdict import Verdict, judge, judge_moments


@dataclasses.dataclass(frozen=True, repr=False)
class Posterior:
    """Draws (chains, draws, …) and how they came about.

    `draws` is what a user sees: one array (chains, draws, *shape) or a dict of named ones. `x` are
    the same draws flat and unconstrained, (chains, draws, dim). Both are None if only `moments`
    were kept. `weights` (chains, draws), where given, belong to every average.
    """

    stats: Stats
    draws: Any = None
    x: np.ndarray | None = None
    weights: np.ndarray | None = None
    name: str = ""
    dims: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)
    coords: Mapping[str, Sequence[Any]] = dataclasses.field(default_factory=dict)
    moments: Moments | None = None
    start_groups: np.ndarray | None = None  # (chains,): chains with one label began at one place
    judged: Verdict | None = None  # by whoever made the draws; found from the draws if not given

    def __post_init__(self):
        if self.draws is None and self.moments is None:
            raise ValueError("draws or moments must be given; pass what the run kept")
        if self.draws is not None and self.x is None:
            raise ValueError("x must be given with draws; pass the flat positions")
        if self.x is not None:
            expected = self.x.shape[:2]
            shapes = {name: values.shape[:2] for name, values in self.named.items()}
            shapes["energy"] = np.shape(self.stats.energy)
            if self.weights is not None:
                shapes["weights"] = np.shape(self.weights)
            for name, shape in shapes.items():
                if shape != expected:
                    raise ValueError(
                        f"{name} must begin with (chains, draws) = {expected} like x, got {shape}"
                    )

    @property
    def chains(self) -> int:
        """Number of chains."""
        return self._positions.shape[0]

    @property
    def dim(self) -> int:
        """Number of flat coordinates."""
        return self._positions.shape[-1]

    @property
    def _positions(self) -> np.ndarray:
        if self.x is not None:
            return self.x
        assert self.moments is not None
        return self.moments.mean

    @property
    def named(self) -> dict[str, np.ndarray]:
        """The draws by name; those of a plain array are called "x"."""
        if self.draws is None:
            return {}
        return dict(self.draws) if isinstance(self.draws, Mapping) else {"x": self.draws}

    def __getitem__(self, name: str) -> np.ndarray:
        """Draws of one quantity, (chains, draws, *shape)."""
        if name not in self.named:
            known = ", ".join(self.named) or "none, only moments were kept"
            raise KeyError(f"no draws are called {name!r}; there are {known}")
        return self.named[name]

    @property
    def healthy(self) -> np.ndarray:
        """Chains that weren't frozen, (chains,); all of them if every one was."""
        frozen = self.stats.frozen
        alive = np.ones(self.chains, bool) if frozen is None else ~np.asarray(frozen, bool)
        return alive if alive.any() else np.ones(self.chains, bool)

    @property
    def coordinates(self) -> str:
        """In which coordinates the chains moved: the user's, or others and why."""
        names = [self._flat_names[i] for i in self.stats.leaders]
        return self.stats.coordinates.format(listed(names)) or "as given"

    @functools.cached_property
    def verdict(self) -> Verdict:
        """Whether the draws can be trusted, why not, and what to do."""
        if self.judged is not None:
            return self.judged
        stats, names = self.stats, self._flat_names
        common = {
            "energy_error": stats.energy_error,
            "acceptance": stats.acceptance,
            "frozen": stats.frozen,
            "names": names,
            "exact": stats.exact,
            "cut_short": stats.cut_short,
            "left_behind": stats.left_behind,
            "outward": stats.outward,
            "charted": bool(stats.coordinates),
        }
        if self.x is None:
            assert self.moments is not None
            found = judge_moments(self.moments, energy=stats.energy, **common)
        else:
            found = judge(
                self.x,
                stats.energy,
                gradient=stats.gradient,
                weights=self.weights,
                start_groups=self.start_groups,
                **common,
            )
        notes = list(found.notes)
        reached = stats.reached if stats.interrupted else ""
        if stats.interrupted:
            after = f" after {reached}" if reached else ""
            notes.append(f"the run was interrupted{after}; these are the draws up to there")
        if stats.restarted:
            times = "once" if stats.restarted == 1 else f"{stats.restarted} times"
            notes.append(
                f"in burn-in, {times} a chain that was far off or hardly moved began again beside "
                "another: a mode that no other chain was in would be missed"
            )
        if stats.divergences:
            told = checks.steps(stats.divergences)
            notes.append(f"{told} diverged and were rejected or stopped")
        return dataclasses.replace(found, notes=tuple(notes), interrupted=reached)

    @functools.cached_property
    def _summary(self) -> Summary:
        alive = self.healthy
        left_out = np.flatnonzero(~alive).tolist()
        lines = (
            [f"  note: frozen chains are left out of the table: {left_out}."] if left_out else []
        )
        if self.x is None:
            return self._moment_summary(alive, lines)
        return summarise(
            {name: values[alive] for name, values in self.named.items()},
            self.verdict,
            weights=None if self.weights is None else self.weights[alive],
            dims=self.dims,
            coords=self.coords,
            lines=lines,
        )

    def summary(self) -> Summary:
        """A table that prints: mean, sd, quantiles, ESS, R-hat and the error of each mean."""
        return self._summary

    def to_arviz(self, resample: bool | None = None):
        """ArviZ's InferenceData (a DataTree from ArviZ 1.0), with the verdict in its attributes.

        ArviZ knows no weights: weighted draws are drawn again within each chain in proportion to
        their weights, unless `resample` is False; then "weight" is among the sample statistics.
        """
        from schuss.results.arviz import convert

        return convert(self, resample)

    def plot(self, path: str | os.PathLike | None = None, count: int = 4):
        """Traces, ranks and densities of the worst `count` rows, the energy and the tuning.

        Gives a matplotlib figure, and saves it if `path` is given.
        """
        from schuss.results.figures import overview

        return overview(self, path, count)

    def report(self, path: str | os.PathLike = "report.html"):
        """Write one self-contained HTML page about the run, and give its path."""
        from schuss.results.page import write

        return write(self, path)

    def __repr__(self) -> str:
        kept = f"{self.x.shape[1]} draws" if self.x is not None else "moments"
        title = f" of {self.name}" if self.name else ""
        what = ", ".join(
            f"{name} {list(values.shape[2:])}" if values.ndim > 2 else name
            for name, values in list(self.named.items())[:8]
        )
        what += ", …" if len(self.named) > 8 else ""
        head = f"Posterior{title}: {self.chains} chains, {kept} each, {self.dim} dimensions"
        return "\n".join([head + (f" ({what})" if what else ""), str(self.verdict)])

    @functools.cached_property
    def _flat_names(self) -> tuple[str, ...]:
        if self.draws is not None and not isinstance(self.draws, Mapping):
            names = element_names("x", self.draws.shape[2:])
            if len(names) == self.dim:
                return tuple(names)
        if self.x is not None and isinstance(self.draws, Mapping):
            alive = self.healthy
            draws = {name: values[alive] for name, values in self.named.items()}
            return naming.flat_names(self.x[alive], draws, self.dims, self.coords)
        return tuple(f"x[{i}]" for i in range(self.dim))

    def _moment_summary(self, alive: np.ndarray, lines: list[str]) -> Summary:
        """Means and standard deviations pooled over chains; what moments can't tell is nan."""
        assert self.moments is not None
        share = np.asarray(self.moments.total, float)[alive]
        share = (share / share.sum())[:, None]
        means = np.asarray(self.moments.mean, float)[alive]
        mean = (share * means).sum(axis=0)
        variance = (share * (self.moments.variance[alive] + (means - mean) ** 2)).sum(axis=0)
        values = np.full((self.dim, 8), np.nan)
        values[:, 0], values[:, 1] = mean, np.sqrt(variance)
        if self.moments.ess is not None:
            values[:, 5] = self.moments.ess
            values[:, 7] = values[:, 1] / np.sqrt(np.maximum(self.moments.ess, 1e-12))
        if alive.sum() > 1:
            within = self.moments.variance[alive].mean(axis=0)
            with np.errstate(divide="ignore", invalid="ignore"):
                values[:, 6] = np.sqrt(1 + means.var(axis=0, ddof=1) / within)
        return Summary(self._flat_names, values, self.verdict, tuple(lines))
