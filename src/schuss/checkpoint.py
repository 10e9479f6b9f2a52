"""A run on disk that survives being killed: its state and all its rows, committed together.

The folder is a zarr group (format 3). Every array of rows in it is cut into chunks along its rows,
one file each. `checkpoint/commit.zip` holds the state, how many rows count, and those rows that
don't fill a chunk yet. A commit writes the chunks that are now full, then replaces that file: from
this moment it is made. A chunk that counts is never written again, so a kill can't harm it. A copy
of the rows that fill no chunk, and the arrays' shapes, follow for those who read with zarr.
"""

import contextlib
import errno
import hashlib
import io
import json
import math
import os
import socket
import weakref
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

FORMAT = 1
CHUNK_BYTES = 2**20
CHUNK_ROWS = 1024
"""A chunk holds at most so many bytes, or one row, and so many rows."""

DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)
"""Those that rows may have, as NumPy and zarr call them."""

INNER = "checkpoint"
FULL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))
GROUP = {"zarr_format": 3, "node_type": "group"}
PLAIN_GROUP = GROUP | {"attributes": {}}


class CheckpointError(OSError):
    """A checkpoint that can't be written, read or shared."""


class Spec(NamedTuple):
    """An array of rows: rows `start` to `end` along `axis` are there."""

    axis: int
    start: int
    end: int
    chunk: int  # rows in a chunk
    row: list[int]  # shape of one row, the growing axis left out
    dtype: str

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the rows that are there."""
        return self.shaped(self.end - self.start)

    def shaped(self, rows: int) -> tuple[int, ...]:
        """Shape of so many rows."""
        return (*self.row[: self.axis], rows, *self.row[self.axis :])


class Record(NamedTuple):
    """What a commit holds beside full chunks."""

    commits: int
    state: dict[str, Any]
    specs: dict[str, Spec]
    tails: dict[str, np.ndarray]  # rows that fill no chunk, the rows first


class Rows:
    """The committed rows of one array. Indexing along its rows reads only those asked for."""

    def __init__(self, folder: Path, spec: Spec, tail: np.ndarray):
        self._folder, self._spec, self._tail = folder, spec, tail
        self.shape, self.dtype, self.ndim = spec.shape, np.dtype(spec.dtype), len(spec.shape)

    def read(self, begin: int, end: int) -> np.ndarray:
        """Rows begin to end, counted from the first that is there."""
        spec = self._spec
        out = np.empty(spec.shaped(end - begin), self.dtype)
        rows = np.moveaxis(out, spec.axis, 0)
        first, last = spec.start + begin, spec.start + end
        for index in range(first // spec.chunk, -(-last // spec.chunk)):
            at = index * spec.chunk
            low, high = max(first, at), min(last, at + spec.chunk)
            full = at + spec.chunk <= spec.end
            chunk = _read_chunk(self._folder, spec, index) if full else self._tail
            rows[low - first : high - first] = chunk[low - at : high - at]
        return out

    def __getitem__(self, key: Any) -> np.ndarray:
        axis, rows = self._spec.axis, self.shape[self._spec.axis]
        keys = list(key if isinstance(key, tuple) else (key,))
        plain = all(isinstance(part, slice | int | np.integer) for part in keys)
        if not plain or not axis < len(keys) <= self.ndim:
            return np.asarray(self)[key]
        chosen = range(rows)[keys[axis]]
        if isinstance(chosen, int):
            keys[axis] = 0
            return self.read(chosen, chosen + 1)[tuple(keys)]
        if not len(chosen):
            return self.read(0, 0)[tuple(keys)]
        low, high = min(chosen[0], chosen[-1]), max(chosen[0], chosen[-1])
        keys[axis] = slice(None, None, chosen.step)
        return self.read(low, high + 1)[tuple(keys)]

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        whole = self.read(0, self.shape[self._spec.axis])
        return whole if dtype is None else whole.astype(dtype, copy=False)

    def __repr__(self) -> str:
        return f"<Rows {self.shape} {self.dtype} in {self._folder}>"


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
        path, identity = Path(path), _as_json("identity", identity)
        _check_ours(path)
        try:
            (path / INNER).mkdir(parents=True, exist_ok=True)
            checkpoint = cls(path, _lock(path), frozenset(along_first))
            try:
                checkpoint._begin(identity)
            except BaseException:
                checkpoint.close()
                raise
        except CheckpointError:
            raise
        except OSError as error:
            raise _failed(error, f"path {path} can't be written ({error}); pass another") from error
        return checkpoint

    def load(self) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
        """The state and the rows of the last commit; None when there is none yet."""
        record = self._resume()
        if record is None:
            return None
        return record.state, {name: np.asarray(self.rows(name)) for name in self._specs}

    def rows(self, name: str) -> Rows:
        """The committed rows of one array, read when asked for."""
        if name not in self._specs:
            there = ", ".join(sorted(self._specs)) or "none"
            raise KeyError(f"no rows are called {name!r}; there are: {there}")
        return Rows(self.path / name, self._specs[name], self._tails[name])

    def truncate(self, name: str, keep_from: int) -> None:
        """Drop the committed rows before `keep_from`, as part of the next commit."""
        spec = self.rows(name)._spec
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
            specs[name] = specs.get(name) or self._new_spec(name, block, specs)
            _check_rows(name, block, specs[name])
        chunks, tails = {}, dict(self._tails)
        for name, block in fresh.items():
            chunks[name], tails[name], specs[name] = _append(block, specs[name], tails.get(name))
        changed = [name for name in specs if specs[name] != self._specs.get(name)]
        record = Record(self.commits + 1, dict(state), specs, tails)
        packed = _pack(record)
        try:
            for name in fresh:
                self._write_chunks(name, specs[name], chunks[name])
            self._write(self.path / INNER / "commit.zip", packed)
            _sync_folder(self.path / INNER)
            self._specs, self._tails, self.commits = specs, tails, record.commits
        except BaseException as error:
            # Whether it was made before this came is for the disk to say.
            self._resume()
            if not isinstance(error, OSError):
                raise
            remedy = "make room" if error.errno in FULL else "see to it"
            raise _failed(
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
        found = _root(self.path)
        if found is None:
            attributes = {"schuss_checkpoint": FORMAT, "identity": identity}
            self._write(self.path / INNER / "zarr.json", _json(PLAIN_GROUP))
            self._write(self.path / "zarr.json", _json(GROUP | {"attributes": attributes}))
            _sync_folder(self.path)
            _sync_folder(self.path.parent)
        else:
            _check_identity(self.path, found["identity"], identity)
        self._resume()
        self._tidy(self._specs, self._specs)

    def _resume(self):
        """Go by the record on the disk, where there is one."""
        path = self.path / INNER / "commit.zip"
        if not path.exists():
            return None
        try:
            record = _unpack(path.read_bytes())
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

    def _new_spec(self, name, block, others):
        _check_name(name, others)
        if block.dtype.name not in DTYPES:
            raise TypeError(
                f"rows[{name!r}] must be of one of {', '.join(DTYPES)}, got dtype {block.dtype}"
            )
        if not block.ndim:
            raise ValueError(f"rows[{name!r}] must have an axis of rows, got a single value")
        axis = 0 if block.ndim == 1 or name in self._along_first else 1
        row = [*block.shape[:axis], *block.shape[axis + 1 :]]
        if 0 in row:
            raise ValueError(f"rows[{name!r}] must not have empty rows, got shape {block.shape}")
        size = math.prod(row) * block.dtype.itemsize
        chunk = min(CHUNK_ROWS, max(1, CHUNK_BYTES // size))
        return Spec(axis, 0, 0, chunk, row, block.dtype.newbyteorder("<").str)

    def _write_chunks(self, name, spec, chunks):
        folder = self.path / name
        first = spec.end // spec.chunk - len(chunks)
        for index, chunk in enumerate(chunks, first):
            folder.mkdir(parents=True, exist_ok=True)
            self._write(folder / _key(spec, index), _stored(chunk, spec))
        if len(chunks):
            parents = folder.parents[: name.count("/") + 1] if not first else ()
            for parent in (folder, *parents):
                _sync_folder(parent)

    def _tidy(self, changed, dropped):
        # No commit depends on it: it isn't waited for, and a full disk may leave it for later.
        with contextlib.suppress(OSError):
            for name in changed:
                self._publish(name)
            for name in dropped:
                self._sweep(name)

    def _publish(self, name):
        """What zarr reads: the rows that fill no chunk, the array's shape, the groups it is in."""
        spec, tail, folder = self._specs[name], self._tails[name], self.path / name
        folder.mkdir(parents=True, exist_ok=True)
        if len(tail):
            room = np.full((spec.chunk - len(tail), *spec.row), _fill(spec.dtype), spec.dtype)
            data = _stored(np.concatenate([tail, room]), spec)
            self._write(folder / _key(spec, spec.end // spec.chunk), data, wait=False)
        for parent in list(Path(name).parents)[:-1]:
            if not (self.path / parent / "zarr.json").exists():
                self._write(self.path / parent / "zarr.json", _json(PLAIN_GROUP))
        self._write(folder / "zarr.json", _json(_metadata(name, spec)), wait=False)

    def _sweep(self, name):
        """Delete the chunks whose rows were all dropped, or never committed."""
        spec = self._specs[name]
        first, end = spec.start // spec.chunk, -(-spec.end // spec.chunk)
        for path in (self.path / name).glob("c.*"):
            index = path.name.split(".")[1 + spec.axis]
            if not first <= int(index) < end:
                path.unlink()

    def _write(self, path, data, wait=True):
        """Replace a file as a whole: its new content is on the disk before it takes the name."""
        partial = self.path / INNER / "partial"
        try:
            with open(partial, "wb") as file:
                file.write(data)
                file.flush()
                if wait:
                    os.fsync(file.fileno())
            os.replace(partial, path)
        except OSError:
            partial.unlink(missing_ok=True)
            raise


def fingerprint(energies: np.ndarray, dim: int | None = None) -> str:
    """A hash of a model: its energies at points the caller fixed, to 10 digits (4 in 32 bits)."""
    energies = np.asarray(energies)
    digits = 10 if energies.dtype.itemsize >= 8 else 4
    # Adding zero makes one of the two zeros.
    listed = [f"{float(energy) + 0.0:.{digits - 1}e}" for energy in energies.ravel()]
    text = json.dumps([listed, energies.dtype.name, dim])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _append(block, spec, tail):
    """The chunks that new rows fill, (chunks, rows, …), the rows that remain, and the new spec."""
    rows = np.moveaxis(block, spec.axis, 0).astype(spec.dtype)
    joined = rows if tail is None else np.concatenate([tail, rows])
    full = len(joined) // spec.chunk
    chunks = joined[: full * spec.chunk].reshape(full, spec.chunk, *spec.row)
    # A copy: a view would hold on to the chunks.
    tail = joined[full * spec.chunk :].copy()
    return chunks, tail, spec._replace(end=spec.end + len(rows))


def _stored(chunk, spec):
    """The bytes of a chunk in its file, the rows at their own axis."""
    return np.ascontiguousarray(np.moveaxis(chunk, 0, spec.axis)).data.cast("B")


def _key(spec, index):
    axes = range(len(spec.row) + 1)
    return ".".join(["c", *(str(index if axis == spec.axis else 0) for axis in axes)])


def _read_chunk(folder, spec, index):
    """One chunk, its rows first."""
    path, shape = folder / _key(spec, index), spec.shaped(spec.chunk)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        data = b""
    if len(data) != math.prod(shape) * np.dtype(spec.dtype).itemsize:
        raise CheckpointError(
            f"{path} is missing or damaged, and committed rows were in it; restore it from a copy"
        )
    return np.moveaxis(np.frombuffer(data, spec.dtype).reshape(shape), spec.axis, 0)


def _fill(dtype):
    return math.nan if np.dtype(dtype).kind in "fc" else 0


def _metadata(name, spec):
    dtype = np.dtype(spec.dtype)
    fill: Any = {"b": False, "f": "NaN", "c": ["NaN", "NaN"]}.get(dtype.kind, 0)
    label = name.rsplit("/", 1)[-1]
    others = [f"{label}_dim_{i}" for i in range(len(spec.row) - spec.axis)]
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": spec.shaped(spec.end),
        "data_type": dtype.name,
        "chunk_grid": {
            "name": "regular",
            "configuration": {"chunk_shape": spec.shaped(spec.chunk)},
        },
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}},
        "fill_value": fill,
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        "dimension_names": [*(["chain", "draw"] if spec.axis else [f"{label}_row"]), *others],
        "attributes": {"first_row": spec.start},
    }


