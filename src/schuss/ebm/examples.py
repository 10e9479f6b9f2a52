"""Batches of data: from tensors on the device, or from a function that draws them."""

from collections.abc import Callable
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset

from schuss.arguments import overhang


class Examples:
    """Data in one of three forms: a tensor (n, *shape), a pair with labels, or a function.

    Labels are classes (n,) of a joint model, or conditions (n, …) of an energy of (x, y).

    The function takes a number and a generator and returns a tensor. Batches are drawn at random
    with replacement; `noise` is the sd of normal noise put on them, `flip` mirrors half of them.
    """

    def __init__(
        self, data: Any, device, dtype, *, noise: float = 0.0, flip: bool = False, joint=True
    ):
        if not 0 <= noise < float("inf"):
            raise ValueError(f"data_noise must be at least 0 and finite, got {noise!r}")
        self.noise, self.flip, self.device = float(noise), flip, device
        self.function: Callable | None = None
        self.labels = None
        if callable(data) and not isinstance(data, torch.Tensor):
            self.function = data
            probe = data(2, torch.Generator(device).manual_seed(0))
            self._check(probe, device, dtype, "data's result")
            self.shape = tuple(probe.shape[1:])
        else:
            if isinstance(data, list | tuple):
                if len(data) != 2:
                    raise ValueError(
                        f"data must be a tensor, a pair of data and labels, or a function, got "
                        f"{len(data)} parts; join them, e.g. with torch.stack"
                    )
                data, self.labels = data
                self._check_labels(data, device, joint)
            self._check(data, device, dtype, "data")
            self.x, self.shape = data, tuple(data.shape[1:])
        if flip and len(self.shape) < 2:
            raise ValueError(f"flip=True is for images, but data has the shape {self.shape}")

    def _check(self, x, device, dtype, name):
        if not isinstance(x, torch.Tensor):
            raise TypeError(f"{name} must be a torch tensor, got {type(x).__name__}; {_remedy(x)}")
        if x.dim() < 2 or not len(x):
            raise ValueError(f"{name} must have shape (n, *shape), got {tuple(x.shape)}")
        if x.dtype != dtype:
            raise ValueError(
                f"{name} has dtype {x.dtype} but net has {dtype}; convert it, e.g. x.to({dtype})"
            )
        if x.device != device:
            raise ValueError(
                f"{name} is on {x.device} but net is on {device}; move one of them, e.g. "
                f"data.to({str(device)!r})"
            )
        wrong = int((~x.isfinite()).sum())
        if wrong:
            nans, rows = int(x.isnan().sum()), int((~x.isfinite()).flatten(1).any(1).sum())
            raise ValueError(
                f"{name} contains {nans} NaN and {wrong - nans} infinite values, in {rows} of its "
                f"{len(x)} rows; drop those, e.g. x[x.isfinite().flatten(1).all(1)]"
            )

    def _check_labels(self, x, device, joint):
        labels = self.labels
        if not isinstance(labels, torch.Tensor) or (joint and labels.dtype != torch.int64):
            raise ValueError("labels must be a tensor of whole numbers; convert them with .long()")
        if len(labels) != len(x):
            raise ValueError(f"data has {len(x)} rows but there are {len(labels)} labels")
        if labels.device != device:
            raise ValueError(f"labels are on {labels.device} but net is on {device}; move them")

    def check_inside(self, lower: float, upper: float) -> None:
        """Refuse data outside of the box that chains start in."""
        if self.function is not None:
            return
        low, high = self.x.min().item(), self.x.max().item()
        slack = overhang(lower, upper, torch.finfo(self.x.dtype).eps)
        if not (lower - slack <= low and high <= upper + slack):
            raise ValueError(
                f"data must lie in [{lower:g}, {upper:g}], where the chains are, but reaches from "
                f"{low:g} to {high:g}; rescale it, or widen the box of the buffer or the sampler"
            )

    def some(self, most: int) -> torch.Tensor:
        """Examples without noise: as many as there are, up to a number, or a thousand drawn."""
        if self.function is not None:
            return self.function(1000, torch.Generator(self.device).manual_seed(0))
        return self.x[:most]

    def distinct(self, most: int, source: torch.Generator):
        """Different examples without noise and their labels, or None: as many as there are."""
        if self.function is not None:
            return self.function(most, source), None
        rows = torch.randperm(len(self.x), generator=source, device=self.x.device)[:most]
        return self.x[rows], None if self.labels is None else self.labels[rows]

    def draw(self, n: int, source: torch.Generator):
        """A batch and its labels, or None; nothing here waits for the device."""
        labels = None
        if self.function is not None:
            x = self.function(n, source)
        else:
            rows = torch.randint(len(self.x), (n,), generator=source, device=self.x.device)
            x = self.x[rows]
            labels = None if self.labels is None else self.labels[rows]
        if self.flip:
            mirrored = torch.rand(n, generator=source, device=x.device) < 0.5
            mirrored = mirrored.reshape(n, *(1 for _ in self.shape))
            x = torch.where(mirrored, x.flip(-1), x)
        if self.noise:
            noise = torch.randn(x.shape, generator=source, dtype=x.dtype, device=x.device)
            x = x + self.noise * noise
        return x, labels


def _remedy(x) -> str:
    """How to make a tensor of what was given in place of one."""
    if isinstance(x, DataLoader | Dataset):
        items = "data.dataset" if isinstance(x, DataLoader) else "data"
        return (
            "make one of all its items, e.g. "
            f"torch.stack([torch.as_tensor(x) for x, *_ in {items}])"
        )
    return "convert it with torch.as_tensor"
