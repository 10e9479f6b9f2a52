"""The chains that decisions look at, when there are many."""

import dataclasses

import numpy as np

from schuss.diagnostics.vectorised import Pair, ess_and_rhat

MOST = 64
"""Chains whose positions are looked at. From 64 the metric, the steps and the length of
refreshment are known well enough, and more would only take time between two calls of the compiled
loop. What a single chain can do to a run, be lost or diverge, is looked for in all of them, and so
is all that the verdict tells."""

GOLDEN = 0.6180339887498949


@dataclasses.dataclass(frozen=True)
class Witnesses:
    """Chains that stand for all, and how many each of them stands for."""

    chosen: slice | np.ndarray
    each: float

    @classmethod
    def among(cls, chains: int) -> "Witnesses":
        """All chains, or one from each of `MOST` equal parts.

        Not at equal distances, where starts that repeat in a cycle would show only some of them.
        """
        if chains <= MOST:
            return cls(slice(None), 1.0)
        bounds = np.arange(MOST + 1) * chains // MOST
        within = np.arange(MOST) * GOLDEN % 1
        return cls(bounds[:-1] + (within * np.diff(bounds)).astype(int), chains / MOST)

    def of(self, values: np.ndarray) -> np.ndarray:
        """Their part of (n, chains, …)."""
        return values[:, self.chosen]

    def sizes_and_rhat(self, x: np.ndarray, energy: np.ndarray) -> Pair:
        """Effective sample sizes of all chains' draws, and R-hat, of x, (x − m)² and E.

        From positions (n, witnesses, dim), and the energies (n, chains) of all chains: they tell
        where one is lost.
        """
        squares = (x - x.mean(axis=(0, 1))) ** 2
        columns = np.concatenate([x, squares, self.of(energy)[..., None]], axis=2)
        sizes, rhat = ess_and_rhat(columns)
        if self.each == 1:
            return Pair(sizes, rhat)
        every = ess_and_rhat(energy[..., None])
        sizes = np.concatenate([self.each * sizes[:-1], every.ess])
        return Pair(sizes, np.concatenate([rhat[:-1], every.rhat]))
