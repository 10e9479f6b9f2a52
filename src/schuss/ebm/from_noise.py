"""Samples of a trained energy from noise: no buffer, no data."""

from typing import Any

import torch
from torch import Tensor, nn

from schuss.algorithms import Algorithm
from schuss.ebm.negatives import Drawer
from schuss.ebm.randomness import generator, key
from schuss.ebm.starts import Colours, starting
from schuss.ebm.still import Still

SEGMENT = 100


def sample_from_noise(
    net: nn.Module,
    n: int,
    shape: tuple[int, ...],
    *,
    sampler: Algorithm,
    gradients: int = 2000,
    start: Any = "colour",
    energy_scale: float = 2e4,
    keep: str = "reservoir",
    batch: int = 500,
    compile: bool = False,
    gradient_dtype: Any = None,
    seed: int = 0,
    trace: int | None = None,
    colours: Colours | None = None,
    y: Tensor | None = None,
    fixed: Any = None,
    init: Tensor | None = None,
) -> tuple[Tensor, list[Tensor]]:
    """`n` samples after so many steps each, in segments of 100 with a fresh velocity.

    Each segment goes on from the last one's sample, as the paper has it. With `trace` the first
    so many chains are also returned as they were at the start and after each segment. `colours` are
    those of the training data, for start="colour". Conditions `y` (n, …) go to the net beside x;
    where the mask `fixed` is True, coordinates stay as they are in `init` (n, *shape).
    """
    if gradients % SEGMENT and gradients > SEGMENT:
        raise ValueError(f"gradients must be a multiple of {SEGMENT}, got {gradients}")
    device = next(net.parameters()).device
    drawer = Drawer(
        Still(net, gradient_dtype).update(),
        sampler,
        steps=min(gradients, SEGMENT),
        keep=keep,
        energy_scale=energy_scale,
        compile=compile,
        gradient_dtype=gradient_dtype,
        fixed=fixed,
    )
    fresh = starting(start, shape, device, colours=colours)
    batch = min(batch, n)
    done, shown = [], []
    for part in range(-(-n // batch)):
        x = fresh(batch, generator(device, seed, part))
        # The last part is as large as the others.
        rows = (part * batch + torch.arange(batch, device=device)) % n
        if fixed is not None and init is not None:
            mask = torch.as_tensor(fixed, device=device).reshape(x.shape[1:])
            x = torch.where(mask, init.to(x)[rows], x)
        given = None if y is None else y.to(device)[rows]
        if device.type == "cuda" and x.dim() == 4:
            x = x.to(memory_format=torch.channels_last)
        path = [x[:trace].cpu()] if trace and part == 0 else []
        # cuDNN looks for its fastest kernels, which pays as shapes never change.
        with torch.backends.cudnn.flags(enabled=True, benchmark=True):
            for segment in range(max(1, gradients // SEGMENT)):
                x = drawer(x, key(seed, part, segment), given).x
                if path:
                    path.append(x[:trace].cpu())
        done.append(x.cpu())
        shown = shown or path
    return torch.cat(done)[:n], shown
