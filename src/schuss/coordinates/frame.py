"""Coordinates between the target and the kernel: the kernel moves in z, the target is read at x(z).

A frame is a NamedTuple of arrays with four methods. `potential` is what the energy gains: minus
the log-determinant where it isn't constant, and the energy of coordinates that were added.
"""

from typing import Any, Protocol


class Frame(Protocol):
    """One change of variables."""

    def forward(self, xp, z) -> Any:
        """x(z)."""
        ...

    def inverse(self, xp, x) -> Any:
        """z(x)."""
        ...

    def potential(self, xp, z) -> Any:
        """What the energy gains, up to a constant."""
        ...

    def pull(self, xp, z, g) -> Any:
        """The gradient in z from the gradient g in x, that of the potential included."""
        ...


def to_x(xp, frames: tuple[Frame, ...], z):
    """From where the kernel moves to where the target lives."""
    for frame in reversed(frames):
        z = frame.forward(xp, z)
    return z


def to_z(xp, frames: tuple[Frame, ...], x):
    """From where the target lives to where the kernel moves."""
    for frame in frames:
        x = frame.inverse(xp, x)
    return x


def potential(xp, frames: tuple[Frame, ...], z):
    """What all frames together add to the energy."""
    total = 0.0
    for frame in reversed(frames):
        total = total + frame.potential(xp, z)
        z = frame.forward(xp, z)
    return total


def through(xp, grad_fn, frames: tuple[Frame, ...]):
    """Energies and gradients in z, from those in x."""
    for frame in frames:
        grad_fn = _through(xp, grad_fn, frame)
    return grad_fn


def _through(xp, grad_fn, frame):
    def moved(z):
        energy, g = grad_fn(frame.forward(xp, z))
        return energy + frame.potential(xp, z), frame.pull(xp, z, g)

    return moved
