"""One more coordinate, standard normal, for targets with a single one.

On a line the direction of the velocity can never change (App. A.2). In the plane it can.
"""

from typing import Any, NamedTuple


class Auxiliary(NamedTuple):
    """z = (x, a) with a ~ N(0, 1); `at` is where a starts, (chains, 1)."""

    at: Any

    def forward(self, xp, z):
        """Leave a out."""
        return z[:, :-1]

    def inverse(self, xp, x):
        """Append a."""
        return xp.concat([x, self.at], axis=-1)

    def potential(self, xp, z):
        """½a²."""
        return 0.5 * z[:, -1] ** 2

    def pull(self, xp, z, g):
        """The gradient along a is a itself."""
        return xp.concat([g, z[:, -1:]], axis=-1)
