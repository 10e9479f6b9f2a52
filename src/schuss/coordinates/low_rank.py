"""A metric with a few directions of its own: x = s (z + V (√λ − 1) Vᵀz)."""

from typing import Any, NamedTuple


class LowRank(NamedTuple):
    """Scales s (dim,), orthonormal columns V (dim, k), and √λ − 1 along each of them (k,)."""

    scale: Any
    vectors: Any
    stretch: Any

    def forward(self, xp, z):
        """x = s (I + V (√λ − 1) Vᵀ) z."""
        return self.scale * (z + self._along(z, self.stretch))

    def inverse(self, xp, x):
        """z = (I + V (1/√λ − 1) Vᵀ) x/s."""
        z = x / self.scale
        return z + self._along(z, 1 / (1 + self.stretch) - 1)

    def potential(self, xp, z):
        """The log-determinant is constant."""
        return 0.0

    def pull(self, xp, z, g):
        """∂E/∂z = (I + V (√λ − 1) Vᵀ) s ∂E/∂x."""
        g = self.scale * g
        return g + self._along(g, self.stretch)

    def _along(self, z, factors):
        """V diag(factors) Vᵀz."""
        return ((z @ self.vectors) * factors) @ self.vectors.T
