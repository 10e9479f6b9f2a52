"""Gradients, seconds and memory of `schuss.sample` as dimensions grow: `make bench-dimensions`.

    python benchmarks/dimensions.py [TARGET …] [--dims 100 500 …] [--seeds 1] [--minutes 20]

A run asks for an effective sample size of 1000, in a process of its own with no cache on disk. Each
one that ends is a row of `results/dimensions.json` at once; rows that are there aren't made again
until `src/schuss` has changed. The table at its top has, for each target, the exponent p of
gradients ∝ dᵖ by least squares. The Gaussian takes some 5 minutes of a
core.

gaussian: independent, with sds from 0.1 to 1. centred, non-centred: logistic regression of 10
binary rows a group on an intercept for each of d − 2 groups, θ_j ~ N(μ, τ²), with μ ~ N(0, 1) and
log τ ~ N(0, 1); non-centred, θ_j = μ + τ z_j.
"""

import argparse
import collections
import datetime
import json
import pathlib
import resource
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np
import versions
from rows import Rows, rounded, until

HERE = pathlib.Path(__file__).parent
RESULTS = HERE / "results" / "dimensions.json"
DIMS = (100, 500, 1000, 2000, 3000, 5000, 10_000, 20_000)
MOST_GROUPS = 3002
ESS = 1000
TRIALS = 10


def gaussian(dim):
    """log p of independent coordinates with sds from 0.1 to 1."""
    sds = np.linspace(0.1, 1, dim)
    return lambda x: -0.5 * ((x / sds) ** 2).sum()


def intercepts(dim, centred):
    """log p of μ, log τ and the groups' intercepts, given successes of each group."""
    import jax.numpy as jnp

    rng = np.random.default_rng(dim)
    theta = 0.5 + rng.standard_normal(dim - 2)
    successes = rng.binomial(TRIALS, 1 / (1 + np.exp(-theta)))

    def logdensity(x):
        mu, log_tau, z = x[0], x[1], x[2:]
        theta = z if centred else mu + jnp.exp(log_tau) * z
        away = (z - mu) * jnp.exp(-log_tau) if centred else z
        prior = -0.5 * (mu**2 + log_tau**2 + jnp.sum(away**2)) - centred * (dim - 2) * log_tau
        return prior + jnp.sum(successes * theta - TRIALS * jnp.logaddexp(0, theta))

    return logdensity


TARGETS = {
    "gaussian": gaussian,
    "centred": lambda dim: intercepts(dim, True),
    "non-centred": lambda dim: intercepts(dim, False),
}


def one(name, dim, seed):
    """Print the row of one run."""
    import schuss

    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", schuss.NotConverged)
        post = schuss.sample(
            logdensity=TARGETS[name](dim), init=np.zeros(dim), ess=ESS, seed=seed, progress=False
        )
    row = {
        "gradients": sum(post.stats.gradients.values()),
        "cpu_seconds": time.process_time() - begun,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "draws_mb": post.x.nbytes / 2**20,
        "ess": post.verdict.numbers.get("ess"),
        "converged": post.verdict.converged,
        "reasons": [reason.what[:120] for reason in post.verdict.reasons],
    }
    print(json.dumps(row))


def measure(name, dim, seed, commit):
    """The row of one run in a process of its own."""
    row = {"target": name, "dim": dim, "seed": seed, "commit": commit}
    command = [sys.executable, str(HERE / "dimensions.py"), "one", name, str(dim), str(seed)]
    with tempfile.TemporaryDirectory() as cache:
        done = subprocess.run(
            command,
            env=versions.environment(versions.source("new"), cache),
            capture_output=True,
            text=True,
        )
    if done.returncode:
        return row | {"error": (done.stderr.strip().split("\n") or [""])[-1][:300]}
    row |= rounded(json.loads(done.stdout.strip().split("\n")[-1]))
    return row | {"date": datetime.date.today().isoformat()}


def summary(rows):
    """The exponent of each target, and its rows' medians by dimension."""
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    for row in rows:
        if "error" not in row:
            found[row["target"]][row["dim"]].append(row)
    table = {}
    for name, by_dim in found.items():
        keys = ("gradients", "cpu_seconds", "peak_mb", "draws_mb")
        medians = {
            dim: {key: float(np.median([row[key] for row in made])) for key in keys}
            | {"converged": f"{sum(row['converged'] for row in made)} of {len(made)}"}
            for dim, made in sorted(by_dim.items())
        }
        table[name] = {"by_dim": medians}
        if len(medians) > 1:
            gradients = [row["gradients"] for row in medians.values()]
            slope = np.polyfit(np.log(list(medians)), np.log(gradients), 1)[0]
            table[name]["exponent"] = round(float(slope), 3)
    return table


def main():
    """Make the rows that are missing."""
    if sys.argv[1:2] == ["one"]:
        one(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
        return
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("targets", nargs="*", default=list(TARGETS))
    parser.add_argument("--dims", type=int, nargs="+", default=list(DIMS))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--out", type=pathlib.Path, default=RESULTS)
    given = parser.parse_args()
    rows, over = Rows(given.out, ("target", "dim", "seed"), summary), until(given.minutes)
    commit = versions.label("new")
    for seed in range(given.seeds):
        for dim in given.dims:
            for name in given.targets:
                each = {"target": name, "dim": dim, "seed": seed}
                if (name != "gaussian" and dim > MOST_GROUPS) or rows.has(each, commit) or over():
                    continue
                rows.add(measure(name, dim, seed, commit))
                print(json.dumps(rows.found[rows.key(each)]), flush=True)


if __name__ == "__main__":
    main()
