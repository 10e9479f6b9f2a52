"""The record of a commit: a zip of JSON and .npy files, none of which can run code."""

import io
import json
import zipfile
from typing import Any, NamedTuple

import numpy as np

from schuss.checkpoint.spec import Spec


class Record(NamedTuple):
    """What a commit holds beside full chunks."""

    commits: int
    state: dict[str, Any]
    specs: dict[str, Spec]
    tails: dict[str, np.ndarray]  # rows that fill no chunk, the rows first


def pack(record: Record) -> memoryview:
    """The bytes of a record; what could run code when read is refused."""
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
        "values": {name: as_json(f"state[{name!r}]", value) for name, value in values.items()},
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


def unpack(data: bytes) -> Record:
    """The record in these bytes; an error where they are damaged, or hold a pickle."""
    with zipfile.ZipFile(io.BytesIO(data)) as packed:

        def member(name):
            with packed.open(name) as file:
                return np.lib.format.read_array(file, allow_pickle=False)

        listed = json.loads(packed.read("record.json"))
        state = {name: member(f"state/{i}.npy") for i, name in enumerate(listed["arrays"])}
        specs = {name: Spec(**spec) for name, spec in listed["rows"].items()}
        tails = {name: member(f"tail/{i}.npy") for i, name in enumerate(specs)}
    return Record(listed["commits"], listed["values"] | state, specs, tails)


def as_json(name: str, value: Any) -> Any:
    """A value as it comes back from JSON."""
    try:
        return json.loads(json.dumps(value))
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must hold what JSON can: {error}") from None


def _is_array(value):
    return isinstance(value, np.ndarray | np.generic)
