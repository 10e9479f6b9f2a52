"""What a checkpoint says when it can't go on."""

import errno

FULL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))
"""What the system calls a disk that takes no more."""


class CheckpointError(OSError):
    """A checkpoint that can't be written, read or shared."""


def failed(error: OSError, message: str) -> CheckpointError:
    """The system's error in our words, its number kept."""
    failure = CheckpointError(message)
    failure.errno = error.errno
    return failure
