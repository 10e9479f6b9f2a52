"""What a step costs next to the bare gradient: `make bench`.

Every ratio is measured in one run: the step and what it is compared with take turns, each turn is
timed, and the ratio is that of the medians. A row is {case, engine, device, ratio,
microseconds, goal}; microseconds are for one step of the whole batch. Rows of devices that this
machine doesn't have are kept from the file.
"""

import argparse
import itertools
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

import schuss
from schuss.core.collect import collecting
from schuss.problem import launch, pose

RESULTS = pathlib.Path(__file__).parent / "results" / "speed.json"


def compare(step, base, turns, budget=2.0):
    """Seconds for `step()` and `base()`: medians over turns, after a warm-up."""
    step(), base()
    times = ([], [])
    begun = time.perf_counter()
    while len(times[0]) < turns and time.perf_counter() - begun < budget * 2:
        for function, record in zip((step, base), times, strict=True):
            start = time.perf_counter()
            function()
            record.append(time.perf_counter() - start)
    return statistics.median(times[0]), statistics.median(times[1])


def row(case, engine, device, step, base, goal, steps, microseconds_goal=False):
    """A line of the table; `base` is None where the goal is in microseconds."""
    micro = step / steps * 1e6
    ratio = None if base is None else step / base
    return {
        "case": case,
        "engine": engine,
        "device": device,
        "ratio": None if ratio is None else round(ratio, 3),
        "microseconds": round(micro, 3),
        "goal": _goal(goal, microseconds_goal),
    }


def _goal(goal, microseconds):
    if goal is None:
        return None
    return f"≤ {goal} µs" if microseconds else f"≤ {goal}"


def runner(problem, algorithm, steps, keep="last"):
    """A function that makes `steps` steps, and the gradient on its own."""
    job, state, _ = launch(problem, algorithm, 0, speed=False, weighted=keep != "last")
    collection = collecting(keep, windowed=job.kernel.windowed)
    return lambda: problem.engine.collect(job, state, None, 0, steps, collection)[0]


def bare(problem, steps, energies=False, alike=False):
    """A function that evaluates the gradient so many times, in one compiled JAX loop.

    The energy is left out by the compiler unless it is summed. `alike` is with our own options.
    """
    import jax

    from schuss.engines.compiling import options
    from schuss.engines.jax import precision

    gradient = problem.grad_fn

    def again(i, now):
        x, total = now
        energy, g = gradient(x)
        return x - 1e-9 * g, total + energy if energies else total

    def loop(x):
        return jax.lax.fori_loop(0, steps, again, (x, x[:, 0]))

    chosen = options(jax.default_backend()) if alike else {}
    compiled = jax.jit(loop, compiler_options=chosen)

    def run():
        with precision(problem.x.dtype):
            return compiled(problem.x)

    return run


def jax_rows():
    """JAX on the CPU: the 2-D mixture with 500 chains, and one chain in 50 dimensions."""
    import jax

    device = jax.devices()[0].device_kind
    rng = np.random.default_rng(0)

    def wait(function):
        return lambda: jax.block_until_ready(function())

    rows = []
    mixture = schuss.targets.mog()
    problem = pose(mixture, init=mixture.start(rng, 500))
    for case, algorithm, keep, goal in (
        ("mixture, 500 chains", schuss.ESH(), "last", 1.25),
        ("mixture, 500 chains, reservoir", schuss.ESH(), "reservoir", None),
        ("mixture, 500 chains, noise", schuss.ESH(refresh=2.0), "last", None),
    ):
        step = wait(runner(problem, algorithm, 1000, keep))
        times = compare(step, wait(bare(problem, 1000)), 15)
        rows.append(row(f"{case}: step/gradient", "jax", device, *times, goal, 1000))

    gaussian = schuss.targets.icg()
    for chains, steps in ((1, 20_000), (500, 200)):
        problem = pose(gaussian, init=gaussian.start(rng, chains))
        plain = wait(runner(problem, schuss.ESH(), steps))
        noisy = wait(runner(problem, schuss.ESH(refresh=14.0), steps))
        noise, quiet = compare(noisy, plain, 25)
        name = f"50-D Gaussian, {chains} chain{'s' if chains > 1 else ''}"
        if chains == 1:
            rows.append(row(f"{name}: step", "jax", device, quiet, None, 2.0, steps, True))
        rows.append(row(f"{name}: with noise/without", "jax", device, noise, quiet, 1.5, steps))
    return rows


