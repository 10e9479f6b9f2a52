"""Signs that training has blown up, which finite numbers alone don't show."""

import dataclasses

import numpy as np

from schuss.ebm.history import STATISTICS


class DivergenceError(RuntimeError):
    """Training diverged again and again."""


@dataclasses.dataclass(frozen=True)
class Limits:
    """Above these training counts as diverged.

    gap: of |E₊ − E₋|, in units of the network.
    delta: of the mean turn of a step of ESH, ε|g|/κ; beyond it it only slides downhill.
    grad_norm: of the norm of the loss's gradient.
    frozen: of the fraction of chains that met a non-finite energy or gradient.
    """

    gap: float = 1e4
    delta: float = 5.0
    grad_norm: float = 1e6
    frozen: float = 0.5


def cause(rows: np.ndarray, limits: Limits) -> tuple[int, str] | None:
    """The first of these iterations that shows a divergence, and what it shows."""
    column = {name: rows[:, k] for k, name in enumerate(STATISTICS)}
    gap = np.abs(column["energy_data"] - column["energy_negative"])
    delta = np.nan_to_num(column["delta"], nan=0.0, posinf=np.inf)
    signs = (
        (~np.isfinite(column["losses"]), column["losses"], "the loss is {:g}"),
        (
            column["frozen"] > limits.frozen,
            100 * column["frozen"],
            "{:.0f} % of the chains met a non-finite energy or gradient",
        ),
        (
            ~(column["grad_norm"] <= limits.grad_norm),
            column["grad_norm"],
            "the gradient norm is {:g}",
        ),
        (~(gap <= limits.gap), gap, "|E₊ − E₋| is {:g}"),
        (delta > limits.delta, delta, "a sampler step turns by δ = {:g}"),
    )
    seen = np.stack([sign for sign, _, _ in signs])
    if not seen.any():
        return None
    first = int(seen.any(axis=0).argmax())
    found = [text.format(value[first]) for sign, value, text in signs if sign[first]]
    return first, ", ".join(found)
