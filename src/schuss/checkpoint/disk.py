"""Files that are there as a whole or not at all, and a folder that one process holds."""

import contextlib
import os
import socket
from pathlib import Path

from schuss.checkpoint.errors import CheckpointError

INNER = "checkpoint"
"""The folder in a checkpoint that holds its record, its lock, and what is half written."""

PARTIAL = f"{INNER}/partial"


def write(
    path: Path,
    data: bytes | memoryview,
    partial: Path,
    *,
    wait: bool = True,
    before: Path | None = None,
) -> None:
    """Replace a file as a whole: its new content is on the disk before it takes the name.

    The file that had the name is called `before` then, if that is given.
    """
    try:
        partial.unlink(missing_ok=True)  # it may be another name of a file elsewhere
        with open(partial, "xb") as file:
            file.write(data)
            file.flush()
            if wait:
                os.fsync(file.fileno())
        if before is not None and path.exists():
            os.replace(path, before)
        os.replace(partial, path)
    except OSError:
        partial.unlink(missing_ok=True)
        raise


def sync(path: Path) -> None:
    """Make a file, or the names in a folder, last beyond a power cut."""
    if os.name == "nt":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def lock(root: Path, path: Path) -> int:
    """A lock on a folder, by a file in it, that the system lifts when its holder dies."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
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
            f"path {root} is in use by {holder}; wait for it to end, or pass another path"
        ) from None
    except BaseException:
        os.close(handle)
        raise
    return handle
