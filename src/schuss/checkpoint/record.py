"""The record of a commit: a zip of JSON and .npy files, none of which can run code."""

import io
import json
import zipfile
from typing import Any, NamedTuple

import numpy as np

from schuss.checkpoint.spec import Spec, check_name, check_spec


class Record(NamedTuple):
    """What a commit holds beside full chunks."""

    commits: int
    about: int  # checksum of what the folder says of itself
    state: dict[str, Any]
    specs: dict[str, Spec]
    tails: dict[str, np.ndarray]  # rows that fill no chunk, the rows first
    checksums: dict[str, np.ndarray]  # of all full chunks, those dropped included
    fresh: dict[str, int]  # chunks that this commit has filled


def pack(record: Record) -> bytes:
    """The bytes of a record; what could run code when read is refused."""
    state = record.state
    arrays = {name: np.asarray(value) for name, value in state.items() if _is_array(value)}
    for name, array in arrays.items():
        _check_kind(f"state[{name!r}]", array)
    values = {name: value for name, value in state.items() if name not in arrays}
    listed = {
        "commits": record.commits,
        "about": record.about,
        "values": {name: as_json(f"state[{name!r}]", value) for name, value in values.items()},
        "arrays": list(arrays),
        "rows": {name: spec._asdict() for name, spec in record.specs.items()},
        "fresh": record.fresh,
    }
    members = {f"state/{i}.npy": array for i, array in enumerate(arrays.values())}
    members |= {f"tail/{i}.npy": record.tails[name] for i, name in enumerate(record.specs)}
    members |= {f"crc/{i}.npy": record.checksums[name] for i, name in enumerate(record.specs)}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as packed:
        packed.writestr("record.json", json.dumps(listed))
        for name, array in members.items():
            with packed.open(name, "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)
    return buffer.getvalue()


def unpack(data: bytes) -> Record:
    """The record in these bytes; an error where they are damaged, hold a pickle or a bad name."""
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        if sum(member.file_size for member in packed.infolist()) > len(data):
            raise ValueError("it is compressed")

        def member(name):
            with packed.open(name) as file:
                array = np.lib.format.read_array(file, allow_pickle=False)
            _check_kind(name, array)
            return array

        listed = json.loads(packed.read("record.json"))
        state = {name: member(f"state/{i}.npy") for i, name in enumerate(listed["arrays"])}
        specs = {name: Spec(**spec) for name, spec in listed["rows"].items()}
        tails = {name: member(f"tail/{i}.npy") for i, name in enumerate(specs)}
        checksums = {name: member(f"crc/{i}.npy") for i, name in enumerate(specs)}
    values, commits, about = listed["values"], listed["commits"], listed["about"]
    fresh = {name: int(listed["fresh"].get(name, 0)) for name in specs}
    if type(commits) is not int or commits < 0:
        raise ValueError(f"it is of commit {commits!r}")
    for name, spec in specs.items():
        check_name(name, specs)
        check_spec(spec)
        _check_like(tails[name], (spec.end % spec.chunk, *spec.row), spec.dtype)
        _check_like(checksums[name], (spec.full,), "<u4")
    return Record(commits, about, values | state, specs, tails, checksums, fresh)


def _check_kind(name, array):
    if array.dtype.kind not in "biufcSU":
        raise TypeError(
            f"{name} must be an array of numbers, booleans or text, got dtype {array.dtype}"
        )


def _check_like(array, shape, dtype):
    if array.shape != shape or array.dtype != dtype:
        raise ValueError(f"an array of {shape} and {dtype} is {array.shape} and {array.dtype}")


def as_json(name: str, value: Any) -> Any:
    """A value as it comes back from JSON."""
    try:
        return json.loads(json.dumps(value))
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must hold what JSON can: {error}") from None


def _is_array(value):
    return isinstance(value, np.ndarray | np.generic)
