"""The toy energy models: a small network learns a density in the plane from its samples.

Each iteration draws a batch of data x₊, runs chains from the reference e^(−E₀), and descends

    E(x₊) − Σ w E(x₋)        w = 1/n for ULA, Jarzynski's weights for ESH

Several networks train at once, side by side in one batch, each on its own data, chains and
weights: small networks are bound by the cost of a call.

    python -m schuss.ebm.toy --work FOLDER [--only mixture-ESH]

keeps what each data set and sampler gave in the folder, and doesn't do it again.
"""

import argparse
import dataclasses
import itertools
import json
import math
import pathlib
import shutil
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from schuss.algorithms import ESH, ULA, Algorithm
from schuss.ebm.ema import EMA
from schuss.ebm.machine import machine
from schuss.ebm.negatives import Drawer
from schuss.targets.draws import normal_start, uniform_start
from schuss.targets.mixture import mixture
from schuss.targets.shapes import rings
from schuss.targets.target import Target

SIZES = (2, 32, 64, 64, 64, 1)
SLOPE, RATE, BATCH, STEPS = 0.05, 0.1, 100, 50
POINTS = 200
AVERAGED = 0.999
"""The weights are also averaged over about the last thousand iterations."""


class Data(NamedTuple):
    """A density in the plane, the chains' start with its energy E₀, and half the grid's side."""

    target: Target
    start: Callable[[np.random.Generator, int], np.ndarray]
    reference: Callable[[Tensor], Tensor]
    reach: float


def toy_data(name: str) -> Data:
    """ "mixture" (8 Gaussians, radius 1, sd .15; U[−2, 2]²) or "rings" (radii 1…4; N(0, 4I))."""
    if name == "mixture":
        angle = 2 * math.pi * np.arange(8) / 8
        target = mixture(np.stack([np.cos(angle), np.sin(angle)], axis=-1), 0.15)
        start = uniform_start(2, -2.0, 2.0)
        return Data(target, start, lambda x: torch.zeros_like(x[:, 0]), 2.0)
    if name == "rings":
        return Data(rings(), normal_start(2, sd=2.0), lambda x: (x * x).sum(dim=1) / 8, 6.0)
    raise ValueError(f"name must be 'mixture' or 'rings', got {name!r}")


class Method(NamedTuple):
    """A sampler, what its energy is to the network's output, and whether chains are weighed."""

    sampler: Algorithm
    scale: float
    weighted: bool


METHODS = {
    "ESH": Method(ESH(step_size=0.1), 1.0, True),
    "ULA": Method(ULA(step_size=0.1), 200.0, False),
}
"""As the paper has them: for ULA the energy is scaled by 2/ε², so that the gradient's step is 1."""


class StackedMLP(nn.Module):
    """Copies of the paper's 2-32-64-64-64-1 network, each for its own rows of the batch."""

    def __init__(self, seeds: Sequence[int]):
        super().__init__()
        self.copies = len(seeds)
        made = [_initial(seed) for seed in seeds]
        stacked = [torch.stack(parts) for parts in zip(*made, strict=True)]
        self.weights = nn.ParameterList(stacked[0::2])
        self.biases = nn.ParameterList(stacked[1::2])

    def forward(self, x: Tensor) -> Tensor:
        """Outputs (copies · n,) of positions (copies · n, 2), one copy after the other."""
        h = x.reshape(self.copies, -1, x.shape[-1])
        last = len(self.weights) - 1
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            h = torch.baddbmm(bias, h, weight)
            if layer < last:
                h = functional.leaky_relu(h, SLOPE)
        return h.reshape(-1)


def _initial(seed: int) -> list[Tensor]:
    """Weights and biases uniform in ±1/√(inputs), as PyTorch's linear layers have them."""
    generator = torch.Generator().manual_seed(seed)
    parts = []
    for inputs, outputs in itertools.pairwise(SIZES):
        for rows in (inputs, 1):
            drawn = torch.rand(rows, outputs, generator=generator)
            parts.append((2 * drawn - 1) / math.sqrt(inputs))
    return parts


@dataclasses.dataclass(frozen=True)
class ToyRun:
    """What was learned: outputs on the grid (seeds, points²) at the end and averaged, and how."""

    last: np.ndarray
    averaged: np.ndarray
    scale: float  # the energy is so many times the output
    gradients: int  # for each chain
    weight_ess: float | None  # effective share of the weights, over the last tenth
    frozen: int
    seconds: float
    processor_seconds: float


def grid(reach: float) -> np.ndarray:
    """The points at which densities are compared, (points², 2)."""
    line = np.linspace(-reach, reach, POINTS)
    return np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)


