"""Whose folder it is: no checkpoint at all, one of this run, or another's, refused by name."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from schuss.checkpoint.disk import INNER
from schuss.checkpoint.errors import CheckpointError
from schuss.checkpoint.files import REMEDY, has_head

FORMAT = 7
RECORD = f"{INNER}/commit.zip"
BEGUN = {"lock", "partial", "zarr.json"}
"""Files of a checkpoint in which nothing was committed."""


def fingerprint(energies: np.ndarray, dim: int | None = None) -> str:
    """A hash of a model: its energies at points the caller fixed, to 10 digits (4 in 32 bits)."""
    energies = np.asarray(energies)
    digits = 10 if energies.dtype.itemsize >= 8 else 4
    # Adding zero makes one of the two zeros.
    listed = [f"{float(energy) + 0.0:.{digits - 1}e}" for energy in energies.ravel()]
    text = json.dumps([listed, energies.dtype.name, dim])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def attributes(identity: dict) -> dict[str, Any]:
    """What a new checkpoint says of itself."""
    return {"schuss_checkpoint": FORMAT, "identity": identity}


def found(path: Path) -> dict[str, Any] | None:
    """What a checkpoint says of itself; None where there is no such thing."""
    try:
        said = json.loads((path / "zarr.json").read_bytes())["attributes"]
        version = said["schuss_checkpoint"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    if version != FORMAT or not isinstance(said.get("identity"), dict):
        raise CheckpointError(
            f"{path} is a checkpoint of format {version}, and this version of schuss reads format "
            f"{FORMAT}; open it with the version that wrote it, or pass another path"
        )
    return said


def lost(path: Path) -> bool:
    """Whether there is more in a folder than a checkpoint without a commit has."""
    return bool(_names(path) - {INNER, *BEGUN} or _names(path / INNER) - BEGUN)


def check_ours(path: Path) -> None:
    """Refuse a path where something else is. An empty folder, or one we had begun, is fine."""
    if not path.exists():
        return
    if path.is_dir():
        names = _names(path)
        if not names or found(path) is not None or (names == {INNER} and not lost(path)):
            return
        if has_head(path, RECORD):
            raise CheckpointError(f"{path / 'zarr.json'} is missing or damaged; {REMEDY}")
    raise ValueError(f"path {path} exists and isn't a checkpoint; pass another, or delete it")


def _names(folder: Path) -> set[str]:
    return {entry.name for entry in folder.iterdir()} if folder.is_dir() else set()


def check_identity(path: Path, there: dict, here: dict) -> None:
    """Refuse another run, by the fields in which it differs."""
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


def _flat(identity, prefix=""):
    out = {}
    for key, value in identity.items():
        if isinstance(value, dict) and value:
            out |= _flat(value, f"{prefix}{key}.")
        else:
            out[f"{prefix}{key}"] = json.dumps(value)
    return out
