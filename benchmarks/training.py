"""Whether energies train without a person's care: `python benchmarks/training.py [--data FILE]`.

Digits and 10,000 images of MNIST (with --data); four nets, three learning rates, two samplers,
three seeds. Each is trained with `energy_scale="auto"`, where the loss bounds the slope, and at
five fixed scales without that (one seed). All runs are alike but for that: 500 iterations of 20
steps, Adam. A run is {data, net, sampler, lr, rule, seed, device}, `rule` being "auto" or a scale,
with

    rollbacks       how often it went back to an earlier state; gave_up: whether it ended so
    distance        of the buffer's chains to test images: Fréchet, features of a classifier
    from_noise      of chains from noise with the average net, as many steps as in 15 iterations
    gradients       of the sampler for each chain; seconds: of training

SGLD is Langevin dynamics as it is run for images, x ← clamp(x − α clip(∇f, .03) + .005 z) from the
last state, the squares of energies regularised; its rules are α, and the best of the three counts.

and a row of the table {data, net, sampler, lr, seed, device, rollbacks, distance, best fixed
distance, gradients}. All runs take about 5 hours of one core; those of seed 0 come first. A run
that is stopped goes on with those that are missing. --minutes ends it, --only takes runs whose key
has all of these words. Several processes share the work by --part 0/4 --out part0.json, …, and
--join takes the rows of such files over.
"""

import argparse
import itertools
import logging
import math
import pathlib
import subprocess
import tempfile
import time

import torch
from rows import Rows, rounded, until
from torch import nn

import schuss
from schuss import ebm
from schuss.ebm import data as sets
from schuss.ebm.data import clipped, scaled
from schuss.ebm.machine import machine
from schuss.ebm.recipes import Classifier
from schuss.ebm.ruler import make_ruler

RESULTS = pathlib.Path(__file__).parent / "results" / "training.json"
KEYS = ("data", "net", "sampler", "lr", "rule", "seed", "device")
ITERATIONS, STEPS, BUFFER, MEASURED = 500, 20, 600, 297
RATES = (1e-4, 1e-3, 3e-3)
SCALES = (1e2, 3e2, 1e3, 3e3, 1e4)
SEEDS = (0, 1, 2)
SIGMA, ALPHAS = 0.005, (1.0, 10.0, 100.0)
BATCH = {"digits": 64, "mnist": 32}
STEP = {"digits": 0.3, "mnist": 0.5}
"""Of ESH; that of Langevin dynamics moves a coordinate as far."""

RULER = {
    "digits": Classifier(width=8, batch=64),
    "mnist": Classifier(width=8, batch=64, epochs=3),
}


def mlp(channels, size):
    """Two hidden layers."""
    layers = [nn.Linear(channels * size**2, 256), nn.SiLU(), nn.Linear(256, 256), nn.SiLU()]
    return nn.Sequential(nn.Flatten(), *layers, nn.Linear(256, 1))


def strided(channels, size):
    """Strided 3×3 convolutions until 2×2 are left, SiLU."""
    layers, features = [], 16
    while size > 2:
        layers += [nn.Conv2d(channels, features, 3, 2, 1), nn.SiLU()]
        channels, features, size = features, 2 * features, size // 2
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(4 * channels, 1))


def papers(channels, size, spectral=False):
    """The paper's net, made small."""
    return ebm.ConvEnergy(16 if size == 8 else 8, channels, size, spectral=spectral)


def spectral(channels, size):
    """The same with spectral norm."""
    return papers(channels, size, True)


NETS = {net.__name__: net for net in (mlp, strided, papers, spectral)}


def sampling(row, dim):
    """Arguments of the Trainer: a sampler in the box of the images, and the scale."""
    box, step = (-1.1, 1.1), STEP[row["data"]]
    if row["sampler"] == "SGLD":
        scale = 2 * row["rule"] / SIGMA**2
        clipped = schuss.ULA(SIGMA, box=box, boundary="clamp", gradient_clip=0.03 * scale)
        return {"sampler": clipped, "energy_scale": scale, "keep": "last", "regularise": 0.1}
    made = schuss.ESH(step, box=box)
    if row["sampler"] == "ULA":
        made = schuss.ULA(step / math.sqrt(dim), box=box)
    return {"sampler": made, "energy_scale": row["rule"]}


