"""The paper's networks, a small one for a CPU, and a residual classifier for joint energies."""

import itertools
from typing import Any

import torch
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm

from schuss.arguments import whole

SLOPE = 0.05


class ToyMLP(nn.Sequential):
    """dim-32-64-64-64-1 with LeakyReLU(0.05): the paper's energy in the plane."""

    def __init__(self, dim: int = 2):
        sizes = (whole("dim", dim, 1), 32, 64, 64, 64)
        layers = [
            part
            for a, b in itertools.pairwise(sizes)
            for part in (nn.Linear(a, b), nn.LeakyReLU(SLOPE))
        ]
        super().__init__(*layers, nn.Linear(sizes[-1], 1))


class ConvEnergy(nn.Module):
    """The paper's energy of images: 3×3, three times 4×4 with stride 2, then all that is left.

    n_f, 2n_f, 4n_f and 8n_f features, LeakyReLU(0.05), spectral norm on every layer. The last layer
    is summed in 32 bits: in 16 an energy times 2·10⁴ would have lost all that changes.
    """

    under_autocast = ("layers",)

    def __init__(
        self, features: int = 128, channels: int = 3, size: int = 32, spectral: bool = True
    ):
        super().__init__()
        for name, value in (("features", features), ("channels", channels)):
            whole(name, value, 1)
        whole("size", size, 8)
        norm = spectral_norm if spectral else (lambda layer: layer)
        layers: list[nn.Module] = [norm(nn.Conv2d(channels, features, 3, 1, 1)), _leaky()]
        left = size
        for k in (1, 2, 4):
            layers += [norm(nn.Conv2d(k * features, 2 * k * features, 4, 2, 1)), _leaky()]
            left //= 2
        self.layers = nn.Sequential(*layers)
        self.last: Any = norm(nn.Conv2d(8 * features, 1, left))

    def forward(self, x):
        """Energies (n,)."""
        hidden, weight = self.layers(x), self.last.weight
        if hidden.shape[1:] != weight.shape[1:]:
            raise ValueError(
                f"x has images of {x.shape[-2]}×{x.shape[-1]}, which this net isn't made for; pass "
                "their size= to ConvEnergy"
            )
        # A product and a sum, which compiled code fuses with the layers beside it; cuDNN is slow
        # at convolutions to a single number.
        with torch.autocast(x.device.type, enabled=False):
            return (hidden.to(weight.dtype) * weight).sum((1, 2, 3)) + self.last.bias


class StridedEnergy(nn.Sequential):
    """An energy of images that one core trains in a minute: strided convolutions, SiLU.

    A 5×5 convolution to `features` maps and 3×3 ones to twice as many, each of stride 2, until 2×2
    pixels are left; a linear layer. Nothing bounds its slope but the Trainer's penalty.
    """

    def __init__(self, features: int = 16, channels: int = 1, size: int = 28):
        for name, value in (("features", features), ("channels", channels)):
            whole(name, value, 1)
        left, inside, layers = whole("size", size, 4), channels, []
        while left > 2:
            width = 3 if layers else 5
            layers += [nn.Conv2d(inside, features, width, 2, width // 2), nn.SiLU()]
            inside, features, left = features, 2 * features, (left + 1) // 2
        super().__init__(*layers, nn.Flatten(), nn.Linear(inside * left**2, 1))


class ResidualClassifier(nn.Module):
    """Logits from residual blocks without normalisation, which a joint energy can't have.

    Three stages of `width`, 2 and 4 times as many features; each halves the image but the first.
    The last convolution of a block begins at zero, so that the net begins as a shallow one.
    """

    under_autocast = ("first", "blocks", "last")

    def __init__(self, classes: int = 10, channels: int = 3, width: int = 64, blocks: int = 2):
        super().__init__()
        for name, value in (("classes", classes), ("width", width), ("blocks", blocks)):
            whole(name, value, 1)
        self.first = nn.Conv2d(channels, width, 3, 1, 1)
        stages = [
            Residual(width * (k if first else m), width * m, 2 if first and m > 1 else 1)
            for k, m in ((1, 1), (1, 2), (2, 4))
            for first in [True] + [False] * (blocks - 1)
        ]
        self.blocks = nn.Sequential(*stages)
        self.last = nn.Linear(4 * width, classes)

    def forward(self, x):
        """Logits (n, classes)."""
        hidden = nn.functional.leaky_relu(self.blocks(self.first(x)), SLOPE)
        return self.last(hidden.mean((2, 3)))


class Residual(nn.Module):
    """x + conv(leaky(conv(leaky(x)))), with a strided 1×1 convolution beside it where needed."""

    def __init__(self, inward: int, outward: int, stride: int):
        super().__init__()
        first = nn.Conv2d(inward, outward, 3, stride, 1)
        second = nn.Conv2d(outward, outward, 3, 1, 1)
        nn.init.zeros_(second.weight)
        self.inner = nn.Sequential(_leaky(), first, _leaky(), second)
        same = inward == outward and stride == 1
        self.beside = nn.Identity() if same else nn.Conv2d(inward, outward, 1, stride)

    def forward(self, x):
        """The block."""
        return self.beside(x) + self.inner(x)


def _leaky():
    return nn.LeakyReLU(SLOPE)
