"""Scale parameters of funnels: `python benchmarks/scales.py`.

Mean and variance of the scale's logarithm against the truth, with 100 000 gradients in all, on the
funnel (y, N(0, 9)) and on centred eight schools (log τ, by quadrature): within 5 % of the standard
deviation and of the variance, or not trusted. Each seed also runs without the learned change of
coordinates. A row is {target, sampler, seed, gradients, mean_off, variance_off, flagged}.
"""

import argparse
import contextlib
import json
import pathlib
import statistics
import warnings
from unittest import mock

import numpy as np
from rich.console import Console
from rich.table import Table

import schuss
from schuss import targets
from schuss.sampling import adapt

RESULTS = pathlib.Path(__file__).parent / "results" / "scales.json"
SCALES = {"funnel": 0, "eight-schools-centred": 1}
"""Targets, and where the logarithm of their scale is."""


def run(name, seed, gradients, plain):
    """How far the mean, in standard deviations, and the variance are off, and the verdict."""
    target, k = targets.get(name), SCALES[name]
    mean = target.truth.mean[k]
    variance = target.truth.variance[k]
    still = mock.patch.object(adapt, "MAX_MAPS", 0) if plain else contextlib.nullcontext()
    with still, warnings.catch_warnings():
        warnings.simplefilter("ignore", schuss.NotConverged)
        found = schuss.sample(target, gradients=gradients, seed=seed, progress=False)
    y = found.x[..., k]
    return {
        "target": name,
        "sampler": "schuss, plain coordinates" if plain else "schuss",
        "seed": seed,
        "gradients": int(sum(found.stats.gradients.values())),
        "mean_off": float(f"{(y.mean() - mean) / np.sqrt(variance):.3g}"),
        "variance_off": float(f"{y.var() / variance - 1:.3g}"),
        "flagged": not found.verdict.converged,
    }


def within(row):
    """Whether both are right to 5 %."""
    return max(abs(row["mean_off"]), abs(row["variance_off"])) <= 0.05


def report(rows):
    """Print the table: how many runs are right, trusted, and trusted though wrong."""
    table = Table("target", "sampler", "within 5 %", "trusted", "trusted, not within", "|Δ var|")
    for name, sampler in dict.fromkeys((row["target"], row["sampler"]) for row in rows):
        mine = [row for row in rows if (row["target"], row["sampler"]) == (name, sampler)]
        right = sum(map(within, mine))
        trusted = sum(not row["flagged"] for row in mine)
        wrong = sum(not row["flagged"] and not within(row) for row in mine)
        middle = statistics.median(abs(row["variance_off"]) for row in mine)
        cells = (f"{part} of {len(mine)}" for part in (right, trusted, wrong))
        table.add_row(name, sampler, *cells, f"{middle:.3f}")
    Console(width=120).print(table)


def main():
    """Measure, write and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--gradients", type=int, default=100_000)
    parser.add_argument("--out", type=pathlib.Path, default=RESULTS)
    given = parser.parse_args()
    rows = [
        run(name, seed, given.gradients, plain)
        for name in SCALES
        for plain in (False, True)
        for seed in range(given.seeds)
    ]
    given.out.parent.mkdir(exist_ok=True)
    given.out.write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n")
    report(rows)


if __name__ == "__main__":
    main()
