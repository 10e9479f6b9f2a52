"""A place on a path between two energies: a E₀ + b E, with a and b as data.

The two numbers ride behind the position, where the energy reads them. The kernel never sees
them, and nothing is compiled anew when they change.
"""

from typing import Any, NamedTuple


class Level(NamedTuple):
    """Weights of the two energies, (chains, 2)."""

    weights: Any

    def forward(self, xp, z):
        """Append the weights."""
        return xp.concat([z, self.weights], axis=-1)

    def inverse(self, xp, x):
        """Leave them out."""
        return x[:, :-2]

    def potential(self, xp, z):
        """They are fixed, and cost nothing."""
        return 0.0

    def pull(self, xp, z, g):
        """The gradient along the position."""
        return g[:, :-2]
