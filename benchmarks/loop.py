"""`schuss.sample` of the working tree against that of an earlier commit: `make bench-loop`.

    python benchmarks/loop.py run [TARGET …] [--seeds 20] [--minutes 60] [--versions old new]
    python benchmarks/loop.py table
    python benchmarks/loop.py references [MODEL …]

A run is a process of its own (`one_run.py`), with no cache on disk. Each one that ends is a row of
`results/loop.json` at once, and rows that are there already aren't made again; those of the working
tree are, once `src/schuss` has changed, and with `--retry` those that ended in an error. The table
is made from the file alone, and is its top. Targets are those of `schuss.targets` with at least two
coordinates and a truth, the library of posteriors, the necks among them, and `models.py`. One run
takes about 10 s of CPU with the old version; 20 seeds of all targets and both versions take about
6 hours of one core, 3 seeds one hour.

`references` makes the truth of the models, `results/references-loop.json`, from 4 × 10,000 draws of
NumPyro's NUTS; what hasn't R-hat < 1.005 of x and x² isn't stored, and its model has no truth.
"""

import argparse
import collections
import concurrent.futures
import datetime
import importlib.metadata
import json
import pathlib
import platform
import subprocess
import sys
import tempfile
import time

import numpy as np
import versions
from models import MODELS
from one_run import REFERENCES, TAIL
from rows import Rows, rounded, until

from schuss.targets import TARGETS, get, posteriors

HERE = pathlib.Path(__file__).parent
RESULTS = HERE / "results" / "loop.json"
KEYS = ("version", "target", "seed", "ask")
WRONG = 5.0
"""Standard errors beyond which an estimate is wrong."""

TAILS = ("low", "high")
"""Of a parent, each with a mass of `TAIL`."""


def names():
    """All subjects of the benchmark."""
    found = []
    for name in [*TARGETS, *posteriors.POSTERIORS]:
        target = get(name)
        if target.dim >= 2 and target.truth is not None:
            found.append(name)
    return list(dict.fromkeys([*found, *posteriors.POSTERIORS, *MODELS]))


def machine():
    """What the rows were made with and on."""
    libraries = {name: importlib.metadata.version(name) for name in ("jax", "numpy", "arviz")}
    model = platform.processor() or platform.machine()
    cpus = pathlib.Path("/proc/cpuinfo")
    if cpus.exists():
        lines = [line for line in cpus.read_text().split("\n") if line.startswith("model name")]
        model = lines[0].split(":")[1].strip() if lines else model
    return {"python": platform.python_version(), **libraries, "machine": model}


def measure(version, commit, name, seed, ask, limit):
    """The row of one run; a process that doesn't come back is ended after 30 × `limit` seconds."""
    src = versions.source(version, commit)
    row = {"version": version, "commit": versions.label(version, commit), "target": name}
    row |= {"seed": seed, "ask": ask}
    command = [sys.executable, str(HERE / "one_run.py"), name, str(seed), ask, str(limit)]
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as cache:
        try:
            done = subprocess.run(
                command,
                env=versions.environment(src, cache),
                cwd=cache,
                capture_output=True,
                text=True,
                timeout=30 * limit,
            )
            lines = done.stdout.strip().split("\n")
            found = json.loads(lines[-1]) if done.returncode == 0 else None
            error = done.stderr.strip().split("\n")[-1][:300]
        except subprocess.TimeoutExpired:
            found, error = None, f"no end after {30 * limit:.0f} s"
    row |= rounded({"error": error} if found is None else found)
    row |= {"wall_seconds": round(time.monotonic() - begun, 2)} | machine()
    return row | {"date": datetime.date.today().isoformat()}


def run(given):
    """Make the rows that are missing, seed by seed, until the time is up."""
    rows = Rows(given.out, KEYS, summary)
    over = until(given.minutes)
    plan = [
        {"version": version, "target": name, "seed": seed, "ask": ask}
        for seed in range(given.first, given.first + given.seeds)
        for name in given.targets or names()
        for ask in given.asks
        for version in given.versions
    ]
    labels = {version: versions.label(version, given.commit) for version in given.versions}
    todo = [each for each in plan if not rows.has(each, labels[each["version"]], given.retry)]
    if "old" in given.versions:
        versions.checkout(given.commit)
    print(f"{len(plan) - len(todo)} of {len(plan)} runs are there", flush=True)

    def one(each):
        if over():
            return None
        return measure(
            each["version"],
            given.commit,
            each["target"],
            each["seed"],
            each["ask"],
            given.limit,
        )

    pool = concurrent.futures.ThreadPoolExecutor(given.workers)
    try:
        for row in filter(None, pool.map(one, todo)):
            rows.add(row)
            print(told(row), flush=True)
    finally:
        pool.shutdown(cancel_futures=True)
    left = sum(not rows.has(each, labels[each["version"]]) for each in plan)
    if left:
        print(f"{left} runs are left: the same command goes on with them")
    report(rows.path)


