"""What a run knows between two windows: immutable records of arrays in the user's coordinates x.

Three coordinate systems have three letters: x the user's, flat and unconstrained; y the
reparametrised ones, x = map(y); z the metric's, y = A z, in which the kernel moves.
"""

import math
from typing import NamedTuple

import numpy as np

from schuss.coordinates import Frame
from schuss.tuning.metric import Metric


class KernelParams(NamedTuple):
    """Parameters of the kernel, in z."""

    step_size: np.ndarray  # ε, (chains,)
    L: float  # length over which a direction is forgotten
    knee: float = math.inf  # log|∇E| in z above which steps are shorter, by `core.local_step`


class Transform(NamedTuple):
    """z → y → x: a metric, and a learned map or none."""

    metric: Metric
    maps: tuple[Frame, ...] = ()


class ChainState(NamedTuple):
    """Where the chains are between two transitions."""

    x: np.ndarray  # (chains, dim)
    energy: np.ndarray  # (chains,), at temperature 1
    grad: np.ndarray  # (chains, dim), ∂E/∂x
    u: np.ndarray  # direction in z, (chains, dim), one more coordinate where dim is 1
    slice_variable: np.ndarray  # (chains,), in [−1, 1]


class Block(NamedTuple):
    """Draws of one window, in order of time, ragged: a chain has `counts` of them.

    Rows beyond a chain's count repeat its last one.
    """

    x: np.ndarray  # (n, chains, dim)
    energy: np.ndarray  # (n, chains)
    grad: np.ndarray  # (n, chains, dim)
    error: np.ndarray  # (n, chains): energy error of the transition to each draw
    acceptance: np.ndarray  # (n, chains): probability of its first try, nan for others
    counts: np.ndarray  # (chains,)
    frozen: bool = False  # whether nothing was adapted from there on


FIELDS: tuple[str, ...] = ("x", "energy", "grad", "error", "acceptance")
"""What a block has a row of for each draw."""


class Moments(NamedTuple):
    """Sums of x − origin and of its square over all transitions since the run settled."""

    states: np.ndarray  # (chains,), how many
    origin: np.ndarray  # (chains, dim)
    total: np.ndarray
    squares: np.ndarray


class Mixing(NamedTuple):
    """Convergence of the draws since the run settled: the worst over x, (x − m)² and E."""

    ess: float = 0.0  # the smaller of bulk and tail, ArviZ's
    rhat: float = float("inf")
    draws: int = 0  # transitions of each chain that this was found from


class Search(NamedTuple):
    """The search for a map."""

    due: int = 0  # gradients from which on it is tried again
    changes: int = 0
    checked: bool = True  # whether the map in use was compared with others on draws made in it


class Visited(NamedTuple):
    """Locations visited in burn-in, kept to check that the draws cover every mode that was met."""

    x: np.ndarray  # (n, dim)
    energy: np.ndarray
    mass: np.ndarray  # log of what is at least around each, as `local_mass.log_mass`

    def joined(self, others: "Visited") -> "Visited":
        """These locations and then others."""
        return Visited(*map(np.concatenate, zip(self, others, strict=True)))


class Facts(NamedTuple):
    """What only the run knows, lookaheads included: for the verdict."""

    start: np.ndarray  # (dim,), the mean of the starts
    lowest: float  # energy met so far
    lowest_x: np.ndarray  # and where
    visited: Visited  # by chains that were restarted, or before cooling
    restarts: int = 0
    divergences: int = 0
    walls: bool = False  # whether a step met an infinite energy


class Counts(NamedTuple):
    """What a run has taken."""

    gradients: int = 0  # of all chains
    steps: int = 0  # of each chain
    windows: int = 0


class WindowRow(NamedTuple):
    """A line of the history."""

    gradients: int
    phase: str
    steps: int
    step_size: float
    L: float
    rank: int
    acceptance: float  # of first tries
    error: float  # E[W²]/d of whole steps, W the energy error
    energy: float
    ess: float
    rhat: float


