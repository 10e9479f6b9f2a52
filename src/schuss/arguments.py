"""Checks at the door: each names the argument, what was wrong with it, and what is wanted."""

import math
import operator
import os
from collections.abc import Hashable
from typing import Any

import numpy as np


def positive(name: str, value: Any) -> None:
    """Refuse numbers, or arrays of them, that aren't positive and finite."""
    try:
        given = np.asarray(value)
        numbers = np.asarray(math.nan if given.dtype.kind in "bUSc" else given, float)
    except (TypeError, ValueError):
        numbers = np.asarray(math.nan)
    if not (np.all(np.isfinite(numbers)) and np.all(numbers > 0)):
        raise ValueError(f"{name} must be positive and finite, got {value!r}")


def positive_number(name: str, value: Any) -> None:
    """Refuse what isn't a single number, positive and finite."""
    positive(name, value)
    if np.ndim(value):
        raise ValueError(f"{name} must be one number, got {value!r}")


def whole(name: str, value: Any, least: int) -> int:
    """A count, given as an integer of Python or NumPy."""
    try:
        count = least - 1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        count = least - 1
    if count < least:
        remedy = ""
        if isinstance(value, float) and value.is_integer() and value >= least:
            remedy = f"; pass {value:.0f}, without a point"
        raise ValueError(
            f"{name} must be a whole number of at least {least}, got {value!r}{remedy}"
        )
    return count


def one_of(name: str, value: Any, allowed: tuple) -> None:
    """Refuse names that aren't known."""
    if not (isinstance(value, Hashable) and value in allowed):
        listed = ", ".join(map(repr, allowed))
        raise ValueError(f"{name} must be one of {listed}, got {value!r}")


def a_path(name: str, value: Any) -> None:
    """Refuse what can't be the path of a file or a folder."""
    if not isinstance(value, str | os.PathLike) or os.fspath(value) in ("", "."):
        raise TypeError(
            f"{name} must be the path of a folder of its own, got {value!r}; pass e.g. 'run.zarr'"
        )


def arrayed(name: str, value: Any) -> Any:
    """An array as it is, and anything else as one of NumPy's; rows must be of one length."""
    if hasattr(value, "dtype"):
        return value
    try:
        return np.asarray(value)
    except ValueError:
        raise ValueError(
            f"{name} must have rows of one length, got {_short(value)}; pass an array of shape "
            "(chains, dim)"
        ) from None


def numbers(name: str, value: Any) -> np.ndarray:
    """An array of floats on the host, of whatever holds real numbers."""
    try:
        array = np.asarray(value)
    except ValueError:
        array = np.asarray(None)
    if array.dtype.kind not in "fiu":
        raise ValueError(
            f"{name} must hold real numbers in rows of one length, got {_short(value)}"
        )
    return np.asarray(array, float)


def floating(name: str, array: Any) -> Any:
    """An array of floats; whole numbers become those of their library's usual precision."""
    kind = str(array.dtype)
    if kind.startswith(("int", "uint", "torch.int", "torch.uint")):
        return array * 1.0
    if "bool" in kind:
        raise ValueError(
            f"{name} must be floating point, got dtype {kind}; convert it, e.g. {name} * 1.0"
        )
    if "float" not in kind:
        raise ValueError(
            f"{name} must hold real numbers, got dtype {kind}; pass an array of floats, shape "
            "(chains, dim)"
        )
    return array


def filled(name: str, array: Any) -> Any:
    """Positions, of which there must be some."""
    shape = tuple(array.shape)
    if not shape or 0 in shape:
        raise ValueError(
            f"{name} has shape {shape}, which holds no position; pass some, shape (chains, dim)"
        )
    return array


def seed_or_generator(value: Any) -> Any:
    """A seed as an int, or a torch.Generator as it is."""
    if type(value).__module__.startswith("torch") and hasattr(value, "manual_seed"):
        return value
    return whole_seed(value)


