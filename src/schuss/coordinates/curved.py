"""Curved ridges: coordinates that lie along parabolas over others.

    x_j = z_j + Σ_k (b_jk + q_jk h_k) h_k,    h_k = x_k − c_k

Who follows whom has no cycle: in some order of the coordinates the Jacobian is triangular with ones
on its diagonal, so the determinant is one. All z are known at once from x, and x generation by
generation from z. What is left, slopes and widths, is the metric's affair.
"""

from typing import Any, NamedTuple


class Curved(NamedTuple):
    """Arrays of one row for each coordinate, and one column for each that might be followed."""

    origin: Any  # c (dim,)
    follow: Any  # b (dim, dim)
    curve: Any  # q (dim, dim)
    generations: Any  # zeros, as many as there are links in the longest line of those who follow

    meaning = "others lie along parabolas over {}"

    @property
    def leaders(self):
        """Those who are followed, (dim,) of bool."""
        return (self.curve != 0).any(axis=0)

    def forward(self, xp, z):
        """x(z): each pass sets those right whom the longest line reaches one link later."""
        x = z
        for _ in range(self.generations.shape[0]):
            x = z + self._offset(x)
        return x

    def inverse(self, xp, x):
        """z(x)."""
        return x - self._offset(x)

    def potential(self, xp, z):
        """The determinant is one."""
        return 0.0

    def pull(self, xp, z, g):
        """∂E/∂z: those who are followed gain the pull on those who follow."""
        x, total = self.forward(xp, z), g
        for _ in range(self.generations.shape[0]):
            total = g + self._passed_on(x, total)
        return total

    def push(self, xp, z, g):
        """∂E/∂x from ∂E/∂z: `pull` undone."""
        return g - self._passed_on(self.forward(xp, z), g)

    def _offset(self, x):
        h = x - self.origin
        return h @ self.follow.T + (h * h) @ self.curve.T

    def _passed_on(self, x, g):
        return g @ self.follow + 2 * (x - self.origin) * (g @ self.curve)