def told(row):
    """A row in a line."""
    head = f"{row['version']:3} {row['target']:32} seed {row['seed']:2} {row['ask']}: "
    if "error" in row:
        return head + row["error"]
    return head + (
        f"{row['gradients']:,} gradients, {row['cpu_seconds']:.1f} s, ESS {row['ess']:.0f}, "
        + ("clean" if row["converged"] else "; ".join(row["kinds"]))
    )


# The table ---------------------------------------------------------------------------------------


def right(row):
    """Whether nothing is off by more than `WRONG` standard errors; None where there's no truth."""
    errors = [row[key] for key in ("error_mean", "error_second") if row.get(key) is not None]
    for parent in row.get("parents", []):
        errors += [parent[f"{key}_error"] for key in ("square", "low", "high")]
    if not errors:
        return None
    return all(error is not None and abs(error) <= WRONG for error in errors)


def neck_right(row):
    """The same for E v² and the 1 % tails of the parents alone."""
    keys = ("square_error", "low_error", "high_error")
    return all(abs(parent[key]) <= WRONG for parent in row["parents"] for key in keys)


def neck_right_by_smallest(row):
    """The same with the smallest ESS that the run itself gives, which is milder."""
    masses = [parent[side] for parent in row["parents"] for side in TAILS]
    errors = [(mass - TAIL) / np.sqrt(TAIL * (1 - TAIL)) for mass in masses]
    errors += [(parent["square"] - 1) / np.sqrt(2) for parent in row["parents"]]
    return bool(max(map(abs, errors)) * np.sqrt(row["ess_said"] or 0.0) <= WRONG)


def clean(row):
    """Whether the run gave draws and its verdict has nothing against them."""
    return bool(row.get("converged"))


def false_alarms(rows):
    """Runs that are right by the truth and aren't clean."""
    return sum(not clean(row) and right(row) is True for row in rows)


def silent(rows):
    """Runs that are clean and wrong."""
    return sum(clean(row) and right(row) is False for row in rows)


def _median(rows, key):
    values = [row[key] for row in rows if row.get(key) is not None]
    return float(np.median(values)) if values else None


def _over(new, old):
    return new / old if new is not None and old else None


def compared(rows, name, ask):
    """The line of one target: medians over the seeds that both versions have."""
    sides = {
        version: {
            row["seed"]: row
            for row in rows
            if (row["version"], row["target"], row["ask"]) == (version, name, ask)
        }
        for version in ("old", "new")
    }
    both = sides["old"].keys() & sides["new"].keys()
    if both:
        sides = {version: {seed: side[seed] for seed in both} for version, side in sides.items()}
    line = {"target": name, "ask": ask}
    for version, side in sides.items():
        mine = list(side.values())
        given = [
            row | {"ess_per_gradient": row["ess"] / row["gradients"]}
            for row in mine
            if "error" not in row
        ]
        line[version] = {
            "seeds": len(mine),
            "clean": sum(map(clean, mine)),
            "failed": len(mine) - len(given),
            "false_alarms": false_alarms(mine),
            "clean_and_wrong": silent(mine),
        } | {
            key: _median(given, key)
            for key in ("gradients", "cpu_seconds", "ess", "ess_per_gradient", "b2max", "peak_mib")
        }
    line["ratio"] = {
        key: _over(line["new"][key], line["old"][key])
        for key in ("gradients", "cpu_seconds", "ess_per_gradient", "peak_mib")
    }
    return line