def whole_seed(value: Any) -> int:
    """A seed as an int, from whatever numbers are drawn by elsewhere.

    A NumPy Generator gives its next number and moves on. A SeedSequence and a JAX key always give
    the same.
    """
    if isinstance(value, np.random.Generator):
        return int(value.integers(2**62))
    if isinstance(value, np.random.SeedSequence):
        return _joined(value)
    words = _key(value)
    if words is not None:
        return mixed(*words)
    try:
        seed = -1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        seed = -1
    if seed < 0:
        raise ValueError(
            "seed must be a whole number of at least 0, a NumPy Generator or SeedSequence, or one "
            f"JAX key, got {_short(value)}; pass e.g. seed=0"
        )
    return seed


def _key(value: Any) -> list[int] | None:
    """The words of a JAX key, typed or of the older kind; None for anything else."""
    dtype = str(getattr(value, "dtype", ""))
    if dtype.startswith("key<") and value.ndim == 0:
        import jax

        value = jax.random.key_data(value)
    elif dtype != "uint32" or np.shape(value) not in ((2,), (4,)):
        return None
    return np.asarray(value).tolist()


def _short(value: Any) -> str:
    """A value in an error: its beginning, where it is long."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else text[:79] + "…"


def entropy(seed: Any) -> int:
    """The seed itself, or a number out of a torch.Generator, which moves on."""
    if isinstance(seed, int):
        return seed
    import torch

    return int(torch.randint(2**62, (), generator=seed, device=seed.device))


def mixed(*words: int) -> int:
    """A seed of 62 bits out of several numbers: other numbers give unrelated seeds."""
    return _joined(np.random.SeedSequence(words))


def _joined(sequence: np.random.SeedSequence) -> int:
    high, low = sequence.generate_state(2, np.uint32)
    return int(high) << 31 | int(low) >> 1


def held(seed: Any) -> Any:
    """A seed that every engine can hold: a longer one is mixed to 62 bits."""
    return mixed(seed) if isinstance(seed, int) and seed >= 2**62 else seed


def pair(name: str, found: Any, wanted: str) -> tuple[np.ndarray, np.ndarray]:
    """The value and the gradient that a function of NumPy returned."""
    if not isinstance(found, tuple | list) or len(found) != 2:
        several = f" of {len(found)}" if isinstance(found, tuple | list) else ""
        raise TypeError(
            f"{name} must return {wanted}, got {type(found).__name__}{several}; return value, "
            "gradient"
        )
    parts = []
    for what, part in zip(("value", "gradient"), found, strict=True):
        try:
            array = np.asarray(part)
        except ValueError:
            array = np.asarray(None)
        if array.dtype.kind not in "fiu":
            raise TypeError(
                f"{name} must return {wanted}, got the {what} {_short(part)}; make it real numbers"
            )
        parts.append(array)
    return parts[0], parts[1]


def corners(box: Any, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The lower and the upper corner of a box for positions of a shape."""
    dim = math.prod(shape)
    try:
        lower, upper = (_corner(corner, shape) for corner in box)
    except (TypeError, ValueError):
        raise ValueError(
            f"box must be a lower and an upper corner, each a number or of shape ({dim},), "
            f"got {box!r}"
        ) from None
    wrong = np.argwhere(~(lower < upper))
    if len(wrong):
        first = tuple(wrong[0].tolist())
        raise ValueError(
            f"box must have its lower corner below its upper one everywhere, got "
            f"{lower[first]:g} and {upper[first]:g} in coordinate {', '.join(map(str, first))}; "
            "pass box=(lower, upper)"
        )
    return lower, upper


def overhang(lower: Any, upper: Any, epsilon: float) -> float:
    """How far rounding may carry positions beyond a box, where floats next to 1 are ε apart."""
    ends = np.abs(np.stack(np.broadcast_arrays(lower, upper)))
    return 4 * epsilon * float(ends[np.isfinite(ends)].max(initial=0.0))


def _corner(corner: Any, shape: tuple[int, ...]) -> np.ndarray:
    values = np.asarray(corner, float)
    if values.shape == (math.prod(shape),):
        values = values.reshape(shape)
    return np.broadcast_to(values, shape)