def train_toy(
    name: str,
    method: str,
    seeds: Sequence[int],
    iterations: int = 10_000,
    *,
    compile: bool | None = None,
    advance: Callable[[str], Any] = lambda done: None,
) -> ToyRun:
    """Train one network for each seed. `compile=None` compiles where there is a C++ compiler."""
    data, (sampler, scale, weighted) = toy_data(name), METHODS[method]
    if compile is None:
        compile = shutil.which("g++") is not None
    net = StackedMLP(seeds)
    average = EMA(net, AVERAGED)
    drawer = Drawer(
        net,
        sampler,
        steps=STEPS,
        keep="last",
        energy_scale=scale,
        compile=compile,
        gradient_dtype=None,
    )
    optimiser = torch.optim.SGD(net.parameters(), RATE)
    copies, rng = len(seeds), np.random.default_rng(list(seeds))
    shares, frozen = [], 0
    begun = time.perf_counter(), time.process_time()

    def draw(of) -> Tensor:
        return torch.tensor(of(rng, copies * BATCH), dtype=torch.float32)

    for iteration in range(iterations):
        start = draw(data.start)
        made = drawer(start, int(rng.integers(2**62)))
        frozen += int(made.frozen.sum())
        weights = torch.full((copies, BATCH), 1 / BATCH)
        if weighted:
            logs = data.reference(start) + made.log_weights
            weights = torch.softmax(logs.reshape(copies, BATCH), dim=1)
            if iteration >= 0.9 * iterations:
                shares.append(float((1 / (weights**2).sum(dim=1)).mean()) / BATCH)

        positive = net(draw(data.target.sample)).reshape(copies, BATCH).mean(dim=1)
        negative = (weights * net(made.x).reshape(copies, BATCH)).sum(dim=1)
        optimiser.zero_grad()
        (positive - negative).sum().backward()
        optimiser.step()
        average.update(net)
        if (iteration + 1) * 10 % iterations < 10:
            advance(f"{name}, {method}, {(iteration + 1) / iterations:.0%}")
    seconds = time.perf_counter() - begun[0], time.process_time() - begun[1]

    points = torch.tensor(grid(data.reach), dtype=torch.float32).repeat(copies, 1)
    with torch.no_grad():
        outputs = [
            module(points).reshape(copies, -1).double().numpy() for module in (net, average.module)
        ]
    ess = float(np.mean(shares)) if shares else None
    return ToyRun(
        last=outputs[0],
        averaged=outputs[1],
        scale=scale,
        gradients=iterations * STEPS,
        weight_ess=ess,
        frozen=frozen,
        seconds=seconds[0],
        processor_seconds=seconds[1],
    )


def normalised(energy: np.ndarray) -> np.ndarray:
    """e^(−E) on the grid, adding up to one along the last axis."""
    raw = np.exp(-(energy - energy.min(axis=-1, keepdims=True)))
    return raw / raw.sum(axis=-1, keepdims=True)


def truth(data: Data) -> np.ndarray:
    """The density that the data came from, on the grid."""
    return normalised(data.target.energy(np, grid(data.reach)))


def total_variation(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """½ Σ|p − q| along the last axis."""
    return np.abs(p - q).sum(axis=-1) / 2


def divergence(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """KL(p ‖ q) = Σ p log(p/q) along the last axis."""
    tiny = np.finfo(float).tiny
    return (p * (np.log(p + tiny) - np.log(q + tiny))).sum(axis=-1)


DATA = ("mixture", "rings")
DRAWN = 100
"""Points on a side of the pictures."""


def levels(density: np.ndarray) -> list[str]:
    """A picture as text: every other point in 256 levels of the root, whose feet are seen."""
    side = math.isqrt(density.size)
    height = np.sqrt(density.reshape(side, side)[:: side // DRAWN, :: side // DRAWN])
    rounded = np.round(255 * height / height.max()).astype(np.uint8)
    return [row.tobytes().hex() for row in rounded]


def run_toy(
    name: str,
    method: str,
    seeds: Sequence[int],
    iterations: int,
    work: pathlib.Path | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Train, and compare with the truth: rows, a picture of the first seed, and the time it took.

    With a folder the result is kept there, and read where it is there already.
    """
    kept = None if work is None else work / f"{name}-{method}.json"
    if kept is not None and kept.exists():
        for _ in range(10):
            options.get("advance", print)(f"{name}, {method}: there already")
        return json.loads(kept.read_text())
    data = toy_data(name)
    right = truth(data)
    run = train_toy(name, method, seeds, iterations, **options)
    rows = []
    for k, seed in enumerate(seeds):
        model = normalised(run.scale * run.averaged[k])
        last = normalised(run.scale * run.last[k])
        rows.append(
            {
                "data": name,
                "sampler": method,
                "seed": seed,
                "gradients": run.gradients,
                "distance": float(total_variation(model, right)),
                "divergence": float(divergence(right, model)),
                "distance_last": float(total_variation(last, right)),
                "distance_unscaled": float(total_variation(normalised(run.averaged[k]), right)),
                "weight_ess": run.weight_ess,
                "frozen": run.frozen,
            }
        )
    told = {
        "rows": rows,
        "minutes": run.seconds / 60,
        "processor_minutes": run.processor_seconds / 60,
        "reach": data.reach,
        "truth": levels(right),
        "learned": levels(normalised(run.scale * run.averaged[0])),
        "machine": machine(),
    }
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(told) + "\n")
    return told


def main() -> None:
    """The command, without any library that a bare machine may lack."""
    every = [f"{name}-{method}" for name in DATA for method in METHODS]
    parser = argparse.ArgumentParser(description="Toy energy models.")
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--only", choices=every)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--iterations", type=int, default=10_000)
    given = parser.parse_args()
    for both in every if given.only is None else [given.only]:
        name, method = both.split("-")
        told = run_toy(
            name,
            method,
            range(given.seeds),
            given.iterations,
            given.work,
            advance=lambda done: print(done, flush=True),
        )
        each = ", ".join(f"{row['distance']:.4f}" for row in told["rows"])
        minutes = told["minutes"]
        print(f"{both}: distances {each}; {minutes:.1f} minutes for all seeds", flush=True)


if __name__ == "__main__":
    main()
