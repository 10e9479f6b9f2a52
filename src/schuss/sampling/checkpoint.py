"""A run on disk: its state after every window, and its draws as rows that are appended.

The rows are flat positions in the user's unconstrained coordinates, with energies and gradients,
of all transitions since burn-in that are kept.
"""

import contextlib
import importlib.metadata
import math
import operator
from collections.abc import Iterator
from typing import Any

import numpy as np

from schuss.checkpoint.errors import understood
from schuss.coordinates import Conditional, Curved, Diagonal, Hierarchical, LowRank
from schuss.sampling import state as records
from schuss.sampling.initialise import evaluate
from schuss.sampling.run import Plan
from schuss.sampling.state import FIELDS, Block, RunState

RECORDS = {
    kind.__name__: kind
    for kind in (
        *(records.RunState, records.ChainState, records.Transform, records.KernelParams),
        *(records.Facts, records.Counts, records.Moments, records.Mixing, records.Search),
        *(records.WindowRow, records.Visited, Diagonal, LowRank, Conditional, Curved, Hierarchical),
    )
}
"""What a state consists of: nothing else is made from a file."""


class Saved:
    """A function that commits a state; `found` is the state there was, None where there is none."""

    def __init__(self, store: Any, path: Any):
        self.store = store
        there = store.load()
        with understood(path):
            self.found = None if there is None else rebuilt(*there)
        self.rows = 0 if self.found is None else _aligned(self.found.blocks)
        self.blocks = () if self.found is None else self.found.blocks

    def __call__(self, state: RunState) -> None:
        """Commit it, with the draws that are new."""
        if state is self.found:
            return
        same = len(self.blocks) <= len(state.blocks) and all(
            map(operator.is_, self.blocks, state.blocks)
        )
        if self.rows and not same:  # blocks that were thinned or dropped are stored anew
            for name in FIELDS:
                self.store.truncate(name, self.rows)
            self.rows = 0
        self.blocks = state.blocks
        new, kept = flattened(state, self.rows)
        self.store.commit(kept, new)
        self.rows = _aligned(state.blocks)


class NotSaved:
    """Where no checkpoint is wanted."""

    found = None

    def __call__(self, state: RunState) -> None:
        """Nothing."""


@contextlib.contextmanager
def saving(path: Any, plan: Plan, x: np.ndarray, settings: dict) -> Iterator[Any]:
    """A function that commits states, and the last one of a run that was begun before."""
    if path is None:
        yield NotSaved()
        return
    from schuss.checkpoint import Checkpoint

    with Checkpoint.open(path, identity(plan, x, settings)) as store:
        yield Saved(store, path)


def identity(plan: Plan, x: np.ndarray, settings: dict) -> dict[str, Any]:
    """What makes two runs the same run: the model where it starts, and all settings."""
    from schuss.checkpoint import fingerprint

    # At places that neither the seed nor the number of chains has a part in.
    problem = plan.problem
    place = np.random.default_rng(0).standard_normal(problem.dim)
    places = [np.broadcast_to(scale * place, x.shape) for scale in (0.1, 1.0)]
    energies = [evaluate(problem, x)[0][:1] for x in places]
    return {
        "model": fingerprint(np.concatenate(energies), problem.dim),
        "start": fingerprint(evaluate(problem, x)[0], problem.dim),
        "dim": problem.dim,
        "chains": len(x),
        "seed": plan.seed,
        "engine": problem.engine.name,
        "dtype": str(problem.x.dtype),
        "coordinates": "flat, unconstrained",
        "schuss": importlib.metadata.version("schuss"),
        **settings,
    }


def flattened(state: RunState, rows: int = 0) -> tuple[dict, dict]:
    """New rows (chains, n, …) after the first so many, and all else by name."""
    blocks, arrays = state.blocks, {}
    tree = _flatten(state._replace(blocks=()), "state", arrays)
    counts = np.stack([block.counts for block in blocks])
    kept = arrays | {
        "tree": tree,
        "counts": counts,
        "frozen": np.array([block.frozen for block in blocks]),
    }
    new, end, longest = {}, _aligned(blocks), int(counts.sum(axis=0).max())
    for name in FIELDS:
        sequence = _sequences(blocks, name, rows, longest)
        new[name] = np.swapaxes(sequence[: end - rows], 0, 1)
        kept[f"rest.{name}"] = sequence[end - rows :]
    return new if end > rows else {}, kept


def rebuilt(kept: dict[str, Any], rows: dict[str, np.ndarray]) -> RunState:
    """The state that was flattened."""
    counts, frozen = kept["counts"], kept["frozen"]
    values = {}
    for name in FIELDS:
        rest = kept[f"rest.{name}"]
        values[name] = rest
        if name in rows:
            values[name] = np.concatenate([np.swapaxes(rows[name], 0, 1), rest])
    blocks, start = [], np.zeros(counts.shape[1], int)
    each = np.arange(counts.shape[1])
    for count, late in zip(counts, frozen, strict=True):
        place = np.minimum(np.arange(count.max())[:, None], np.maximum(count - 1, 0)) + start
        made = {name: values[name][place, each] for name in FIELDS}
        blocks.append(Block(**made, counts=count, frozen=bool(late)))
        start = start + count
    return _rebuild(kept["tree"], kept)._replace(blocks=tuple(blocks))


def _aligned(blocks: tuple[Block, ...]) -> int:
    return records.rows(blocks)


def _sequences(blocks: tuple[Block, ...], name: str, first: int, end: int) -> np.ndarray:
    """Rows `first` to `end` of each chain's own sequence; a shorter one repeats its last."""
    valid = np.concatenate([np.arange(len(b.energy))[:, None] < b.counts for b in blocks])
    order = np.argsort(~valid, axis=0, kind="stable")
    at = np.minimum(np.arange(first, end)[:, None], valid.sum(axis=0) - 1)
    values = np.concatenate([getattr(block, name) for block in blocks])
    return values[np.take_along_axis(order, at, axis=0), np.arange(valid.shape[1])]


def _flatten(value: Any, path: str, arrays: dict[str, np.ndarray]) -> Any:
    """What JSON can hold, with arrays by path."""
    if isinstance(value, np.ndarray):
        arrays[path] = value
        return {"array": path}
    if type(value).__name__ in RECORDS:
        fields = zip(value._fields, value, strict=True)
        return {"record": type(value).__name__} | {
            name: _flatten(part, f"{path}.{name}", arrays) for name, part in fields
        }
    if isinstance(value, tuple):
        return [_flatten(part, f"{path}.{k}", arrays) for k, part in enumerate(value)]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    return value


def _rebuild(node: Any, arrays: dict[str, Any]) -> Any:
    """The value of a node; names of records that aren't known are an error."""
    if isinstance(node, list):
        return tuple(_rebuild(part, arrays) for part in node)
    if not isinstance(node, dict):
        return node
    if "array" in node:
        return arrays[node["array"]]
    if "float" in node:
        return float(node["float"])
    kind = RECORDS[node["record"]]
    return kind(**{name: _rebuild(part, arrays) for name, part in node.items() if name != "record"})
