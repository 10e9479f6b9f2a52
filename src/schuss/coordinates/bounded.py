"""A box by the logistic map: x = l + (u − l) σ(z), coordinate by coordinate."""

from typing import Any, NamedTuple


class Bounded(NamedTuple):
    """Lower and upper corner, (dim,)."""

    lower: Any
    upper: Any

    def forward(self, xp, z):
        """x(z), strictly inside where the precision allows."""
        return self.lower + (self.upper - self.lower) * _logistic(xp, z)

    def inverse(self, xp, x):
        """z = log (x − l)/(u − x)."""
        return xp.log(x - self.lower) - xp.log(self.upper - x)

    def potential(self, xp, z):
        """−log σ(z)σ(−z) summed, without overflow: |z| + 2 log(1 + e^(−|z|))."""
        size = xp.abs(z)
        return xp.sum(size + 2 * xp.log1p(xp.exp(-size)), axis=-1)

    def pull(self, xp, z, g):
        """∂x/∂z = (u − l) σ(z)σ(−z), and tanh(z/2) from the potential."""
        slope = _logistic(xp, z) * _logistic(xp, -z)
        return (self.upper - self.lower) * slope * g + xp.tanh(z / 2)


def _logistic(xp, z):
    return 0.5 * (1 + xp.tanh(z / 2))