def trained(images, ruler, row):
    """The row of a run with what came of it."""
    torch.manual_seed(row["seed"])
    device, (channels, size, _) = row["device"], images.shape
    x = scaled(images.train, device)
    trainer = ebm.Trainer(
        NETS[row["net"]](channels, size).to(device),
        x,
        **sampling(row, x[0].numel()),
        steps=STEPS,
        buffer=ebm.ReplayBuffer(BUFFER, images.shape, reinit=0.02, seed=row["seed"], device=device),
        batch=BATCH[row["data"]],
        lr=row["lr"],
        iterations=ITERATIONS,
        ema=0.99,
        compile=False,
        seed=row["seed"],
    )
    begun, error = time.process_time(), None
    try:
        trainer.fit()
    except (ebm.DivergenceError, ValueError) as raised:
        error = str(raised)[:200]
    history, buffer = trainer.history, trainer.buffer
    seconds = time.process_time() - begun
    tail = slice(-len(history) // 5, None)
    assert buffer is not None
    noise = trainer.from_noise(MEASURED, rounds=15, seed=row["seed"])
    return row | {
        "rollbacks": len(trainer.recovery.rollbacks),
        "gave_up": error,
        "distance": ruler(clipped(buffer.x[:MEASURED])),
        "from_noise": ruler(clipped(noise)),
        "gradients": history.gradients,
        "scale": trainer.energy_scale,
        "delta": float(history.delta[tail].mean()) if len(history) else None,
        "gap": float(history.gap[tail].mean() * trainer.energy_scale) if len(history) else None,
        "seconds": seconds,
    }


def table(rows):
    """A row for each run by the rule, beside the best of the fixed scales with its net and rate."""
    fixed: dict = {}
    for row in rows:
        if row["rule"] != "auto" and not row["gave_up"]:
            fixed.setdefault(setting(row), []).append(row["distance"])
    return [
        {
            **{name: row[name] for name in KEYS if name != "rule"},
            "rollbacks": row["rollbacks"],
            "gave_up": bool(row["gave_up"]),
            "distance": row["distance"],
            "best fixed distance": min(fixed.get(setting(row), [None])),
            "gradients": row["gradients"],
        }
        for row in rows
        if row["rule"] == "auto"
    ]


def setting(row):
    """What runs are compared within."""
    return tuple(row[name] for name in ("data", "net", "sampler", "lr", "device"))


def wanted(device):
    """All runs in their order."""
    ours = [
        dict(zip(KEYS, (data, net, sampler, lr, rule, seed, device), strict=True))
        for seed in SEEDS
        for rules in ((("auto",), SCALES) if seed == 0 else (("auto",),))
        for data in BATCH
        for sampler in ("ESH", "ULA")
        for net in NETS
        for lr in RATES
        for rule in rules
    ]
    rivals = itertools.product(BATCH, NETS, ["SGLD"], RATES, ALPHAS, SEEDS[:1], [device])
    return ours + [dict(zip(KEYS, values, strict=True)) for values in rivals]


def loaded(path, digits, device):
    """The images, and a ruler for each."""
    images = {"digits": sets.digits(digits)}
    if path is not None:
        mnist = sets.mnist(path)
        few = {key: getattr(mnist, key)[:10_000] for key in ("train", "train_labels")}
        few |= {key: getattr(mnist, key)[:1000] for key in ("test", "test_labels")}
        images["mnist"] = mnist._replace(**few)
    rulers = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, found in images.items():
            place = pathlib.Path(folder) / name
            rulers[name] = make_ruler(found, place, RULER[name], sizes=(MEASURED,), device=device)
            print(name, rulers[name].marks, flush=True)
    return images, rulers


def main():
    """Run what is missing."""
    parser = argparse.ArgumentParser(description="Trainings by the rule and at fixed scales.")
    parser.add_argument("--data", type=pathlib.Path)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--part", default="0/1")
    parser.add_argument("--out", type=pathlib.Path, default=RESULTS)
    parser.add_argument("--join", type=pathlib.Path, nargs="*")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--digits", type=pathlib.Path, help="where scikit-learn isn't there")
    given = parser.parse_args()
    if given.join is not None:
        rows = Rows(RESULTS, KEYS, table)
        for path in given.join:
            for row in Rows(path, KEYS, table).found.values():
                rows.add(row)
        return
    torch.set_num_threads(1)
    logging.getLogger("schuss.ebm").setLevel(logging.ERROR)
    late, rows = until(given.minutes), Rows(RESULTS, KEYS, table)
    head = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    images, rulers = loaded(given.data, given.digits, given.device)
    missing = [
        row
        for row in wanted(given.device)
        if row["data"] in images
        and rows.key(row) not in rows.found
        and {str(value) for value in row.values()}.issuperset(given.only)
    ]
    part, parts = map(int, given.part.split("/"))
    rows = Rows(given.out, KEYS, table)
    for row in missing[part::parts]:
        if late():
            break
        if rows.key(row) in rows.found:
            continue
        found = trained(images[row["data"]], rulers[row["data"]], row)
        found |= {"commit": head.stdout.strip(), "machine": machine(given.device)}
        rows.add(rounded(found, 4))
        print(rounded({k: v for k, v in found.items() if k != "machine"}, 4), flush=True)


if __name__ == "__main__":
    main()
