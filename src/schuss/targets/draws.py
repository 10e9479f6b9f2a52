"""Where chains start, and exact draws by rejection."""

from collections.abc import Callable, Sequence

import numpy as np

from schuss.targets.target import Draw


def normal_start(dim: int, sd: float = 1.0, mean: Sequence[float] | float = 0.0) -> Draw:
    """Chains at N(mean, sd² I)."""
    return lambda rng, n: mean + sd * rng.standard_normal((n, dim))


def uniform_start(dim: int, lower: float, upper: float) -> Draw:
    """Chains uniform in the cube [lower, upper]^dim."""
    return lambda rng, n: rng.uniform(lower, upper, (n, dim))


def point_start(*points: Sequence[float]) -> Draw:
    """Chain i at points[i mod len(points)]."""
    return lambda rng, n: np.asarray(points, dtype=np.float64)[np.arange(n) % len(points)]


def rejection(propose: Draw, accept: Callable[[np.ndarray], np.ndarray]) -> Draw:
    """Draws from q(x) a(x), up to a constant, where `propose` draws from q and 0 ≤ a ≤ 1."""

    def sample(rng: np.random.Generator, n: int) -> np.ndarray:
        kept = propose(rng, 0)
        while len(kept) < n:
            x = propose(rng, max(2 * n, 1000))
            kept = np.concatenate([kept, x[rng.random(len(x)) < accept(x)]])
        return kept[:n]

    return sample