def summary(rows):
    """The lines of the table: for each ask the targets, then all of them, then the necks."""
    lines = []
    for ask in dict.fromkeys(row["ask"] for row in rows):
        mine = [row for row in rows if row["ask"] == ask]
        each = [compared(mine, name, ask) for name in dict.fromkeys(r["target"] for r in mine)]
        total = {"target": "all", "ask": ask}
        for version in ("old", "new"):
            total[version] = {
                key: sum(line[version][key] for line in each)
                for key in ("seeds", "clean", "failed", "false_alarms", "clean_and_wrong")
            }
            side = [row for row in mine if row["version"] == version]
            total[version]["commits"] = dict(collections.Counter(row["commit"] for row in side))
            bent = [row for row in side if row["target"].startswith("neck-")]
            given = [row for row in bent if "error" not in row]
            told = [row for row in given if clean(row)]
            total[version]["necks"] = {
                "right_and_clean": sum(map(neck_right, told)),
                "flagged": len(bent) - len(told),
                "clean_and_off": len(told) - sum(map(neck_right, told)),
                "clean_and_off_by_smallest": len(told) - sum(map(neck_right_by_smallest, told)),
            }
        ratios = [line["ratio"] for line in each]
        total["ratio"] = {
            key: _median(ratios, key)
            for key in ("gradients", "cpu_seconds", "ess_per_gradient", "peak_mib")
        }
        grown = [ratio["gradients"] for ratio in ratios if ratio["gradients"] is not None]
        total["ratio"]["largest_gradients"] = max(grown, default=None)
        lines += [total, *each]
    return rounded(lines)


def report(path):
    """Print the table of a file."""
    from rich.console import Console
    from rich.table import Table

    def number(value, form=",.0f"):
        return "–" if value is None else f"{value:{form}}"

    def share(side, key="clean"):
        return f"{side[key]}/{side['seeds']}" if side["seeds"] else "–"

    console = Console(width=170)
    lines = summary(json.loads(path.read_text())["runs"]) if path.exists() else []
    for ask in dict.fromkeys(line["ask"] for line in lines):
        heads = ("target", "clean", "", "gradients", "", "ratio", "CPU s", "", "ratio")
        heads += ("ESS", "", "per gradient", "b²max", "")
        table = Table(title=f"{ask}: medians over seeds, old, new and new/old")
        for head in heads:
            table.add_column(head, justify="left" if head == "target" else "right")
        mine = [line for line in lines if line["ask"] == ask]
        for line in mine[1:]:
            old, new, ratio = line["old"], line["new"], line["ratio"]
            table.add_row(
                line["target"],
                share(old),
                share(new),
                number(old["gradients"]),
                number(new["gradients"]),
                number(ratio["gradients"], ".2f"),
                number(old["cpu_seconds"], ".1f"),
                number(new["cpu_seconds"], ".1f"),
                number(ratio["cpu_seconds"], ".2f"),
                number(old["ess"]),
                number(new["ess"]),
                number(ratio["ess_per_gradient"], ".2f"),
                number(old["b2max"], ".2g"),
                number(new["b2max"], ".2g"),
            )
        console.print(table)
        total = mine[0]
        ratio = total["ratio"]
        console.print(
            f"new/old, median over targets: gradients {number(ratio['gradients'], '.2f')} "
            f"(largest {number(ratio['largest_gradients'], '.2f')}), "
            f"CPU seconds {number(ratio['cpu_seconds'], '.2f')}, "
            f"ESS per gradient {number(ratio['ess_per_gradient'], '.2f')}, "
            f"peak memory {number(ratio['peak_mib'], '.2f')}"
        )
        for version in ("old", "new"):
            side, bent = total[version], total[version]["necks"]
            commits = ", ".join(f"{count} at {at}" for at, count in side["commits"].items())
            console.print(
                f"{version} ({commits or 'none'}): {share(side)} clean, {side['failed']} failed, "
                f"{side['false_alarms']} false alarms, {side['clean_and_wrong']} clean and wrong; "
                f"necks: {bent['right_and_clean']} right and clean, {bent['flagged']} flagged, "
                f"{bent['clean_and_off']} clean and off "
                f"({bent['clean_and_off_by_smallest']} by the run's smallest ESS)"
            )


# References --------------------------------------------------------------------------------------

DRAWS, CHAINS, LARGEST_RHAT = 10_000, 4, 1.005


