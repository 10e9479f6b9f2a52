"""The store: a state that is replaced and rows that are appended, in one commit or not at all."""

import contextlib
import os
import weakref
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from schuss.checkpoint.chunks import append, key, stored, sweep
from schuss.checkpoint.disk import INNER, PARTIAL, lock, sync
from schuss.checkpoint.errors import FULL, CheckpointError, failed
from schuss.checkpoint.files import (
    REMEDY,
    go_back,
    has_head,
    inside,
    newest,
    put,
    read,
    replace_head,
    sealed,
)
from schuss.checkpoint.identity import RECORD, attributes, check_identity, check_ours, found, lost
from schuss.checkpoint.record import Record, as_json, pack, unpack
from schuss.checkpoint.rows import Rows
from schuss.checkpoint.spec import Spec, check_rows, new_spec
from schuss.checkpoint.zarr_view import NODE, new_group, publish


class Checkpoint:
    """One run on disk, held by one process until it is closed."""

    def __init__(self, path: Path, lock: int, along_first: frozenset[str]):
        self.path = path
        self._release = weakref.finalize(self, os.close, lock)
        self._along_first = along_first
        self._specs: dict[str, Spec] = {}
        self._tails: dict[str, np.ndarray] = {}
        self._checksums: dict[str, np.ndarray] = {}
        self._about = 0
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
            inside(path, INNER).mkdir(parents=True, exist_ok=True)
            handle = lock(path, inside(path, f"{INNER}/lock"))
            checkpoint = cls(path, handle, frozenset(along_first))
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
        if not record.commits:
            return None
        return record.state, {name: np.asarray(self.rows(name)) for name in self._specs}

    def rows(self, name: str) -> Rows:
        """The committed rows of one array, read when asked for."""
        spec = self._spec(name)
        return Rows(self.path, name, spec, self._tails[name], self._checksums[name])

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
        chunks, tails, checksums = {}, dict(self._tails), dict(self._checksums)
        for name, block in fresh.items():
            chunks[name], tails[name], specs[name] = append(block, specs[name], tails.get(name))
            more = [zlib.crc32(stored(chunk, specs[name])) for chunk in chunks[name]]
            before = checksums.get(name, np.empty(0, "<u4"))
            checksums[name] = np.append(before, np.array(more, "<u4"))
        changed = [name for name in specs if specs[name] != self._specs.get(name)]
        counts = {name: len(filled) for name, filled in chunks.items()}
        record = Record(self.commits + 1, self._about, dict(state), specs, tails, checksums, counts)
        packed = pack(record)
        try:
            for name in fresh:
                self._write_chunks(name, specs[name], chunks[name])
            self._replace(packed)
            self._take(record)
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
            there = attributes(identity)
            new_group(self.path, there)
            sync(self.path)
            sync(self.path.parent)
        self._about = zlib.crc32(inside(self.path, NODE).read_bytes())
        if has_head(self.path, RECORD):
            self._resume(lambda: check_identity(self.path, there["identity"], identity))
        elif lost(self.path):
            raise CheckpointError(f"{self.path / RECORD} is missing beside its rows; {REMEDY}")
        else:
            check_identity(self.path, there["identity"], identity)
            self._replace(pack(Record(0, self._about, {}, {}, {}, {}, {})))
        self._tidy(self._specs, self._specs)

    def _replace(self, packed):
        replace_head(self.path, RECORD, sealed(packed), partial=PARTIAL, keep=self.commits > 0)

    def _resume(self, check=lambda: None):
        """Go by the newest whole commit, when `check` lets us."""
        record, damaged = newest(self.path, RECORD, self._whole_record)
        check()
        if damaged:
            go_back(self.path, RECORD)
        self._take(record)
        return record

    def _take(self, record):
        self._specs, self._tails, self._checksums = record.specs, record.tails, record.checksums
        self.commits = record.commits

    def _whole_record(self, packed):
        """A record, when the chunks that it was the first to list are whole."""
        try:
            record = unpack(packed)
        except Exception as error:
            raise CheckpointError(
                f"{self.path / RECORD} is damaged or isn't a record of a run ({error}); {REMEDY}"
            ) from error
        if record.about != self._about:
            raise CheckpointError(f"{self.path / NODE} is damaged; {REMEDY}")
        for name, spec in record.specs.items():
            inside(self.path, name)
            for index in range(max(0, spec.full - record.fresh[name]), spec.full):
                checksum = int(record.checksums[name][index])
                read(self.path, f"{name}/{key(spec, index)}", checksum)
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
        folder = inside(self.path, name)
        first = spec.full - len(chunks)
        for index, chunk in enumerate(chunks, first):
            folder.mkdir(parents=True, exist_ok=True)
            put(self.path, f"{name}/{key(spec, index)}", stored(chunk, spec), partial=PARTIAL)
        if len(chunks):
            parents = folder.parents[: name.count("/") + 1] if not first else ()
            for parent in (folder, *parents):
                sync(parent)

    def _tidy(self, changed, dropped):
        # No commit depends on it: it isn't waited for, and a full disk may leave it for later.
        with contextlib.suppress(OSError):
            for name in changed:
                publish(self.path, name, self._specs[name], self._tails[name])
            for name in dropped:
                sweep(inside(self.path, name), self._specs[name])
