"""Results of runs as JSON files: written whole or not at all, and not made again."""

import json
import math
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np

from schuss.whole_file import replacing

POINTS = 200
"""About so many points of a curve are kept."""


def plain(values: np.ndarray) -> list[float | None]:
    """Numbers to four digits for JSON; None for what isn't finite."""
    return [float(f"{v:.4g}") if math.isfinite(v) else None for v in values.tolist()]


def stride(length: int) -> int:
    """Between the points of a curve that are kept."""
    return max(1, length // POINTS)


def write(path: pathlib.Path, told: dict[str, Any]) -> None:
    """Written whole or not at all."""
    with replacing(path) as draft:
        draft.write_text(json.dumps(told, indent=1, allow_nan=False) + "\n")


def read(path: pathlib.Path) -> dict[str, Any] | None:
    """What was written; None where nothing was."""
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        return None


def there_already(
    path: pathlib.Path, advance: Callable[[str], None], *parts: str
) -> dict[str, Any] | None:
    """The result of an earlier run, with a word for each of its parts; None where there is none."""
    told = read(path)
    if told is not None:
        for part in parts:
            advance(f"{part}: there already")
    return told
