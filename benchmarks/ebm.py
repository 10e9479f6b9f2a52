"""What training an energy of images costs on this device: `python benchmarks/ebm.py`.

The paper's network for CIFAR-10 in the recipe of its image models: bf16 gradients, channels last,
compiled steps in a CUDA graph. Calls of the sampler with n and 2n steps and calls of n and 2n bare
compiled gradients take turns, and each turn is timed. A step and a gradient are each the difference
of both calls, for a card's clock falls in the course of a call; a whole call has a gradient at its
start besides. Where in memory a graph's tensors lie makes it faster or slower by a percent, bare
gradient and step alike: both are captured anew several times, each time elsewhere, and the ratios
are those of the means over captures of the medians over turns. A row is {case, device, value, unit,
goal}.
On a CPU everything is small and only shows that the file runs.
Rows of other devices are kept.
"""

import argparse
import json
import pathlib
import statistics
import time

import numpy as np
import torch

import schuss
from schuss import ebm
from schuss.ebm.negatives import Drawer
from schuss.ebm.still import Still
from schuss.engines import torch as engine

RESULTS = pathlib.Path(__file__).parent / "results" / "ebm.json"
FORWARD = 812e6
"""Floating-point operations of one image through the network with 128 features; a gradient with
respect to the image is another such pass backwards."""


def sync():
    """Wait for the device."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def timed(function):
    """Seconds of one call, with all that it queued."""
    sync()
    begun = time.perf_counter()
    function()
    sync()
    return time.perf_counter() - begun


def bare(energy, dtype):
    """A compiled gradient on its own, and how to repeat it: in a CUDA graph where there is one."""

    def total(z):
        if dtype is None:
            return energy(z).sum()
        with torch.autocast(z.device.type, dtype=dtype):
            return energy(z).float().sum()

    gradient = torch.compile(torch.func.grad_and_value(total), fullgraph=True)

    def capture(x):
        x = x.clone(memory_format=torch.preserve_format)
        if not x.is_cuda:
            return lambda steps: [gradient(x) for _ in range(steps)]
        with torch.no_grad():
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(3):
                    gradient(x)
            torch.cuda.current_stream().wait_stream(side)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                gradient(x)
        return lambda steps: [graph.replay() for _ in range(steps)]

    return capture


def elsewhere(rng, device):
    """Forget all graphs and fill some memory, so that the next ones lie in other places."""
    engine._GRAPHS.clear()
    if device.type != "cuda":
        return []
    torch.cuda.empty_cache()
    sizes = rng.integers(2**21, 2**27, size=8)
    return [torch.empty(int(size), dtype=torch.uint8, device=device) for size in sizes]


def sampler_rows(device, features, batch, captures, turns, steps=50):
    """A sampler's step against the bare gradient, and the arithmetic it reaches."""
    cuda = device.type == "cuda"
    dtype = torch.bfloat16 if cuda else None
    torch.manual_seed(0)
    net = ebm.ConvEnergy(features)
    net = net.to(device, memory_format=torch.channels_last) if cuda else net
    energy = Still(net, dtype).update()
    x = torch.rand(batch, 3, 32, 32, device=device) * 2 - 1
    x = x.to(memory_format=torch.channels_last) if cuda else x
    capture, rng, rows = bare(energy, dtype), np.random.default_rng(batch), []
    for name, algorithm in (
        ("ESH", schuss.ESH(step_size=0.5)),
        ("ULA", schuss.ULA(step_size=0.01)),
    ):
        once, twice = (
            Drawer(
                energy,
                algorithm,
                steps=count,
                keep="reservoir",
                energy_scale=2e4,
                compile=True,
                gradient_dtype=dtype,
            )
            for count in (steps, 2 * steps)
        )
        medians = []
        for _ in range(captures):
            filled = elsewhere(rng, device)
            gradients = capture(x)
            once(x, 1)
            twice(x, 1)
            del filled
            calls = (
                lambda: once(x, 2),  # noqa: B023
                lambda: gradients(steps),  # noqa: B023
                lambda: twice(x, 2),  # noqa: B023
                lambda: gradients(2 * steps),  # noqa: B023
            )
            seen = [[timed(call) for call in calls] for _ in range(turns)]
            medians.append([statistics.median(part) for part in zip(*seen, strict=True)])
        whole, short, double, long = np.transpose(medians)
        ratios = (double - whole) / (long - short)
        whole, short, double, long = np.mean(medians, axis=0)
        step, gradient = double - whole, long - short
        case = f"{name}, n_f = {features}, batch {batch}"
        rows.append((f"{case}: step/compiled gradient", step / gradient, "ratio", "≤ 1.02"))
        rows.append((f"{case}: the least of {captures} captures", ratios.min(), "ratio", None))
        rows.append((f"{case}: the most of {captures} captures", ratios.max(), "ratio", None))
        rows.append(
            (f"{case}: call of {steps} steps/as many gradients", whole / short, "ratio", None)
        )
        rows.append((f"{case}: step", step / steps * 1e3, "ms", None))
        rows.append((f"{case}: compiled gradient", gradient / steps * 1e3, "ms", None))
        if features == 128:
            rate = 2 * FORWARD * batch * steps / step / 1e12
            rows.append((f"{case}: arithmetic", rate, "TFLOP/s", "≥ 400"))
    return rows


