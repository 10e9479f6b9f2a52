"""What those who read with zarr (format 3) see: groups, shapes, and the rows that fill no chunk."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from schuss.checkpoint.chunks import key, padded, stored
from schuss.checkpoint.disk import INNER, write
from schuss.checkpoint.spec import Spec

GROUP = {"zarr_format": 3, "node_type": "group"}
PLAIN_GROUP = GROUP | {"attributes": {}}


def new_group(root: Path, attributes: dict[str, Any]) -> None:
    """An empty group, with what it says of itself."""
    _write_json(root, INNER, PLAIN_GROUP)
    _write_json(root, "", GROUP | {"attributes": attributes})


def publish(root: Path, name: str, spec: Spec, tail: np.ndarray) -> None:
    """The rows of an array that fill no chunk, the array's shape, the groups it is in."""
    folder = root / name
    folder.mkdir(parents=True, exist_ok=True)
    if len(tail):
        last = folder / key(spec, spec.end // spec.chunk)
        write(root, last, stored(padded(tail, spec), spec), wait=False)
    for parent in list(Path(name).parents)[:-1]:
        if not (root / parent / "zarr.json").exists():
            _write_json(root, parent, PLAIN_GROUP)
    _write_json(root, name, _array(name, spec), wait=False)


def _array(name, spec):
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


def _write_json(root, name, content, wait=True):
    write(root, root / name / "zarr.json", json.dumps(content, indent=1).encode(), wait)
