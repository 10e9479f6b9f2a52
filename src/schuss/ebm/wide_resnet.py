"""JEM's original network, WRN-28-10 without normalisation, and its checkpoint if one has it.

Parameters are named as in that checkpoint; the layers that it holds but doesn't use for the joint
energy (`f.linear`, `energy_output`) are left out.
"""

import pathlib
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

LEAK = 0.2
UNUSED = ("f.linear.", "energy_output.")


class WideBlock(nn.Module):
    """conv(leaky(conv(leaky(x)))) + shortcut(x); the second convolution has the stride."""

    def __init__(self, inward: int, outward: int, stride: int):
        super().__init__()
        self.conv1 = nn.Conv2d(inward, outward, 3, padding=1)
        self.conv2 = nn.Conv2d(outward, outward, 3, stride, padding=1)
        same = inward == outward and stride == 1
        self.shortcut = nn.Sequential(*([] if same else [nn.Conv2d(inward, outward, 1, stride)]))

    def forward(self, x: Tensor) -> Tensor:
        """The block."""
        hidden = functional.leaky_relu(self.conv1(functional.leaky_relu(x, LEAK)), LEAK)
        return self.conv2(hidden) + self.shortcut(x)


class WideTrunk(nn.Module):
    """Three stages of (depth − 4)/6 blocks, then the mean over the image."""

    def __init__(self, depth: int, width: int):
        super().__init__()
        blocks, sizes = (depth - 4) // 6, (16, 16 * width, 32 * width, 64 * width)
        self.conv1 = nn.Conv2d(3, sizes[0], 3, padding=1)
        stages = [
            nn.Sequential(
                WideBlock(sizes[k], sizes[k + 1], 1 if k == 0 else 2),
                *(WideBlock(sizes[k + 1], sizes[k + 1], 1) for _ in range(blocks - 1)),
            )
            for k in range(3)
        ]
        self.layer1, self.layer2, self.layer3 = stages
        self.features = sizes[3]

    def forward(self, x: Tensor) -> Tensor:
        """Features (n, 64 width)."""
        x = self.layer3(self.layer2(self.layer1(self.conv1(x))))
        return functional.leaky_relu(x, LEAK).mean(dim=(2, 3))


class WideResNet(nn.Module):
    """Logits of 32×32 colour images."""

    def __init__(self, depth: int = 28, width: int = 10, classes: int = 10):
        super().__init__()
        if depth < 10 or (depth - 4) % 6:
            raise ValueError(f"depth must be 6n + 4 with n ≥ 1, got {depth}; pass e.g. depth=28")
        self.f = WideTrunk(depth, width)
        self.class_output = nn.Linear(self.f.features, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Logits (n, classes)."""
        return self.class_output(self.f(x))


def load_jem(
    path: str | pathlib.Path, net: WideResNet | None = None
) -> tuple[WideResNet, Tensor | None]:
    """The network of JEM's checkpoint and its replay buffer, read without executing anything."""
    held: Any = torch.load(path, map_location="cpu", weights_only=True)
    if not isinstance(held, dict) or "model_state_dict" not in held:
        raise ValueError(
            f"path {str(path)!r} isn't a checkpoint of JEM; it must hold 'model_state_dict'"
        )
    net = WideResNet() if net is None else net
    weights = {k: v for k, v in held["model_state_dict"].items() if not k.startswith(UNUSED)}
    try:
        net.load_state_dict(weights)
    except RuntimeError as error:
        first = str(error).splitlines()[1].strip() if "\n" in str(error) else str(error)
        raise ValueError(
            f"the checkpoint {str(path)!r} is of another architecture ({first}); pass net= of its "
            "depth and width, without normalisation"
        ) from None
    return net, held.get("replay_buffer")
