"""Any linear change of coordinates, as one matrix: x = A z."""

from typing import Any, NamedTuple


class Dense(NamedTuple):
    """Aᵀ and A, (dim, dim), so that rows of a batch are multiplied from the right: x = z Aᵀ.

    Both, since the product with a matrix that lies the other way takes a loop longer.
    """

    transposed: Any
    matrix: Any

    def forward(self, xp, z):
        """x = A z."""
        return z @ self.transposed

    def inverse(self, xp, x):
        """z = A⁻¹ x."""
        return xp.linalg.solve(self.matrix, x.T).T

    def potential(self, xp, z):
        """The log-determinant is constant."""
        return 0.0

    def pull(self, xp, z, g):
        """∂E/∂z = Aᵀ ∂E/∂x."""
        return g @ self.matrix
