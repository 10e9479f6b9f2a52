"""What a trained energy is used for: ratios of densities, outliers, and how unlike samples are."""

import dataclasses
import pathlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch

from schuss.arguments import positive_number
from schuss.engines.engine import per_chain
from schuss.engines.modules import evaluation

BATCH = 1000
"""Positions that are evaluated at a time."""


def energies(net: Callable, x: torch.Tensor, y: Any = None) -> torch.Tensor:
    """Energies of a network at x (n, *shape), (n,), without gradients and in evaluation mode."""
    parts = []
    with torch.no_grad(), evaluation(net):
        for k in range(0, len(x), BATCH):
            given = () if y is None else (y[k : k + BATCH],)
            part = x[k : k + BATCH]
            parts.append(per_chain(net(part, *given), len(part)))
    return torch.cat(parts)


def log_density_ratio(
    net: Callable, x: torch.Tensor, z: torch.Tensor, *, energy_scale: float = 1.0, y: Any = None
) -> torch.Tensor:
    """log p(x)/p(z) = scale (f(z) − f(x)) for p = e^(−scale · f)/Z, each (n, *shape); no Z needed.

    `energy_scale` is that of the Trainer. The two must have the same conditions y, if any.
    """
    positive_number("energy_scale", energy_scale)
    if x.shape != z.shape:
        raise ValueError(
            f"z must have the shape of x {tuple(x.shape)}, got {tuple(z.shape)}; pair them, e.g. "
            "z.expand_as(x)"
        )
    return energy_scale * (energies(net, z, y) - energies(net, x, y))


class Outliers(NamedTuple):
    """Energies of data that are inside and outside, and the area under their ROC curve."""

    inside: np.ndarray
    outside: np.ndarray
    auroc: float

    def picture(self, path: str | pathlib.Path, names=("inside", "outside")) -> None:
        """Histograms of both, and the ROC curve."""
        from matplotlib.figure import Figure

        from schuss.plotting import FAINT, style

        with style():
            figure = Figure(figsize=(7, 2.8), layout="constrained")
            left, right = figure.subplots(1, 2, width_ratios=(2, 1))
            both = np.concatenate((self.inside, self.outside))
            least, most = np.percentile(both, [0.5, 99.5])
            bins = np.linspace(least, most, 61)
            for values, name, colour in zip(
                (self.inside, self.outside), names, ("#0072B2", "#D55E00"), strict=True
            ):
                left.hist(values, bins, alpha=0.6, label=name, color=colour, density=True)
            left.set(xlabel="energy", yticks=[])
            left.legend()
            cuts = np.sort(both)[::-1]
            shares = [
                np.mean(part[:, None] >= cuts, axis=0) for part in (self.inside, self.outside)
            ]
            right.plot(*shares, color="#333333")
            right.plot([0, 1], [0, 1], color=FAINT, lw=0.7)
            right.set(xlabel=f"{names[0]}, refused", ylabel=f"{names[1]}, refused", aspect="equal")
            right.set_title(f"AUROC {self.auroc:.3f}")
            figure.savefig(path)


def outliers(net: Callable, inside: torch.Tensor, outside: torch.Tensor) -> Outliers:
    """How well high energies tell `outside` from `inside`, neither of them seen in training.

    The area under the ROC curve is the probability that one from outside has the higher energy.
    """
    first, second = (energies(net, x).double().cpu().numpy() for x in (inside, outside))
    return Outliers(first, second, auroc(first, second))


def auroc(low: Any, high: Any) -> float:
    """P(high > low) + ½ P(high = low), by ranks (Mann and Whitney)."""
    low, high = np.asarray(low, float), np.asarray(high, float)
    if not (low.ndim == high.ndim == 1 and len(low) and len(high)):
        raise ValueError(f"scores must be two lists, got shapes {low.shape} and {high.shape}")
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        raise ValueError("scores must be finite; leave out positions where the energy isn't")
    ordered = np.sort(low)
    below, upto = (np.searchsorted(ordered, high, side=side) for side in ("left", "right"))
    return float((below + upto).mean() / (2 * len(low)))


def diversity(x: torch.Tensor, data: torch.Tensor) -> float:
    """How far samples are from each other, as a share of how far data are: 1 is as it should be.

    The mean distance from each of x (n, *shape) to the nearest other one, over the same of as many
    data. Near-duplicates, as chains of one class may be, give much less than 1.
    """
    if len(data) < len(x) or len(x) < 2:
        raise ValueError(
            f"data must be at least as many as x, and x at least 2, got {len(data)} and {len(x)}; "
            "pass more data or fewer samples"
        )
    return _nearest(x) / max(_nearest(data[: len(x)]), 1e-30)


def _nearest(x: torch.Tensor) -> float:
    x = x.flatten(1).double()
    apart = torch.cdist(x, x).fill_diagonal_(float("inf"))
    return float(apart.min(dim=1).values.mean())


class Bits(NamedTuple):
    """−log₂ p of data for each coordinate, its standard error, and the evidence behind it."""

    value: float
    error: float
    evidence: Any


@dataclasses.dataclass(frozen=True)
class _Flat:
    """scale · f of flat positions."""

    net: Callable
    scale: float
    shape: tuple[int, ...]

    def __call__(self, x):
        return self.scale * per_chain(self.net(x.reshape(-1, *self.shape)), len(x))


def bits_per_dimension(
    net: Callable,
    x: torch.Tensor,
    *,
    energy_scale: float = 1.0,
    box: tuple[float, float] = (-1.0, 1.0),
    **options: Any,
) -> Bits:
    """(scale · ⟨f(x)⟩ + log Z)/(d log 2), with log Z in the box by `schuss.evidence`.

    x (n, *shape) are data with the noise of training, not seen in it: p is the density of those.
    `options` are those of `schuss.evidence`, whose verdict says whether log Z can be trusted; where
    it can't there is a `NotConverged` warning. Z is that of the box alone, outside of which no
    sampler has been.
    """
    from schuss.evidence import Uniform, evidence

    shape, dim = tuple(x.shape[1:]), x[0].numel()
    found = evidence(
        energy=_Flat(net, float(energy_scale), shape),
        reference=Uniform(*box, dim=dim, support=True),
        like=x,
        **options,
    )
    values = energy_scale * energies(net, x).double()
    error = float(np.hypot(found.error, float(values.std()) / len(x) ** 0.5))
    unit = dim * float(np.log(2))
    return Bits((float(values.mean()) + found.log_z) / unit, error / unit, found)