def _pack(record):
    """A zip of JSON and .npy files, none of which can run code."""
    state = record.state
    arrays = {name: np.asarray(value) for name, value in state.items() if _is_array(value)}
    for name, array in arrays.items():
        if array.dtype.kind not in "biufcSU":
            raise TypeError(
                f"state[{name!r}] must be an array of numbers, booleans or text, got dtype "
                f"{array.dtype}"
            )
    values = {name: value for name, value in state.items() if name not in arrays}
    listed = {
        "commits": record.commits,
        "values": {name: _as_json(f"state[{name!r}]", value) for name, value in values.items()},
        "arrays": list(arrays),
        "rows": {name: spec._asdict() for name, spec in record.specs.items()},
    }
    members = {f"state/{i}.npy": array for i, array in enumerate(arrays.values())}
    members |= {f"tail/{i}.npy": record.tails[name] for i, name in enumerate(record.specs)}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as packed:
        packed.writestr("record.json", json.dumps(listed))
        for name, array in members.items():
            with packed.open(name, "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)
    return buffer.getbuffer()


def _unpack(data):
    with zipfile.ZipFile(io.BytesIO(data)) as packed:

        def member(name):
            with packed.open(name) as file:
                return np.lib.format.read_array(file, allow_pickle=False)

        listed = json.loads(packed.read("record.json"))
        state = {name: member(f"state/{i}.npy") for i, name in enumerate(listed["arrays"])}
        specs = {name: Spec(**spec) for name, spec in listed["rows"].items()}
        tails = {name: member(f"tail/{i}.npy") for i, name in enumerate(specs)}
    return Record(listed["commits"], listed["values"] | state, specs, tails)


def _is_array(value):
    return isinstance(value, np.ndarray | np.generic)


def _json(value):
    return json.dumps(value, indent=1).encode()


def _as_json(name, value):
    try:
        return json.loads(json.dumps(value))
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must hold what JSON can: {error}") from None


def _check_name(name, others):
    parts = str(name).split("/")
    bad = any(part in ("", ".", "..", "zarr.json") or part.startswith("__") for part in parts)
    if bad or parts[0] == INNER:
        raise ValueError(f"rows can't be called {name!r}; pass a plain name, e.g. 'x'")
    for other in others:
        if other.startswith(f"{name}/") or str(name).startswith(f"{other}/"):
            raise ValueError(f"rows can't be called {name!r} beside {other!r}: one contains one")


def _check_rows(name, block, spec):
    wanted = spec.shaped(block.shape[spec.axis] if block.ndim > spec.axis else 0)
    if block.shape != wanted or block.dtype.newbyteorder("<") != np.dtype(spec.dtype):
        shape = ", ".join(str(n) if i != spec.axis else "rows" for i, n in enumerate(wanted))
        raise ValueError(
            f"rows[{name!r}] must be of shape ({shape}) and dtype {np.dtype(spec.dtype).name} as "
            f"before, got {block.shape} and {block.dtype.name}"
        )


def _check_ours(path):
    """Refuse a path where something else is. An empty folder, or one we had begun, is fine."""
    if path.is_dir():
        begun = {"lock", "partial", "zarr.json"}
        names = {entry.name for entry in path.iterdir()}
        inner = path / INNER
        if names == {INNER} and inner.is_dir():
            names = {entry.name for entry in inner.iterdir()} - begun
        if not names or _root(path) is not None:
            return
    elif not path.exists():
        return
    raise ValueError(f"path {path} exists and isn't a checkpoint; pass another, or delete it")


def _root(path):
    """What a checkpoint says of itself; None where there is no such thing."""
    try:
        attributes = json.loads((path / "zarr.json").read_bytes())["attributes"]
        version = attributes["schuss_checkpoint"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if version != FORMAT or "identity" not in attributes:
        raise CheckpointError(
            f"{path} is a checkpoint of format {version}, and this version of schuss reads format "
            f"{FORMAT}; open it with the version that wrote it, or pass another path"
        )
    return attributes


def _flat(identity, prefix=""):
    out = {}
    for key, value in identity.items():
        if isinstance(value, dict) and value:
            out |= _flat(value, f"{prefix}{key}.")
        else:
            out[f"{prefix}{key}"] = json.dumps(value)
    return out


def _check_identity(path, there, here):
    there, here = _flat(there), _flat(here)
    differences = [
        f"{key} was {there.get(key, 'absent')} and is now {here.get(key, 'absent')}"
        for key in sorted(there.keys() | here.keys())
        if there.get(key) != here.get(key)
    ]
    if differences:
        raise ValueError(
            f"path {path} holds another run: {'; '.join(differences)}; pass another path, or "
            "delete it"
        )


def _lock(path):
    """A lock the system lifts when its holder dies, however it dies."""
    handle = os.open(path / INNER / "lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            import fcntl
        except ImportError:  # there is none on Windows
            return handle
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with contextlib.suppress(OSError):  # a full disk may still be read
            os.ftruncate(handle, 0)
            os.write(handle, f"process {os.getpid()} on {socket.gethostname()}".encode())
    except BlockingIOError:
        holder = os.read(handle, 200).decode(errors="replace") or "another process"
        os.close(handle)
        raise CheckpointError(
            f"path {path} is in use by {holder}; wait for it to end, or pass another path"
        ) from None
    except BaseException:
        os.close(handle)
        raise
    return handle


def _sync_folder(path):
    """Make new names in a folder last beyond a power cut."""
    if os.name == "nt":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _failed(error, message):
    failure = CheckpointError(message)
    failure.errno = error.errno
    return failure