def training_rows(device, features, batch, steps, iterations):
    """An epoch of 100 iterations of training, the optimiser and the buffer included."""
    cuda = device.type == "cuda"
    torch.manual_seed(0)
    if cuda:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    data = torch.rand(50_000 if cuda else 200, 3, 32, 32, device=device) * 2 - 1
    trainer = ebm.Trainer(
        ebm.ConvEnergy(features).to(device),
        data,
        sampler=schuss.ESH(step_size=0.5),
        steps=steps,
        buffer=ebm.ReplayBuffer(10_000 if cuda else 100, (3, 32, 32), device=device),
        batch=batch,
        precision="bf16" if cuda else None,
        every=5,
    )
    trainer.fit(5)
    seconds = timed(lambda: trainer.fit(iterations)) / iterations * 100
    case = f"training, n_f = {features}, batch {batch}, {steps} steps"
    rows = [(f"{case}: 100 iterations", seconds, "s", "≤ 22")]
    if cuda:
        peak = torch.cuda.max_memory_allocated() / 1e9
        rows.append((f"{case}: memory", peak, "GB", "≤ 20"))
    return rows


def main():
    """Measure, keep the rows of other devices, write and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=pathlib.Path, default=RESULTS)
    given = parser.parse_args()
    cuda = torch.cuda.is_available()
    device = torch.device("cuda" if cuda else "cpu")
    name = torch.cuda.get_device_name() if cuda else "cpu"
    torch.backends.cudnn.benchmark = True
    if cuda:
        found = sampler_rows(device, 128, 500, captures=8, turns=5)
        found += sampler_rows(device, 128, 250, captures=8, turns=7)
        found += training_rows(device, 128, 500, steps=100, iterations=25)
    else:
        found = sampler_rows(device, 8, 8, captures=2, turns=3, steps=3)
        found += training_rows(device, 8, 8, steps=3, iterations=5)
    rows = [
        {"case": case, "device": name, "value": float(f"{value:.4g}"), "unit": unit}
        | {"goal": goal if cuda else None}
        for case, value, unit, goal in found
    ]
    if given.out.exists():
        rows += [row for row in json.loads(given.out.read_text()) if row["device"] != name]
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n")
    for row in rows:
        goal = f"   goal {row['goal']}" if row["goal"] else ""
        print(f"{row['device']}: {row['case']}: {row['value']:g} {row['unit']}{goal}")
    print(f"written to {given.out}")


if __name__ == "__main__":
    main()
