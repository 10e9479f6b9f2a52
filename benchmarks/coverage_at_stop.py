"""Whether a run stops when its own error bars are right: `make bench-coverage`.

    python benchmarks/coverage_at_stop.py run [POSTERIOR …] [--seeds 200] [--minutes 60]
    python benchmarks/coverage_at_stop.py table | truth

For ten posteriors and many seeds, `sample(ess=200)` and `sample(ess=400)`, and of each coordinate
95 % intervals from the ESS of the returned draws, with ArviZ's definitions:

    mean      m ± 1.96 s/√S,                 S the ESS of x
    variance  s² ± 1.96 sd((x − m)²)/√S,     S the ESS of (x − m)²
    quantile  empirical quantiles at p ± 1.96 √(p (1 − p)/S),  S the ESS of the indicator

for p = .05 and .95. The last has order statistics as its ends; those of Vehtari et al. (2021), at
quantiles of Beta(Sp + 1, S(1 − p) + 1), cover .93 with 200 independent draws and .94 with 400,
where these cover .956 and .952. Those of the variance cover .935 and .943 there on a normal.

The share that covers the truth should be .95. Seeds are independent, coordinates aren't: errors
are over seeds. "All" weighs posteriors equally. All seeds run in one process, which compiles once.
Each run is a row of `results/coverage.json` at once; those that are there aren't made again.
All of it, 4000 runs, takes about two hours of one core with the old version.

`truth` makes `results/coverage-truth.json`: moments of the targets; quantiles of 10⁶ exact draws,
or by quadrature where a posterior is normal once its scales are given (`quadrature.py`).
"""

import argparse
import collections
import datetime
import json
import os
import pathlib
import sys
import time
import warnings
from typing import Any

import numpy as np
import versions
from one_run import ess, sampler, wish
from rows import Rows, rounded, until
from scipy import stats
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq
from scipy.special import logsumexp, ndtr

import schuss
from schuss import targets

HERE = pathlib.Path(__file__).parent
RESULTS, TRUTH = HERE / "results" / "coverage.json", HERE / "results" / "coverage-truth.json"
KEYS = ("version", "target", "seed", "ask")
ESTIMATES = ("mean", "variance", "q05", "q95")
PROBABILITIES = {"q05": 0.05, "q95": 0.95}
LEVEL = 0.95

POSTERIORS = {
    "isotropic": targets.isotropic,
    "icg-rotated": targets.icg_rotated,
    "quartic-10": lambda: targets.quartic(10),
    "double-well": targets.double_well,
    "banana": targets.banana,
    "rosenbrock": targets.posteriors.rosenbrock,
    "eight-schools": targets.posteriors.eight_schools,
    "eight-schools-centred": targets.posteriors.eight_schools_centred,
    "brownian": targets.posteriors.brownian,
    "hierarchical-regression": targets.posteriors.hierarchical_regression,
}


# Truth -------------------------------------------------------------------------------------------


def truth(name):
    """Mean, variance and quantiles of each coordinate."""
    import quadrature

    target = POSTERIORS[name]()
    if name in quadrature.GRIDS:
        quantiles = by_quadrature(name)
    else:
        x = np.sort(target.sample(np.random.default_rng(26), 10**6), axis=0)
        quantiles = {key: np.quantile(x, p, axis=0) for key, p in PROBABILITIES.items()}
    known = {"mean": target.truth.mean, "variance": target.truth.variance} | quantiles
    return {key: np.asarray(value).tolist() for key, value in known.items()}


