"""Files that are there as a whole or not at all."""

import contextlib
import os
import pathlib
from collections.abc import Iterator


@contextlib.contextmanager
def replacing(path: pathlib.Path) -> Iterator[pathlib.Path]:
    """A draft beside `path`, which takes its name when it is written and is gone if it isn't."""
    draft = path.with_name(path.name + ".part")
    draft.unlink(missing_ok=True)  # it may be a link to a file elsewhere
    try:
        yield draft
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)