class RunState(NamedTuple):
    """All that a run knows."""

    chains: ChainState
    transform: Transform
    params: KernelParams
    facts: Facts
    counts: Counts
    temperature: float = 1.0
    blocks: tuple[Block, ...] = ()  # since burn-in; the first is its last window
    settled: int = 1  # the first block after the last large change
    steady: int = 0  # windows in a row without one, ε included
    thin: int = 1  # transitions to a row of the blocks since then
    transitions: int | np.ndarray = 0  # of each chain since then
    moments: Moments | None = None  # where they are wanted
    steps: int = 16  # of the next window
    frozen: bool = False
    mixing: Mixing = Mixing()
    search: Search = Search()
    history: tuple[WindowRow, ...] = ()

    @property
    def settled_blocks(self) -> tuple[Block, ...]:
        """Those whose draws count."""
        return self.blocks[self.settled :]

    def unsettled(self) -> "RunState":
        """After a large change: none of the draws so far count."""
        return self._replace(
            settled=len(self.blocks), mixing=Mixing(), moments=None, thin=1, transitions=0
        )

    @property
    def phase(self) -> str:
        """What the run is doing."""
        if len(self.blocks) == 1:
            return "burn-in"
        return "sampling" if self.frozen else "adapting"


def rows(blocks: tuple[Block, ...]) -> int:
    """Draws of each chain, of the one with the fewest."""
    return int(sum(block.counts for block in blocks).min()) if blocks else 0


def draws(
    blocks: tuple[Block, ...],
    *names: str,
    at: np.ndarray | slice = slice(None),
    columns: np.ndarray | slice = slice(None),
) -> list[np.ndarray]:
    """Fields of several blocks as (n, chains, …), of each chain its first n draws.

    Of these the rows `at`, in order, and of positions and gradients some `columns`.
    """
    size, chains = rows(blocks), len(blocks[0].counts)
    wanted = np.arange(size)[at]
    place = np.full(size + 1, -1)
    place[wanted] = np.arange(len(wanted))
    parts = [[getattr(block, name) for block in blocks] for name in names]
    # A chain's draws one after the other, as results have them.
    found = [np.empty((chains, len(wanted), *_tail(part[0], columns))) for part in parts]
    first = np.zeros(chains, int)
    for k, block in enumerate(blocks):
        t = np.arange(len(block.energy))[:, None]
        row = place[np.where(t < block.counts, np.minimum(first + t, size), size)]
        t, chain = np.nonzero(row >= 0)
        for part, values in zip(found, parts, strict=True):
            value = values[k] if part.ndim == 2 else values[k][..., columns]
            part[chain, row[t, chain]] = value[t, chain]
        first = first + block.counts
    return [part.swapaxes(0, 1) for part in found]


def _tail(values: np.ndarray, columns: np.ndarray | slice) -> tuple[int, ...]:
    return values[0, 0, columns].shape if values.ndim == 3 else ()


def thinned(block: Block, every: int, before: int | np.ndarray = 0) -> Block:
    """Every so many-th draw of each chain, counted from the first of as many `before` them."""
    if every == 1:
        return block
    t = np.arange(len(block.energy))[:, None]
    kept = (t < block.counts) & ((before + t + 1) % every == 0)
    counts = kept.sum(axis=0)
    at = np.argsort(~kept, axis=0, kind="stable")
    at = np.take_along_axis(
        at, np.minimum(np.arange(counts.max())[:, None], np.maximum(counts - 1, 0)), axis=0
    )
    each = np.arange(len(counts))
    kept_ones = {name: getattr(block, name)[at, each] for name in FIELDS}
    return block._replace(**kept_ones, counts=counts)


def sealed(value):
    """The same record, none of whose arrays can be written to any more."""
    if isinstance(value, tuple):
        for part in value:
            sealed(part)
    elif isinstance(value, np.ndarray):
        value.flags.writeable = False
    return value
