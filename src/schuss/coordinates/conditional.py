"""Coordinates that are normal once a few others are given, as in linear models of unknown scales.

    x = V w,    w_i = (Σ_f β_fi φ_f)/D_i + z_i/√D_i,    D_i = Σ_f λ_fi φ_f,    log φ_f = ρ_f · z

V makes the precisions of all forms f diagonal, and φ_f = e^(ρ_f·z) is what the given coordinates
make of each, 1/s² of a scale s where log s is given. So the others are standard normal in z
whatever is given, and the log-determinant is −½ Σ_i log D_i. Those that are given are coordinates
of z as they are: λ = 1 in the first form, which is constant, and nothing elsewhere.
"""

from typing import Any, NamedTuple


class Conditional(NamedTuple):
    """Arrays of one row for each form and one column for each coordinate, and V with its inverse.

    The first form is constant, ρ = 0.
    """

    vectors: Any  # V (dim, dim)
    inverted: Any  # V⁻¹
    precision: Any  # λ (forms, dim)
    pull_to: Any  # β (forms, dim)
    rate: Any  # ρ (forms, dim), zero but for those that are given

    meaning = "all else is normal given {}"

    @property
    def leaders(self):
        """Those that are given, (dim,) of bool."""
        return (self.rate != 0).any(axis=0)

    def forward(self, xp, z):
        """x(z)."""
        rows = self.rows(xp, z)
        return (rows.place + rows.width * z) @ self.vectors.T

    def inverse(self, xp, x):
        """z(x): those that are given are the same in both."""
        rows = self.rows(xp, x)
        return (x @ self.inverted.T - rows.place) / rows.width

    def potential(self, xp, z):
        """½ Σ_i log D_i."""
        return -xp.sum(xp.log(self.rows(xp, z).width), axis=-1)

    def pull(self, xp, z, g):
        """∂E/∂z: along w, and along what is given by way of the forms."""
        rows, along = self.rows(xp, z), g @ self.vectors
        return rows.width * along + self._by_forms(rows, z, along)

    def push(self, xp, z, g):
        """∂E/∂x from ∂E/∂z: `pull` undone."""
        rows = self.rows(xp, z)
        # What is given has no part in the forms, so that the pull by way of these is known.
        by_forms = self._by_forms(rows, z, g / rows.width)
        return ((g - by_forms) / rows.width) @ self.inverted

    def rows(self, xp, given) -> "Rows":
        """Places and widths by the given coordinates of z or x."""
        forms = xp.exp(given @ self.rate.T)
        precision = forms @ self.precision
        return Rows(forms, (forms @ self.pull_to) / precision, 1 / xp.sqrt(precision))

    def _by_forms(self, rows, z, along):
        """Σ_f ρ_f (∂/∂log φ_f)(E + ½ Σ log D), from the gradient along w."""
        scaled = along * rows.width**2
        held = 0.5 * rows.width**2 - scaled * (rows.place + 0.5 * rows.width * z)
        by = rows.forms * (scaled @ self.pull_to.T + held @ self.precision.T)
        return by @ self.rate


class Rows(NamedTuple):
    """What the given coordinates make of the forms, and each w's place and width."""

    forms: Any
    place: Any
    width: Any