def nuts(model, seed):
    """Draws (chains, draws, dim) of NumPyro's NUTS, flat, and its gradients."""
    import jax
    import jax.numpy as jnp
    from jax.flatten_util import ravel_pytree
    from numpyro.infer import MCMC, NUTS

    flat, named = ravel_pytree(jax.tree.map(lambda leaf: jnp.asarray(leaf, float), model.centre))
    # A dense metric loses chains of the ARMA model in the warm-up.
    kernel = NUTS(potential_fn=lambda x: -model.logdensity(named(x)), target_accept_prob=0.95)
    mcmc = MCMC(
        kernel,
        num_warmup=2000,
        num_samples=DRAWS,
        num_chains=CHAINS,
        chain_method="sequential",
        progress_bar=False,
    )
    start = flat + 0.1 * np.random.default_rng(seed).standard_normal((CHAINS, flat.size))
    mcmc.run(jax.random.key(seed), init_params=start, extra_fields=("num_steps", "diverging"))
    extra = mcmc.get_extra_fields()
    print(f"  {int(extra['diverging'].sum())} divergent transitions", flush=True)
    return np.asarray(mcmc.get_samples(group_by_chain=True)), int(extra["num_steps"].sum())


def moments(x):
    """The moments of draws and their standard errors; the largest R-hat of x and x²."""
    import arviz
    from one_run import ess

    each = range(x.shape[2])
    sizes, squares = (np.array([ess(y[..., i], "mean") for i in each]) for y in (x, x**2))
    rhat = max(float(arviz.rhat(y[..., i])) for y in (x, x**2) for i in each)
    found = {
        "mean": x.mean((0, 1)),
        "mean_error": x.std((0, 1)) / np.sqrt(sizes),
        "variance": x.var((0, 1)),
        "second_moment": (x**2).mean((0, 1)),
        "second_error": (x**2).std((0, 1)) / np.sqrt(squares),
        "second_variance": (x**2).var((0, 1)),
    }
    return {key: value.tolist() for key, value in found.items()}, rhat, min(sizes), min(squares)


def references(given):
    """Make and store the truth of models."""
    import jax

    jax.config.update("jax_enable_x64", True)
    for name in given.models or MODELS:
        print(name, flush=True)
        begun = time.process_time()
        jax.clear_caches()
        x, gradients = nuts(MODELS[name](), 2626)
        found, rhat, smallest, square = moments(x)
        seconds = time.process_time() - begun
        print(
            f"  R-hat {rhat:.4f}, smallest ESS {smallest:.0f}, of x² {square:.0f}, "
            f"{gradients:,} gradients, {seconds:.0f} s of CPU",
            flush=True,
        )
        if not rhat < LARGEST_RHAT:
            print("  not mixed: nothing stored, the model has no truth", flush=True)
            continue
        stored = json.loads(REFERENCES.read_text()) if REFERENCES.exists() else {}
        stored[name] = rounded(
            {
                "method": f"NumPyro NUTS, {CHAINS} × {DRAWS} draws",
                "rhat": rhat,
                "ess": float(smallest),
                "ess_second": float(square),
                "moments": found,
            },
            7,
        )
        lines = [f"{json.dumps(key)}: {json.dumps(stored[key])}" for key in MODELS if key in stored]
        REFERENCES.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def main():
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("run", help="make the rows that are missing, then the table")
    runs.add_argument("targets", nargs="*", help="all by default")
    runs.add_argument("--seeds", type=int, default=20)
    runs.add_argument("--first", type=int, default=100, help="the first seed (default 100)")
    runs.add_argument("--asks", nargs="+", default=["ess=400"], help='"draws=1000", "default" …')
    runs.add_argument("--versions", nargs="+", choices=("old", "new"), default=["old", "new"])
    runs.add_argument("--commit", default=versions.OLD, help="what the old version is")
    runs.add_argument(
        "--minutes", type=float, default=60, help="no run begins later than that (default 60)"
    )
    runs.add_argument(
        "--limit", type=float, default=300, help="CPU seconds of a call (default 300)"
    )
    runs.add_argument("--retry", action="store_true", help="make rows with an error again")
    runs.add_argument("--workers", type=int, default=1, help="runs at a time (default 1)")
    runs.add_argument("--out", type=pathlib.Path, default=RESULTS)
    table = commands.add_parser("table", help="print the table of the file")
    table.add_argument("--out", type=pathlib.Path, default=RESULTS)
    stored = commands.add_parser("references", help="make the truth of the models")
    stored.add_argument("models", nargs="*", help="all by default")
    given = parser.parse_args()
    for name in getattr(given, "targets", []):
        if name not in names():
            parser.error(f"TARGET must be one of {', '.join(names())}, got {name}")
    if given.command == "run":
        run(given)
    elif given.command == "table":
        report(given.out)
    else:
        references(given)


if __name__ == "__main__":
    main()
