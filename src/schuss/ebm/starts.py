"""Where chains begin: functions of a number and a generator, by name or the user's own."""

import functools
from collections.abc import Callable

import torch

from schuss.arguments import one_of

STARTS = ("uniform", "colour", "normal")

# Mean and square root of the covariance of the mean colour of CIFAR-10's images.
COLOUR = (-0.0172, -0.0357, -0.1069)
SPREAD = ((0.2181, 0.1126, 0.0751), (0.1126, 0.1878, 0.1238), (0.0751, 0.1238, 0.2703))
GREY = 0.27


def starting(start, shape, device, lower=-1.0, upper=1.0) -> Callable:
    """(n, generator) → positions (n, *shape), from a name or from a function of the same kind."""
    if callable(start):
        return functools.partial(_given, start, tuple(shape), device)
    one_of("start", start, STARTS)
    if start == "colour" and len(shape) != 3:
        raise ValueError(
            f"start='colour' is for images of shape (channels, height, width), got {tuple(shape)}; "
            "use start='uniform' or 'normal'"
        )
    made = {"uniform": _uniform, "normal": _normal, "colour": _colour}[start]
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


def _colour(shape, device, lower, upper, n, generator):
    """Half a random constant colour, half pixel noise, clipped."""
    noise = torch.randn((n, *shape), generator=generator, device=device)
    channels = shape[0]
    colour = torch.randn((n, channels), generator=generator, device=device)
    if channels == 3:
        # Row by row, so that no small tensor has to travel to the device.
        rows = zip(COLOUR, SPREAD, strict=True)
        mixed = [
            mean + a * colour[:, 0] + b * colour[:, 1] + c * colour[:, 2]
            for mean, (a, b, c) in rows
        ]
        colour = torch.stack(mixed, dim=1)
    else:
        colour = GREY * colour
    middle, half = (lower + upper) / 2, (upper - lower) / 2
    mixed = (colour[:, :, None, None] + noise) / 2
    return middle + half * mixed.clamp(-1, 1)
