"""Two energies and the path between them: E_ab(x) = a E₀(x) + b E(x)."""

import dataclasses
from collections.abc import Callable
from typing import Any


@dataclasses.dataclass(frozen=True)
class Tempered:
    """Energy and gradient of (x, a, b): along a and b they are E₀ and E themselves."""

    target: Callable  # positions → energies and gradients
    reference: Callable
    xp: Any

    @property
    def energy(self):
        """What the two are made of, where the engine looks for networks."""
        parts = (self.target, self.reference)
        return tuple(getattr(part, "energy", ()) for part in parts)

    def __call__(self, z):
        """Energies and gradients at (x, a, b)."""
        x, a, b = z[:, :-2], z[:, -2], z[:, -1]
        e, g = self.target(x)
        e0, g0 = self.reference(x)
        slopes = [a[:, None] * g0 + b[:, None] * g, e0[:, None], e[:, None]]
        return a * e0 + b * e, self.xp.concat(slopes, axis=-1)
