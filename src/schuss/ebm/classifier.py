"""A small residual classifier, trained here, whose pooled features measure image quality.

Six 3×3 convolutions with batch normalisation and a residual pair after the second and the last:

    stem w – 2w, halve – (residual 2w) – 4w, halve – 8w, halve – (residual 8w) – mean – linear

The features are the 8w means (512 for w = 64). SGD with Nesterov momentum, one cycle of the
learning rate, shifts by up to an eighth of the image and, where asked for, label smoothing, decay
of the weights and flips.
"""

import json
import pathlib
from collections.abc import Callable
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional

from schuss.ebm.data import Images, scaled
from schuss.ebm.randomness import seeded
from schuss.ebm.recipes import Classifier

MOMENTUM = 0.9


def _block(inside: int, out: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inside, out, 3, padding=1, bias=False), nn.BatchNorm2d(out), nn.ReLU()
    )


class FeatureClassifier(nn.Module):
    """Logits of images, and the features under them."""

    def __init__(self, channels: int = 3, width: int = 64, classes: int = 10):
        super().__init__()
        self.sizes = {"channels": channels, "width": width, "classes": classes}
        self.stem = _block(channels, width)
        self.second = _block(width, 2 * width)
        self.second_pair = nn.Sequential(_block(2 * width, 2 * width), _block(2 * width, 2 * width))
        self.third = _block(2 * width, 4 * width)
        self.fourth = _block(4 * width, 8 * width)
        self.fourth_pair = nn.Sequential(_block(8 * width, 8 * width), _block(8 * width, 8 * width))
        self.head = nn.Linear(8 * width, classes)

    def features(self, x: Tensor) -> Tensor:
        """Means over the last map, (n, 8 width)."""
        x = functional.max_pool2d(self.second(self.stem(x)), 2)
        x = x + self.second_pair(x)
        x = functional.max_pool2d(self.third(x), 2)
        x = functional.max_pool2d(self.fourth(x), 2)
        return (x + self.fourth_pair(x)).mean(dim=(2, 3))

    def forward(self, x: Tensor) -> Tensor:
        """Logits, (n, classes)."""
        return self.head(self.features(x))


def shifted(x: Tensor, reach: int, flip: bool, generator: torch.Generator) -> Tensor:
    """Each image moved by up to `reach` pixels either way, edges repeated, half of them flipped."""
    n, _, height, width = x.shape
    padded = functional.pad(x, (reach,) * 4, mode="replicate")
    where = torch.randint(2 * reach + 1, (2, n), generator=generator, device=x.device)
    rows = where[0][:, None] + torch.arange(height, device=x.device)
    columns = where[1][:, None] + torch.arange(width, device=x.device)
    if flip:
        turned = torch.rand(n, generator=generator, device=x.device) < 0.5
        columns = torch.where(turned[:, None], columns.flip(1), columns)
    chains = torch.arange(n, device=x.device)[:, None, None]
    moved = padded.permute(0, 2, 3, 1)[chains, rows[:, :, None], columns[:, None, :]]
    return moved.permute(0, 3, 1, 2)


def train_classifier(
    images: Images,
    how: Classifier,
    *,
    flip: bool = False,
    seed: int = 0,
    device: Any = "cpu",
    advance: Callable[[str], None] = lambda done: None,
) -> FeatureClassifier:
    """Train on all training images; bf16 arithmetic on a GPU."""
    device = torch.device(device)
    x, y = scaled(images.train, device), torch.as_tensor(images.train_labels).to(device)
    generator = torch.Generator(device).manual_seed(seed)
    with seeded(seed):
        net = FeatureClassifier(images.shape[0], how.width, int(y.max()) + 1)
    net = net.to(device, memory_format=torch.channels_last).train()  # pyright: ignore
    batch = min(how.batch, len(x))
    steps = how.epochs * (len(x) // batch)
    optimiser = torch.optim.SGD(
        net.parameters(), how.rate, MOMENTUM, weight_decay=how.decay, nesterov=True
    )
    step = 0
    for epoch in range(how.epochs):
        order = torch.randperm(len(x), generator=generator, device=device)
        for chosen in order[: len(x) // batch * batch].view(-1, batch):
            inputs = shifted(x[chosen], max(1, images.shape[1] // 8), flip, generator)
            with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
                logits = net(inputs.to(memory_format=torch.channels_last))
            loss = functional.cross_entropy(
                logits.float(), y[chosen], label_smoothing=how.smoothing
            )
            optimiser.zero_grad()
            loss.backward()
            step += 1
            optimiser.param_groups[0]["lr"] = how.rate * _cycle(step / steps)
            optimiser.step()
        advance(f"classifier, epoch {epoch + 1} of {how.epochs}")
    net.eval().requires_grad_(False)
    for weight in _wide(net.state_dict()).values():
        weight.copy_(weight.half())
    return net


def _wide(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Matrices and kernels, which are nearly all of the weights and are kept in 16 bits."""
    return {name: tensor for name, tensor in tensors.items() if tensor.dim() > 1}


def _cycle(done: float) -> float:
    """Up in a straight line over the first quarter, then down to nothing."""
    return min(done / 0.25, (1 - done) / 0.75)


@torch.no_grad()
def features(net: FeatureClassifier, x: Tensor, batch: int = 1000) -> Tensor:
    """Features of images in [−1, 1] in float32, (n, 8 width), on the host."""
    where = next(net.parameters()).device
    return torch.cat([net.features(part.to(where)).cpu() for part in x.split(batch)])


@torch.no_grad()
def accuracy(net: FeatureClassifier, pixels: Any, labels: Any, batch: int = 1000) -> float:
    """The share of images whose largest logit is that of their class."""
    where = next(net.parameters()).device
    hits = 0
    for x, y in zip(scaled(pixels).split(batch), torch.as_tensor(labels).split(batch), strict=True):
        hits += int((net(x.to(where)).argmax(dim=1).cpu() == y).sum())
    return hits / len(labels)


def save_classifier(
    net: FeatureClassifier, path: str | pathlib.Path, about: dict[str, Any] | None = None
) -> None:
    """Weights as safetensors, with the sizes and whatever is to be said about them as JSON.

    Matrices and kernels are written in 16 bits, which is what training rounds them to.
    """
    told = {"sizes": json.dumps(net.sizes), "about": json.dumps(about or {})}
    weights = net.state_dict()
    weights |= {name: value.half() for name, value in _wide(weights).items()}
    weights = {name: value.contiguous().cpu() for name, value in weights.items()}
    save_file(weights, str(path), metadata=told)


def load_classifier(path: str | pathlib.Path, device: Any = "cpu") -> FeatureClassifier:
    """The classifier that `save_classifier` wrote."""
    with safe_open(str(path), framework="pt") as held:
        told = held.metadata() or {}
    if "sizes" not in told:
        raise ValueError(f"path {str(path)!r} isn't a classifier of this library; train one anew")
    net = FeatureClassifier(**json.loads(told["sizes"]))
    net.load_state_dict(load_file(str(path)))
    return net.to(device).eval().requires_grad_(False)