def torch_rows():
    """PyTorch: the 2-D network and the convolutional one, on the CPU and on a GPU."""
    import torch
    from torch import nn

    cuda = torch.cuda.is_available()
    device = torch.device("cuda" if cuda else "cpu")
    name = torch.cuda.get_device_name() if cuda else "cpu"

    def leaky():
        return nn.LeakyReLU(0.05)

    def mlp():
        sizes = (2, 32, 64, 64, 64)
        layers = [part for a, b in itertools.pairwise(sizes) for part in (nn.Linear(a, b), leaky())]
        return nn.Sequential(*layers, nn.Linear(64, 1))

    def conv(width):
        layers = [nn.Conv2d(3, width, 3, 1, 1), leaky()]
        for k in (1, 2, 4):
            layers += [nn.Conv2d(k * width, 2 * k * width, 4, 2, 1), leaky()]
        return nn.Sequential(*layers, nn.Conv2d(8 * width, 1, 4), nn.Flatten())

    def gradient(net, dtype=None):
        def total(z):
            if dtype is None:
                return net(z).sum()
            with torch.autocast(z.device.type, dtype=dtype):
                energy = net(z)
            return energy.float().sum()

        return torch.func.grad_and_value(total)

    def eager(net, x, steps):
        """The gradient as one would write it by hand, on a network whose weights are frozen."""
        net.requires_grad_(False)

        def run():
            for _ in range(steps):
                y = x.detach().requires_grad_()
                torch.autograd.grad(net(y).sum(), y)
            sync()

        return run

    def compiled(function, x, steps):
        function = torch.compile(function, fullgraph=True)

        def run():
            with torch.no_grad():
                for _ in range(steps):
                    function(x)
            sync()

        return run

    def sync():
        if cuda:
            torch.cuda.synchronize()

    def waited(function):
        def run():
            function()
            sync()

        return run

    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    rows = []
    small, x = mlp().to(device), torch.randn(500, 2, device=device)
    step = waited(runner(pose(energy=small, init=x), schuss.ESH(), 100))
    if not cuda:
        times = compare(step, eager(small, x, 100), 25, budget=4.0)
        rows.append(
            row("2-D MLP, 500 chains, eager: step/gradient", "torch", name, *times, 1.35, 100)
        )
    problem = pose(energy=small, init=x, compile=True)
    step = waited(runner(problem, schuss.ESH(), 100))
    times = compare(step, compiled(gradient(small), x, 100), 25, budget=4.0)
    label = "2-D MLP, 500 chains, compiled: step"
    if cuda:
        rows.append(row(label, "torch", name, times[0], None, 100, 100, True))
        dtype, width, batch, steps, goal = torch.bfloat16, 128, 500, 50, 1.02
    else:
        rows.append(row(f"{label}/gradient", "torch", name, *times, 1.15, 100))
        dtype, width, batch, steps, goal = None, 32, 32, 10, 1.08
    net = conv(width).to(device, memory_format=torch.channels_last)
    images = torch.randn(batch, 3, 32, 32, device=device).to(memory_format=torch.channels_last)
    case = f"conv n_f={width}, batch {batch}"
    if not cuda:
        step = waited(runner(pose(energy=net, init=images), schuss.ESH(step_size=0.5), steps))
        times = compare(step, eager(net, images, steps), 15, budget=6.0)
        rows.append(row(f"{case}, eager: step/gradient", "torch", name, *times, goal, steps))
        return rows
    problem = pose(energy=net, init=images, compile=True, gradient_dtype=dtype)
    step = waited(runner(problem, schuss.ESH(step_size=0.5), steps))
    times = compare(step, compiled(gradient(net, dtype), images, steps), 15, budget=6.0)
    rows.append(row(f"{case}, bf16, compiled: step/gradient", "torch", name, *times, goal, steps))
    problem = pose(energy=net, init=images, gradient_dtype=dtype)
    step = waited(runner(problem, schuss.ESH(step_size=0.5), steps))
    times = compare(step, compiled(gradient(net, dtype), images, steps), 10, budget=6.0)
    rows.append(
        row(f"{case}, bf16, eager: step/compiled gradient", "torch", name, *times, None, steps)
    )
    return rows


def sample_rows():
    """Late windows of `schuss.sample`, host work included: time for a gradient of one chain.

    On one core: the process has been bound to it before JAX made its threads. The loop is compiled
    with the energy in it, as in long runs, or stepwise, as in short ones. The bare gradient is
    compiled as JAX does it unless told otherwise; `alike` is what it takes with the options that
    our loops have.
    """
    import jax

    from schuss import targets

    device, rows = jax.devices()[0].device_kind, []
    cases = (
        ("32-D Gaussian", targets.isotropic(32), 1.5),
        ("100-D Gaussian", targets.isotropic(100), 2.5),
        ("Brownian, 32-D", targets.get("brownian"), 1.5),
    )
    both = (True, False)
    for (name, target, goal), exact, fused in itertools.product(cases, both, both):
        step, base, _, gradients = sampling(target, exact, fused=fused)
        seconds, _ = compare(step, base, 40)
        kind = ("exact" if exact else "unadjusted") + ("" if fused else ", stepwise")
        case = f"sample, {name}, {kind}: gradient of a chain"
        goal = goal if fused else None
        rows.append(row(case, "jax", device, seconds, None, goal, gradients, True))
    target = targets.get("sparse-logistic")
    for learnt, chains in itertools.product((False, True), (8, 64, 256)):
        step, base, alike, gradients = sampling(target, True, chains, learnt)
        what = "learnt metric" if learnt else "diagonal metric"
        case = f"sample, sparse logistic, 51-D, {chains} chains, {what}: gradient/bare"
        for other, name, goal in ((base, "", 1.15), (alike, " compiled alike", None)):
            times = compare(step, other, 20, budget=6.0)
            rows.append(row(case + name, "jax", device, *times, goal, gradients))
    return rows


