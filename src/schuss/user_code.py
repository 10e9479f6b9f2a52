"""Errors in a user's function: the line of his file, and what JAX cannot trace there."""

import linecache
import pathlib
import sysconfig
import traceback

HERE = pathlib.Path(__file__).parent
LIBRARIES = ("site-packages", "dist-packages")
STANDARD = pathlib.Path(sysconfig.get_path("stdlib"))

LONGEST = 80
"""Characters of a line of code in an error."""

NUMBER = (
    "turns an array into a plain number, as float(), int(), .item() and math.exp do",
    "leave it an array and write jnp.exp for math.exp",
)
NUMPY = (
    "hands an array to NumPy or to another library that asks for its values",
    "write it with jax.numpy, jnp.exp for np.exp, or pass value_and_grad=, which may use NumPy",
)
CHOICE = (
    "decides by the value of an array, as if, while, and, or, min and max do",
    "write jnp.where(condition, a, b) or jax.lax.cond",
)
INDEX = (
    "takes an array for a plain integer, as range() and the index of a list do",
    "loop with jax.lax.fori_loop, and make a list an array with jnp.asarray",
)
MASK = ("picks entries by a mask", "write jnp.where(mask, values, 0.0)")
ASSIGNMENT = ("assigns to entries of an array", "write x = x.at[index].set(value)")


def own_error(error: BaseException) -> BaseException | None:
    """The error, or the last of its causes, that came about in the user's files."""
    found, cause = None, error
    while cause is not None:
        found = cause if own_frames(cause) else found
        cause = cause.__cause__
    return found


def own_frames(error: BaseException) -> list[traceback.FrameSummary]:
    """Frames of a traceback outside of this library, of installed ones and of Python's own."""
    frames = traceback.extract_tb(error.__traceback__)
    return [frame for frame in frames if _is_own(pathlib.Path(frame.filename))]


def place(error: BaseException) -> str:
    """Where in the user's files an error came about: ", FILE, line N: `code`"."""
    frames = own_frames(error)
    if not frames:
        return ""
    name, number = frames[-1].filename, frames[-1].lineno
    code = linecache.getline(name, number or 0).strip()[:LONGEST]
    return f", {pathlib.Path(name).name}, line {number}" + (f": `{code}`" if code else "")


def failure(error: BaseException) -> str:
    """An error in one line, with its place."""
    text = str(error).strip()
    words = f": {text.splitlines()[0]}" if text else ""
    return f"{type(error).__name__}{words}{place(error)}"


def untraceable(name: str, error: BaseException) -> str | None:
    """What a function did that can't be compiled; None where it failed for another reason."""
    deed = _deed(error)
    if deed is None:
        return None
    what, instead = deed
    where = place(error).removeprefix(", ")
    where = f" ({where})" if where else ""
    return f"{name} {what}{where}, but JAX traces it with arrays that have no values; {instead}"


def _deed(error: BaseException) -> tuple[str, str] | None:
    from jax import errors

    kinds = {
        errors.TracerBoolConversionError: CHOICE,
        errors.NonConcreteBooleanIndexError: MASK,
        errors.TracerIntegerConversionError: INDEX,
        errors.TracerArrayConversionError: NUMPY,
        errors.ConcretizationTypeError: NUMBER,
    }
    words = {
        "converted to Python scalars": NUMBER,
        "truth value of an array": CHOICE,
        "arrays are immutable": ASSIGNMENT,
    }
    for kind, deed in kinds.items():
        if isinstance(error, kind):
            return deed
    return next((deed for part, deed in words.items() if part in str(error)), None)


def is_ours(path: pathlib.Path) -> bool:
    """Whether a file is one of this library's."""
    return path.is_relative_to(HERE)


def _is_own(path: pathlib.Path) -> bool:
    installed = any(part in LIBRARIES for part in path.parts) or path.is_relative_to(STANDARD)
    return not (installed or is_ours(path) or path.name.startswith("<frozen"))
