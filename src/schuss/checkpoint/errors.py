"""What a checkpoint says when it can't go on."""

import contextlib
import errno
from collections.abc import Iterator
from typing import Any

FULL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))
"""What the system calls a disk that takes no more."""


class CheckpointError(OSError):
    """A checkpoint that can't be written, read or shared."""


def failed(error: OSError, message: str) -> CheckpointError:
    """The system's error in our words, its number kept."""
    failure = CheckpointError(message)
    failure.errno = error.errno
    return failure


@contextlib.contextmanager
def understood(path: Any) -> Iterator[None]:
    """An error where what was read can't be gone on from, whole as it is."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise CheckpointError(
            f"{path} holds another state than this version of schuss writes ({error!r}); restore "
            "it from a copy, or delete the folder to begin again"
        ) from error
