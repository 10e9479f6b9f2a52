"""The store: a state that is replaced and rows that are appended, in one commit or not at all."""

import contextlib
import os
import weakref
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from schuss.checkpoint.chunks import append, key, stored, sweep
from schuss.checkpoint.disk import INNER, lock, sync_folder, write
from schuss.checkpoint.errors import FULL, CheckpointError, failed
from schuss.checkpoint.identity import attributes, check_identity, check_ours, found
from schuss.checkpoint.record import Record, as_json, pack, unpack
from schuss.checkpoint.rows import Rows
from schuss.checkpoint.spec import Spec, check_rows, new_spec
from schuss.checkpoint.zarr_view import new_group, publish

RECORD = "commit.zip"


class Checkpoint:
    """One run on disk, held by one process until it is closed."""

    def __init__(self, path: Path, lock: int, along_first: frozenset[str]):
        self.path = path
        self._release = weakref.finalize(self, os.close, lock)
        self._along_first = along_first
        self._specs: dict[str, Spec] = {}
        self._tails: dict[str, np.ndarray] = {}
        self._staged: dict[str, int] = {}
        self.commits = 0

    @classmethod
    def open(
        cls, path: str | os.PathLike, identity: dict, *, along_first: Iterable[str] = ()
    ) -> "Checkpoint":
        """Create a checkpoint, or open the one there is if it is of the same `identity`.

        Rows are along axis 1, after the chains; along axis 0 in one-dimensional arrays and in
        those named in `along_first`. A name may have slashes: "warmup/x" is in a subgroup.
        """
        path, identity = Path(path), as_json("identity", identity)
        check_ours(path)
        try:
            (path / INNER).mkdir(parents=True, exist_ok=True)
            checkpoint = cls(path, lock(path), frozenset(along_first))
            try:
                checkpoint._begin(identity)
            except BaseException:
                checkpoint.close()
                raise
        except CheckpointError:
            raise
        except OSError as error:
            raise failed(error, f"path {path} can't be written ({error}); pass another") from error
        return checkpoint

    def load(self) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
        """The state and the rows of the last commit; None when there is none yet."""
        record = self._resume()
        if record is None:
            return None
        return record.state, {name: np.asarray(self.rows(name)) for name in self._specs}

    def rows(self, name: str) -> Rows:
        """The committed rows of one array, read when asked for."""
        return Rows(self.path / name, self._spec(name), self._tails[name])

    def truncate(self, name: str, keep_from: int) -> None:
        """Drop the committed rows before `keep_from`, as part of the next commit."""
        spec = self._spec(name)
        if not 0 <= keep_from <= spec.end - spec.start:
            raise ValueError(
                f"keep_from must be between 0 and {spec.end - spec.start}, the committed rows "
                f"of {name!r}, got {keep_from!r}"
            )
        self._staged[name] = spec.start + int(keep_from)

    def commit(self, state: Mapping[str, Any], rows: Mapping[str, np.ndarray]) -> None:
        """Replace the state and append rows, both or neither.

        `state` holds NumPy arrays, which come back as they were, and what JSON can hold. After an
        error `load` gives the commit before, or this one where it had been made all the same.
        """
        if not self._release.alive:
            raise ValueError("this checkpoint is closed; open it again to commit")
        specs = dict(self._specs)
        for name, begin in self._staged.items():
            specs[name] = specs[name]._replace(start=begin)
        fresh = {name: np.asarray(block) for name, block in rows.items()}
        for name, block in fresh.items():
            specs[name] = specs.get(name) or new_spec(name, block, specs, self._along_first)
            check_rows(name, block, specs[name])
        chunks, tails = {}, dict(self._tails)
        for name, block in fresh.items():
            chunks[name], tails[name], specs[name] = append(block, specs[name], tails.get(name))
        changed = [name for name in specs if specs[name] != self._specs.get(name)]
        record = Record(self.commits + 1, dict(state), specs, tails)
        packed = pack(record)
        try:
            for name in fresh:
                self._write_chunks(name, specs[name], chunks[name])
            write(self.path, self.path / INNER / RECORD, packed)
            sync_folder(self.path / INNER)
            self._specs, self._tails, self.commits = specs, tails, record.commits
        except BaseException as error:
            # Whether it was made before this came is for the disk to say.
            self._resume()
            if not isinstance(error, OSError):
                raise
            remedy = "make room" if error.errno in FULL else "see to it"
            raise failed(
                error,
                f"{self.path} couldn't take another commit ({error.strerror or error}); "
                f"{self._draws()} draws are safe in {self.path.name}: {remedy} and run again to go "
                "on from there",
            ) from error
        dropped, self._staged = list(self._staged), {}
        self._tidy(changed, dropped)

    def close(self) -> None:
        """Let another process have it."""
        self._release()

    def __enter__(self) -> "Checkpoint":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def _begin(self, identity):
        there = found(self.path)
        if there is None:
            new_group(self.path, attributes(identity))
            sync_folder(self.path)
            sync_folder(self.path.parent)
        else:
            check_identity(self.path, there["identity"], identity)
        self._resume()
        self._tidy(self._specs, self._specs)

    def _resume(self):
        """Go by the record on the disk, where there is one."""
        path = self.path / INNER / RECORD
        if not path.exists():
            return None
        try:
            record = unpack(path.read_bytes())
        except Exception as error:
            raise CheckpointError(
                f"{path} is damaged or isn't a record of a run ({error}); restore it from a copy, "
                f"or delete {self.path} to begin again"
            ) from error
        self._specs, self._tails, self.commits = record.specs, record.tails, record.commits
        return record

    def _draws(self):
        chains = [spec for spec in self._specs.values() if spec.axis == 1]
        counts = [spec.end - spec.start for spec in chains or self._specs.values()]
        return max(counts, default=0)

    def _spec(self, name):
        if name not in self._specs:
            there = ", ".join(sorted(self._specs)) or "none"
            raise KeyError(f"no rows are called {name!r}; there are: {there}")
        return self._specs[name]

    def _write_chunks(self, name, spec, chunks):
        folder = self.path / name
        first = spec.end // spec.chunk - len(chunks)
        for index, chunk in enumerate(chunks, first):
            folder.mkdir(parents=True, exist_ok=True)
            write(self.path, folder / key(spec, index), stored(chunk, spec))
        if len(chunks):
            parents = folder.parents[: name.count("/") + 1] if not first else ()
            for parent in (folder, *parents):
                sync_folder(parent)

    def _tidy(self, changed, dropped):
        # No commit depends on it: it isn't waited for, and a full disk may leave it for later.
        with contextlib.suppress(OSError):
            for name in changed:
                publish(self.path, name, self._specs[name], self._tails[name])
            for name in dropped:
                sweep(self.path / name, self._specs[name])