def by_quadrature(name):
    """Quantiles of a posterior that is normal given its scales.

    The law of a scale's logarithm is summed over the grid of the others, and its logarithm is
    interpolated; that of another coordinate is a mixture of normals.
    """
    import quadrature

    target, grids = targets.get(name), quadrature.GRIDS[name]
    given = np.stack([axis.reshape(-1) for axis in np.meshgrid(*grids.values())], axis=1)
    parts = np.array_split(given, 1 + len(given) // quadrature.PART)
    found = [quadrature.conditional(target, list(grids), part) for part in parts]
    log_p, mean, variance, _ = (np.concatenate(column) for column in zip(*found, strict=True))
    log_p = log_p - logsumexp(log_p)
    kept = log_p > -35
    p = np.exp(log_p[kept])
    p /= p.sum()
    quantiles = {key: np.zeros(target.dim) for key in PROBABILITIES}
    for i in range(target.dim):
        if i in grids:
            k = list(grids).index(i)
            law = [logsumexp(log_p[given[:, k] == value]) for value in grids[i]]
            cdf = _marginal(grids[i], np.array(law))
        else:
            m, sd = mean[kept, i], np.sqrt(variance[kept, i])
            cdf = _mixture(p, m, sd)
        for key, probability in PROBABILITIES.items():
            root: Any = brentq(lambda x, c=cdf[0], q=probability: c(x) - q, *cdf[1])
            quantiles[key][i] = root
    return quantiles


def _mixture(p, mean, sd):
    """The distribution function of normals mixed by p, and where it goes from 0 to 1."""
    ends = (float((mean - 9 * sd).min()), float((mean + 9 * sd).max()))
    return lambda x: p @ ndtr((x - mean) / sd), ends


def _marginal(axis, law):
    """The same from a log-density on a grid."""
    fine = np.linspace(axis[0], axis[-1], 20_001)
    density = np.exp(CubicSpline(axis, law)(fine) - law.max())
    mass = CubicSpline(fine, density).antiderivative()
    return lambda x: float(mass(x) / mass(fine[-1])), (float(axis[0]), float(axis[-1]))


def known(name):
    """The stored truth of a posterior, made where it is missing."""
    stored = json.loads(TRUTH.read_text()) if TRUTH.exists() else {}
    if name not in stored:
        stored[name] = rounded(truth(name), 8)
        lines = [f"{json.dumps(k)}: {json.dumps(stored[k])}" for k in POSTERIORS if k in stored]
        TRUTH.parent.mkdir(exist_ok=True)
        TRUTH.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    return {key: np.array(value) for key, value in stored[name].items()}


# Intervals ---------------------------------------------------------------------------------------


def intervals(column):
    """95 % intervals of draws (chains, draws) by what is estimated."""
    z = stats.norm.ppf((1 + LEVEL) / 2)
    mean, square = column.mean(), (column - column.mean()) ** 2
    half = z * column.std() / np.sqrt(max(ess(column, "mean"), 1.0))
    found = {"mean": (mean - half, mean + half)}
    half = z * square.std() / np.sqrt(max(ess(square, "mean"), 1.0))
    found["variance"] = (square.mean() - half, square.mean() + half)
    for key, p in PROBABILITIES.items():
        size = max(ess((column <= np.quantile(column, p)).astype(float), "mean"), 1.0)
        ends = np.clip(p + np.array([-z, z]) * np.sqrt(p * (1 - p) / size), 0, 1)
        found[key] = tuple(np.quantile(column, ends, method="hazen"))
    return found


def measure(name, seed, ask):
    """What one run covers: numbers of coordinates, and how it ended."""
    truth_of, begun = known(name), time.process_time()
    asked: dict[str, Any] = wish(ask)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", schuss.NotConverged)
        post = sampler()(POSTERIORS[name](), seed=seed, progress=False, **asked)
    seconds = time.process_time() - begun
    x = np.asarray(post.x, float)
    covered = collections.Counter()
    for i in range(x.shape[2]):
        for estimate, (low, high) in intervals(x[..., i]).items():
            covered[estimate] += bool(low <= truth_of[estimate][i] <= high)
    columns = [x[..., i] for i in range(x.shape[2])]
    return {
        "dim": x.shape[2],
        "covered": {estimate: covered[estimate] for estimate in ESTIMATES},
        "gradients": int(sum(post.stats.gradients.values())),
        "draws": x.shape[0] * x.shape[1],
        "ess": min(ess(column, kind) for column in columns for kind in ("bulk", "tail")),
        "converged": bool(post.verdict.converged),
        "cpu_seconds": seconds,
    }


# The table ---------------------------------------------------------------------------------------


def summary(rows):
    """Shares that cover, with standard errors over seeds, for each version, ask and posterior."""
    lines = []
    for version, ask in dict.fromkeys((row["version"], row["ask"]) for row in rows):
        mine = [row for row in rows if (row["version"], row["ask"]) == (version, ask)]
        each = []
        for name in dict.fromkeys(row["target"] for row in mine):
            some = [row for row in mine if row["target"] == name]
            line = {"version": version, "ask": ask, "target": name, "seeds": len(some)}
            line["clean"] = sum(row["converged"] for row in some) / len(some)
            line["gradients"] = float(np.median([row["gradients"] for row in some]))
            line["ess"] = float(np.median([row["ess"] for row in some]))
            for key in ESTIMATES:
                shares = np.array([row["covered"][key] / row["dim"] for row in some])
                line[key] = float(shares.mean())
                line[f"{key}_error"] = float(shares.std() / np.sqrt(len(some)))
            each.append(line)
        total = {"version": version, "ask": ask, "target": "all", "seeds": len(mine)}
        total["clean"] = float(np.mean([line["clean"] for line in each]))
        for key in ESTIMATES:
            total[key] = float(np.mean([line[key] for line in each]))
            errors = [line[f"{key}_error"] for line in each]
            total[f"{key}_error"] = float(np.linalg.norm(errors) / len(each))
        lines += [total, *each]
    return rounded(lines)


def report(path):
    """Print the table of a file."""
    from rich.console import Console
    from rich.table import Table

    lines = summary(json.loads(path.read_text())["runs"]) if path.exists() else []
    console = Console(width=140)
    for version, ask in dict.fromkeys((line["version"], line["ask"]) for line in lines):
        table = Table(title=f"{version}, {ask}: share of 95 % intervals that cover the truth")
        heads = ("posterior", "runs", "clean", "gradients", "ESS", *ESTIMATES)
        for head in heads:
            table.add_column(head, justify="left" if head == "posterior" else "right")
        for line in lines:
            if (line["version"], line["ask"]) == (version, ask):
                cells = [line["target"], str(line["seeds"]), f"{line['clean']:.2f}"]
                cells += [
                    f"{line[key]:,.0f}" if line.get(key) is not None else ""
                    for key in ("gradients", "ess")
                ]
                cells += [f"{line[key]:.3f} ± {line[f'{key}_error']:.3f}" for key in ESTIMATES]
                table.add_row(*cells)
        console.print(table)


def main():
    """Read the command line, make what is missing, print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", nargs="?", choices=("run", "table", "truth"), default="run")
    parser.add_argument("posteriors", nargs="*", help="all by default")
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--first", type=int, default=1000, help="the first seed (default 1000)")
    parser.add_argument("--asks", nargs="+", default=["ess=200", "ess=400"])
    parser.add_argument("--version", choices=("old", "new"), default="new")
    parser.add_argument("--commit", default=versions.OLD, help="what the old version is")
    parser.add_argument(
        "--minutes", type=float, default=60, help="no run begins later than that (default 60)"
    )
    parser.add_argument("--out", type=pathlib.Path, default=RESULTS)
    given = parser.parse_args()
    unknown = [name for name in given.posteriors if name not in POSTERIORS]
    if unknown:
        parser.error(f"POSTERIOR must be one of {', '.join(POSTERIORS)}, got {unknown[0]}")
    names = given.posteriors or list(POSTERIORS)
    if given.command == "table":
        report(given.out)
        return
    if given.command == "truth":
        for name in names:
            print(name, flush=True)
            known(name)
        return
    src = versions.source(given.version, given.commit)
    if not pathlib.Path(schuss.__file__).is_relative_to(src):
        environment = os.environ | {"PYTHONPATH": str(src)}
        os.execve(sys.executable, [sys.executable, *sys.argv], environment)
    rows, over = Rows(given.out, KEYS, summary), until(given.minutes)
    commit = versions.label(given.version, given.commit)
    for seed in range(given.first, given.first + given.seeds):
        for name in names:
            for ask in given.asks:
                row = {"version": given.version, "target": name, "seed": seed, "ask": ask}
                if rows.has(row, commit):
                    continue
                if over():
                    print("the time is up: the same command goes on")
                    report(given.out)
                    return
                row |= {"commit": commit, "date": datetime.date.today().isoformat()}
                rows.add(row | rounded(measure(name, seed, ask)))
    report(given.out)


if __name__ == "__main__":
    main()
