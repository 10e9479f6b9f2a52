"""Where chains begin: functions of a number and a generator, by name or the user's own."""

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch

from schuss.arguments import one_of

STARTS = ("uniform", "colour", "normal")


class Colours(NamedTuple):
    """Mean and square root of the covariance of the mean colour of images, in their units."""

    mean: Sequence[float]  # (channels,)
    root: Sequence[Sequence[float]]  # (channels, channels)


CIFAR = Colours(
    (-0.0172, -0.0357, -0.1069),
    ((0.2181, 0.1126, 0.0751), (0.1126, 0.1878, 0.1238), (0.0751, 0.1238, 0.2703)),
)
"""Those of CIFAR-10's images, before data are known and for checkpoints that hold no others."""

GREY = 0.27
"""The deviation of each channel for images that don't have three."""


def colours(x: torch.Tensor) -> Colours:
    """The colours of images (n, channels, height, width)."""
    mean = x.mean(dim=(2, 3), dtype=torch.float32).cpu().double()
    values, vectors = torch.linalg.eigh(torch.atleast_2d(torch.cov(mean.T, correction=0)))
    root = vectors @ torch.diag(values.clamp(min=0).sqrt()) @ vectors.T
    return Colours(mean.mean(dim=0).tolist(), root.tolist())


def usual(channels: int) -> Colours:
    """Colours where there are no data to take them from."""
    if channels == 3:
        return CIFAR
    return Colours([0.0] * channels, (GREY * torch.eye(channels)).tolist())


def saved_colours(meta: dict, shape: tuple[int, ...]) -> Colours:
    """The colours that a checkpoint holds; older ones had the usual ones."""
    found = meta.get("colours")
    return usual(shape[0]) if found is None else Colours(*found)


def starting(start, shape, device, lower=-1.0, upper=1.0, colours=None) -> Callable:
    """(n, generator) → positions (n, *shape), from a name or from a function of the same kind."""
    if callable(start):
        return functools.partial(_given, start, tuple(shape), device)
    one_of("start", start, STARTS)
    if start == "colour" and len(shape) != 3:
        raise ValueError(
            f"start='colour' is for images of shape (channels, height, width), got {tuple(shape)}; "
            "use start='uniform' or 'normal'"
        )
    if start == "colour":
        found = usual(shape[0]) if colours is None else colours
        return functools.partial(_colour, tuple(shape), device, lower, upper, found)
    made = {"uniform": _uniform, "normal": _normal}[start]
    return functools.partial(made, tuple(shape), device, lower, upper)


def reference(start) -> Callable:
    """E₀ of a named start, up to a constant: zero, or |x|²/2 for the normal one."""
    if start == "uniform":
        return lambda x: x.new_zeros(len(x))
    if start == "normal":
        return lambda x: x.reshape(len(x), -1).square().sum(-1) / 2
    raise ValueError(
        "weighting='jarzynski' needs the energy of the start; pass reference=, a function x → (n,) "
        "that is −log of the density which start draws from, or use start='uniform' or 'normal'"
    )


def _given(start, shape, device, n, generator):
    x = start(n, generator)
    if not isinstance(x, torch.Tensor) or tuple(x.shape) != (n, *shape):
        found = tuple(x.shape) if isinstance(x, torch.Tensor) else type(x).__name__
        raise ValueError(
            f"start must return a tensor of shape ({', '.join(map(str, (n, *shape)))}), got {found}"
        )
    return x.to(device)


def _uniform(shape, device, lower, upper, n, generator):
    u = torch.rand((n, *shape), generator=generator, device=device)
    return lower + (upper - lower) * u


def _normal(shape, device, lower, upper, n, generator):
    return torch.randn((n, *shape), generator=generator, device=device)


def _colour(shape, device, lower, upper, colours, n, generator):
    """Half a random constant colour, half pixel noise, clipped."""
    noise = torch.randn((n, *shape), generator=generator, device=device)
    z = torch.randn((n, shape[0]), generator=generator, device=device)
    middle, half = (lower + upper) / 2, (upper - lower) / 2
    # Row by row, so that no small tensor has to travel to the device.
    rows = [
        (mean - middle + sum(a * z[:, k] for k, a in enumerate(row))) / half
        for mean, row in zip(*colours, strict=True)
    ]
    mixed = (torch.stack(rows, dim=1)[:, :, None, None] + noise) / 2
    return middle + half * mixed.clamp(-1, 1)
