"""What those who read with zarr (format 3) see: groups, shapes, and the rows that fill no chunk."""

import json
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from schuss.checkpoint.chunks import key, padded, stored
from schuss.checkpoint.disk import INNER, PARTIAL
from schuss.checkpoint.files import inside, put
from schuss.checkpoint.spec import Spec

NODE = "zarr.json"
"""The file in which zarr describes a group or an array."""

GROUP = {"zarr_format": 3, "node_type": "group"}
PLAIN_GROUP = GROUP | {"attributes": {}}


def new_group(root: Path, attributes: dict[str, Any]) -> None:
    """An empty group, with what it says of itself."""
    _write_json(root, f"{INNER}/{NODE}", PLAIN_GROUP)
    _write_json(root, NODE, GROUP | {"attributes": attributes})


def publish(root: Path, name: str, spec: Spec, tail: np.ndarray) -> None:
    """The rows of an array that fill no chunk, the array's shape, the groups it is in."""
    inside(root, name).mkdir(parents=True, exist_ok=True)
    if len(tail):
        last = f"{name}/{key(spec, spec.full)}"
        put(root, last, stored(padded(tail, spec), spec), partial=PARTIAL, wait=False)
    for parent in list(PurePosixPath(name).parents)[:-1]:
        if not (root / parent / NODE).exists():
            _write_json(root, f"{parent}/{NODE}", PLAIN_GROUP)
    _write_json(root, f"{name}/{NODE}", _array(name, spec), wait=False)


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
    put(root, name, json.dumps(content, indent=1).encode(), partial=PARTIAL, wait=wait)
