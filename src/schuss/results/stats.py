"""What a run records beside its draws."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

DIVERGED = 1000.0
"""A step with a larger energy error has diverged."""


@dataclasses.dataclass(frozen=True)
class Moments:
    """Mean and variance of each chain in the flat coordinates, where no draws were kept."""

    mean: np.ndarray  # (chains, dim)
    variance: np.ndarray  # (chains, dim)
    total: np.ndarray  # (chains,): sum of the weights, or number of states
    ess: np.ndarray | None = None  # (dim,), where the sampler could tell


@dataclasses.dataclass(frozen=True)
class Stats:
    """Arrays are (chains, draws), a value for each draw that was kept."""

    energy: np.ndarray  # E at each draw, up to a constant, in the precision of the run
    energy_error: np.ndarray | None = None  # change of W over the step or the proposal
    acceptance: np.ndarray | None = None  # nan where undecided; None for unadjusted sampling
    adapting: np.ndarray | None = None  # whether parameters were still adapted, bool
    gradient: np.ndarray | None = None  # ∇E at each draw, (chains, draws, dim), flat
    step_size: Any = float("nan")  # a number, or (chains,)
    refresh: float = float("nan")
    gradients: Mapping[str, int] = dataclasses.field(default_factory=dict)  # by phase, all chains
    seconds: Mapping[str, float] = dataclasses.field(default_factory=dict)  # by phase
    frozen: np.ndarray | None = None  # (chains,) bool
    divergences: int = 0
    restarted: int = 0  # times that a chain began again beside another one in burn-in
    thin: int = 1
    history: tuple[Mapping[str, Any], ...] = ()  # rows of the tuning; any key may be missing
    exact: bool = True
    cut_short: bool = False  # whether the run ended before its parameters had settled
    sampler: str = ""
    coordinates: str = ""  # what made others than the user's better, {} for the names of `leaders`
    leaders: tuple[int, ...] = ()  # flat coordinates that the others were described by
    seed: int = 0
    engine: str = ""
    interrupted: bool = False
    reached: str = ""  # "101 of 5000 draws a chain": how far it came of what was asked for
    left_behind: float = 0.0  # mass of a place that chains were at and draws aren't, against theirs
    outward: float = 1.0  # largest upper quartile of (x − x₀)·∇E/d, start x₀, of any chain
