"""The diagonal metric: x = s z, coordinate by coordinate."""

from typing import Any, NamedTuple


class Diagonal(NamedTuple):
    """Scales, (dim,): roughly the standard deviations of the target."""

    scale: Any

    def forward(self, xp, z):
        """x = s z."""
        return self.scale * z

    def inverse(self, xp, x):
        """z = x/s."""
        return x / self.scale

    def potential(self, xp, z):
        """The log-determinant is constant."""
        return 0.0

    def pull(self, xp, z, g):
        """∂E/∂z = s ∂E/∂x."""
        return self.scale * g
