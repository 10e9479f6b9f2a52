"""What a function is called."""

from collections.abc import Callable


def called(function: Callable, otherwise: str) -> str:
    """The name under which a function was defined, where it has one."""
    name = getattr(function, "__name__", "<lambda>")
    return otherwise if name == "<lambda>" else name