FIRST = """
import time, schuss
from schuss import targets
target = {target}
begun = time.perf_counter()
schuss.sample(target, progress=False, seed={seed})
print(time.perf_counter() - begun)
"""


def first_rows():
    """`schuss.sample` in a fresh process: what a user waits for, compilation and all."""
    import jax

    device, rows = jax.devices()[0].device_kind, []
    cases = (
        ("10-D Gaussian", "targets.isotropic(10)", 3_000_000),
        ("eight schools", "targets.get('eight-schools')", 3_000_000),
        ("hierarchical regression, 45-D", "targets.get('hierarchical-regression')", None),
    )
    for name, target, goal in cases:
        seconds = []
        for seed in range(5):
            text = FIRST.format(target=target, seed=seed)
            told = subprocess.run([sys.executable, "-c", text], capture_output=True, check=True)
            seconds.append(float(told.stdout))
        case = f"sample, {name}: 1000 draws of 4 chains in a new process"
        rows.append(row(case, "jax", device, statistics.median(seconds), None, goal, 1, True))
    return rows


def sampling(target, exact, chains=8, learnt=False, fused=True):
    """A late window with all that is done on the host, and as many bare gradients.

    Each a function, the gradients twice, and their number. With `learnt` the parameters are those
    that a run freezes, else short steps in the target's own coordinates.
    """
    import jax

    from schuss.sampling.adapt import LONGEST
    from schuss.sampling.initialise import initialise
    from schuss.sampling.run import Plan, run
    from schuss.sampling.state import KernelParams, Transform
    from schuss.sampling.window import Setting, window
    from schuss.tuning import metric

    start = target.start(np.random.default_rng(0), chains)
    problem = pose(target, init=start)
    if learnt:
        state = next(state for state in run(Plan(problem, 0, exact), start) if state.frozen)
        transform, params = state.transform, state.params
    else:
        state, transform = initialise(problem, start, 0), Transform(metric.unit(target.dim))
        params = KernelParams(np.full(chains, 0.1), target.dim**0.5)
    setting = Setting(exact, transform, params, frozen=True, fused=fused)

    def call():
        return window(problem, setting, state.chains, LONGEST, (0, 2, 0)).step

    steps = len(call().energy)
    base, alike = (bare(problem, steps, True, same) for same in (False, True))
    return (
        call,
        lambda: jax.block_until_ready(base()),
        lambda: jax.block_until_ready(alike()),
        steps * chains,
    )


def on_one_core():
    """The rows of `sample_rows` from a process of their own."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "sample.json"
        command = [sys.executable, __file__, "--only", "sample", "--out", str(out)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return json.loads(out.read_text())


def show(rows):
    """Print the table."""
    from rich.console import Console
    from rich.table import Table

    table = Table("case", "engine", "device", "ratio", "µs a step", "goal")
    for entry in rows:
        cells = [
            entry[key] for key in ("case", "engine", "device", "ratio", "microseconds", "goal")
        ]
        table.add_row(*("" if cell is None else str(cell) for cell in cells))
    Console(width=130).print(table)


def main():
    """Measure, keep the rows of other devices, write and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=("jax", "torch", "sample", "first"))
    parser.add_argument("--out", type=pathlib.Path, default=RESULTS)
    options = parser.parse_args()
    parts = {"jax": jax_rows, "torch": torch_rows, "sample": sample_rows, "first": first_rows}
    if options.only == "sample" and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    elif options.only is None:
        parts["sample"] = on_one_core
    chosen = [options.only] if options.only else list(parts)
    rows = [entry for name in chosen for entry in parts[name]()]
    measured = {(entry["case"], entry["engine"], entry["device"]) for entry in rows}
    if options.out.exists():
        old = json.loads(options.out.read_text())
        rows += [e for e in old if (e["case"], e["engine"], e["device"]) not in measured]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n")
    show(rows)
    print(f"written to {options.out}")


if __name__ == "__main__":
    main()
