"""Results on disk: written whole or not at all, and reused while their settings are the same."""

import dataclasses
import importlib.metadata
import json
import pathlib
import platform
from collections.abc import Sequence
from typing import Any

import numpy as np

from schuss.paper.item import Settings
from schuss.whole_file import replacing

LIBRARIES = ("schuss", "numpy", "jax", "torch", "diffrax", "blackjax")


FIELDS = ("name", "versions", "seconds", "pictures")
"""What a file holds beside the settings and the values themselves."""


@dataclasses.dataclass(frozen=True)
class Result:
    """What an item gave, and how it came about. In the file the values stand beside the rest."""

    name: str
    settings: Settings
    versions: dict[str, str]
    seconds: float
    pictures: list[str]
    values: dict[str, Any]


def versions() -> dict[str, str]:
    """Of Python and of the libraries that took part."""
    found = {"python": platform.python_version()}
    for library in LIBRARIES:
        try:
            found[library] = importlib.metadata.version(library)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def path(folder: pathlib.Path, name: str) -> pathlib.Path:
    """Where the result of an item is."""
    return folder / f"{name}.json"


def save(folder: pathlib.Path, result: Result) -> None:
    """An interruption leaves the old file or the new one."""
    folder.mkdir(parents=True, exist_ok=True)
    fields = dataclasses.asdict(result)
    values = fields.pop("values")
    text = json.dumps(fields | values, indent=1, ensure_ascii=False, allow_nan=False)
    with replacing(path(folder, result.name)) as draft:
        draft.write_text(text + "\n")


def load(folder: pathlib.Path, name: str) -> Result | None:
    """The stored result, or None where there is none that can be read."""
    try:
        stored = json.loads(path(folder, name).read_text())
        settings = Settings(**stored.pop("settings"))
        fields = {key: stored.pop(key) for key in FIELDS}
        return Result(settings=settings, values=stored, **fields)
    except (FileNotFoundError, json.JSONDecodeError, KeyError, TypeError):
        return None


def numbers(series: Sequence[float | None]) -> np.ndarray:
    """A stored series as an array: what wasn't finite stands in the file as null."""
    return np.asarray([np.nan if value is None else value for value in series], float)
