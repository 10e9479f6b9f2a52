"""Integrators as coefficient lists: kick b₀ε, drift a₁ε, kick b₁ε, …, drift aₘε, kick bₘε

All of them are palindromes, hence reversible, begin and end with a kick, and cost one gradient
for each drift. Since kicks with the same gradient add up, the last kick of a step and the first
of the next are one.
"""

from typing import Any, NamedTuple


class Integrator(NamedTuple):
    """Coefficients of the kicks (m + 1 of them) and of the drifts (m), in units of the step."""

    name: str
    kicks: tuple[Any, ...]
    drifts: tuple[float, ...]

    @property
    def gradients(self) -> int:
        """Gradients that one step costs."""
        return len(self.drifts)


LEAPFROG = Integrator("leapfrog", (0.5, 0.5), (1.0,))


def two_stage(kick: Any, name: str = "two-stage") -> Integrator:
    """Two drifts of half a step between kicks λ, 1 − 2λ and λ."""
    return Integrator(name, (kick, 1 - 2 * kick, kick), (0.5, 0.5))


MINIMAL_NORM = two_stage(0.1931833275037836, "minimal-norm")
"""McLachlan's second-order scheme with the smallest error constant."""

LONG_STEP = two_stage(0.2155, "long-step")
"""For long steps on what is close to a Gaussian. On a Gaussian the errors of third order
vanish at λ = (3 − √3)/6 = .2113 (Predescu et al. 2012); a little above it those of fifth order, of
the other sign, undo them where ε is about 1.5√d."""

_XI, _LAM, _CHI = 0.1644986515575760, -0.02094333910398989, 1.235692651138917
FOURTH_ORDER = Integrator(
    "fourth-order",
    (_XI, _CHI, 1 - 2 * (_CHI + _XI), _CHI, _XI),
    (0.5 - _LAM, _LAM, _LAM, 0.5 - _LAM),
)
"""The optimised Forest–Ruth scheme in velocity form of Omelyan, Mryglod and Folk (2002)."""

INTEGRATORS = {scheme.name: scheme for scheme in (LEAPFROG, MINIMAL_NORM, LONG_STEP, FOURTH_ORDER)}


def moves(integrator: Integrator, *, noise: bool = False) -> list[tuple[str, float]]:
    """What happens between the opening and the closing kick of a step, with its share of the step.

    A drift is followed by the gradient where it ends. Noise splits the move in the middle, a
    drift or a kick, and comes between its halves: the step stays a palindrome.
    """
    inner = [("drift", integrator.drifts[0])]
    for a, b in zip(integrator.drifts[1:], integrator.kicks[1:-1], strict=True):
        inner += [("kick", b), ("drift", a)]
    if noise:
        centre = len(inner) // 2
        move, share = inner[centre]
        inner[centre : centre + 1] = [(move, share / 2), ("noise", 1.0), (move, share / 2)]
    program = []
    for k, (move, share) in enumerate(inner):
        program.append((move, share))
        if move == "drift" and inner[k + 1 : k + 2] != [("noise", 1.0)]:
            program.append(("gradient", 1.0))
    return program
