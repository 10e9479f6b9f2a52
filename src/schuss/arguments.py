"""Checks at the door: each names the argument, what was wrong with it, and what is wanted."""

import math
import operator
from typing import Any

import numpy as np


def positive(name: str, value: Any) -> None:
    """Refuse numbers, or arrays of them, that aren't positive and finite."""
    try:
        numbers = np.asarray(math.nan if isinstance(value, str) else value, float)
    except (TypeError, ValueError):
        numbers = np.asarray(math.nan)
    if not (np.all(np.isfinite(numbers)) and np.all(numbers > 0)):
        raise ValueError(f"{name} must be positive and finite, got {value!r}")


def whole(name: str, value: Any, least: int) -> int:
    """A count, given as anything that equals a whole number."""
    try:
        count = int(value)
    except (TypeError, ValueError, OverflowError):
        count = least - 1
    if count < least or count != value:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return count


def one_of(name: str, value: Any, allowed: tuple) -> None:
    """Refuse names that aren't known."""
    if value not in allowed:
        listed = ", ".join(map(repr, allowed))
        raise ValueError(f"{name} must be one of {listed}, got {value!r}")


def floating(name: str, array: Any) -> Any:
    """An array of floats; whole numbers become those of their library's usual precision."""
    kind = str(array.dtype)
    if "int" in kind:
        return array * 1.0
    if "float" not in kind:
        raise ValueError(
            f"{name} must be floating point, got dtype {kind}; convert it, e.g. {name} * 1.0"
        )
    return array


def seed_or_generator(value: Any) -> Any:
    """A seed as an int, or a torch.Generator as it is."""
    if type(value).__module__.startswith("torch") and hasattr(value, "manual_seed"):
        return value
    try:
        seed = operator.index(value)
    except TypeError:
        seed = -1
    if seed < 0:
        raise ValueError(
            f"seed must be a whole number of at least 0, or a torch.Generator, got {value!r}"
        )
    return seed


def entropy(seed: Any) -> int:
    """The seed itself, or a number out of a torch.Generator, which moves on."""
    if isinstance(seed, int):
        return seed
    import torch

    return int(torch.randint(2**62, (), generator=seed, device=seed.device))


def mixed(*words: int) -> int:
    """A seed of 62 bits out of several numbers: other numbers give unrelated seeds."""
    high, low = np.random.SeedSequence(words).generate_state(2, np.uint32)
    return int(high) << 31 | int(low) >> 1


def held(seed: Any) -> Any:
    """A seed that every engine can hold: a longer one is mixed to 62 bits."""
    return mixed(seed) if isinstance(seed, int) and seed >= 2**62 else seed


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
    if not np.all(lower < upper):
        raise ValueError("box must have its lower corner below its upper one everywhere")
    return lower, upper


def _corner(corner: Any, shape: tuple[int, ...]) -> np.ndarray:
    values = np.asarray(corner, float)
    if values.shape == (math.prod(shape),):
        values = values.reshape(shape)
    return np.broadcast_to(values, shape)
