"""Rows of a benchmark in a JSON file, written after each of them: a run that is killed goes on."""

import json
import pathlib
import time
from typing import Any

from schuss.whole_file import replacing


class Rows:
    """The rows of a file, one for each key; the file has a summary of them at its top."""

    def __init__(self, path, keys, summary):
        self.path, self.keys, self.summary = pathlib.Path(path), keys, summary
        stored = json.loads(self.path.read_text())["runs"] if self.path.exists() else []
        self.found = {self.key(row): row for row in stored}

    def key(self, row):
        """What a row is the only one of."""
        return tuple(row[name] for name in self.keys)

    def has(self, wanted, commit, retry=False):
        """Whether there is a row like `wanted` of `commit`, and where `retry`, one that ended."""
        found = self.found.get(self.key(wanted))
        return found is not None and found["commit"] == commit and not (retry and "error" in found)

    def add(self, row):
        """Put a row in, in the place of an older one, and write the file."""
        self.found[self.key(row)] = row
        parts = {"table": self.summary(list(self.found.values())), "runs": self.found.values()}
        lines = [
            f"{json.dumps(name)}: [\n" + ",\n".join(map(json.dumps, rows)) + "\n]"
            for name, rows in parts.items()
        ]
        self.path.parent.mkdir(exist_ok=True)
        with replacing(self.path) as draft:
            draft.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def rounded(value, digits: int = 5) -> Any:
    """Floats of a nest to so many significant digits, and None for what isn't a number."""
    if isinstance(value, dict):
        return {key: rounded(part, digits) for key, part in value.items()}
    if isinstance(value, list):
        return [rounded(part, digits) for part in value]
    if isinstance(value, float):
        return float(f"{value:.{digits}g}") if abs(value) < float("inf") else None
    return value


def until(minutes):
    """A function that says whether the time is up."""
    end = time.monotonic() + 60 * minutes
    return lambda: time.monotonic() > end
