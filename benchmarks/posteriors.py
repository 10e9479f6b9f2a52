"""Gradients to trustworthy moments, against peers in the same run: `make bench-posteriors`.

For each target, seed and sampler: all gradients, of all chains and of tuning, until the estimates
of E[x_i²] are right, b²max = max_i (estimate − truth)²/Var[x_i²] < 0.01 for the median seed. Peers
whose tuning is a share of the run get a run for each budget of a doubling grid. A row of the file
is {target, sampler, seed, gradients, b2max, flagged, seconds}: where the run stood at that number
of gradients, where the median crosses the bar and at the end of the budget, and whether its verdict
would have warned (peers have none, and ours is asked at every doubling). `--start` begins our
chains elsewhere: far away (N(0, 30²)), all at a mode, or all at one random place.
"""

import argparse
import json
import pathlib
import time
import warnings

import numpy as np
import peers
from rich.console import Console
from rich.table import Table

import schuss
from schuss import targets

RESULTS = pathlib.Path(__file__).parent / "results" / "posteriors.json"
PAGE = pathlib.Path(__file__).parent.parent / "docs" / "benchmarks.md"

BUDGETS = {
    "isotropic-100": 16_000,
    "icg-rotated": 64_000,
    "eight-schools": 16_000,
    "brownian": 64_000,
    "hierarchical-regression": 64_000,
    "gaussian-process": 64_000,
    "stochastic-volatility": 128_000,
    "funnel": 64_000,
    "eight-schools-centred": 64_000,
    "rosenbrock": 256_000,
    "sparse-logistic": 128_000,
    "item-response": 32_000,
    "banana": 64_000,
    "mog": 64_000,
}
"""Targets, and the gradients that a run may take."""

SMALLEST = 1000
OURS = {"schuss": True, "schuss, exact=False": False}
STARTS = ("near", "far", "mode", "equal")
CHAINS = 4


def target(name):
    """A target of the benchmark."""
    return targets.isotropic(100) if name == "isotropic-100" else targets.get(name)


def grid(budget):
    """Counts of gradients at which runs are compared: eight to a doubling."""
    return np.unique(np.round(np.geomspace(SMALLEST, budget, 1 + 8 * int(np.log2(budget / 1000)))))


def doubling(budget):
    """Budgets of the peers whose tuning is a share of them."""
    return [SMALLEST * 2**k for k in range(int(np.log2(budget / SMALLEST)) + 1)]


def starts(problem, start, seed):
    """Where the chains of a seed begin; None is where the target has them begin."""
    rng = np.random.default_rng([seed, 5])
    if start == "far":
        return 30 * rng.standard_normal((CHAINS, problem.dim))
    if start == "equal":
        return np.repeat(problem.start(rng, 1), CHAINS, axis=0)
    if start == "mode":
        return np.repeat(mode(problem, problem.start(rng, 1)[0])[None], CHAINS, axis=0)
    return None


def mode(problem, x):
    """A minimum of the energy."""
    from scipy.optimize import minimize

    def both(x):
        return problem.energy(np, x[None])[0], problem.gradient(np, x[None])[0]

    return minimize(both, x, jac=True, method="L-BFGS-B").x


def ours(problem, budget, exact, seed, init=None):
    """One run: gradients, b²max and flags along the way, and seconds."""
    counts = grid(budget)
    bias, flagged = np.full(len(counts), np.inf), np.full(len(counts), None)
    checked = np.isin(counts, doubling(budget))
    truth = problem.truth

    def look(view):
        # What is known after a window holds for the counts up to the end of the next one.
        later = counts >= view.gradients
        if not later.any():
            return
        found = view.posterior()
        w = np.ones(found.x.shape[:2]) if found.weights is None else found.weights
        second = np.einsum("cn,cni->i", w, found.x**2) / w.sum()
        bias[later] = np.max((second - truth.second_moment) ** 2 / truth.second_variance)
        flagged[later & checked] = not found.verdict.converged

    begun = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", schuss.NotConverged)
        try:
            schuss.sample(
                problem,
                init=init,
                gradients=budget,
                exact=exact,
                seed=seed,
                progress=False,
                callback=look,
            )
        except ValueError as refused:
            if "not finite at the start of any chain" not in str(refused):
                raise
            flagged[-1] = True
    return counts, bias, flagged, time.perf_counter() - begun


def measure(name, seeds, budget, samplers, start):
    """Rows of one target."""
    problem, rows = target(name), []
    title = name if start == "near" else f"{name} from {start}"

    def note(sampler, seed, gradients, b2max, flagged, seconds):
        rows.append(
            {
                "target": title,
                "sampler": sampler,
                "seed": seed,
                "gradients": int(gradients),
                "b2max": float(f"{b2max:.4g}") if np.isfinite(b2max) else None,
                "flagged": flagged if flagged is None else bool(flagged),
                "seconds": round(seconds, 3),
            }
        )

    for sampler in (sampler for sampler in OURS if sampler in samplers):
        for seed in seeds:
            init = starts(problem, start, seed)
            counts, bias, flagged, seconds = ours(problem, budget, OURS[sampler], seed, init)
            for count, b2max, flag in zip(counts, bias, flagged, strict=True):
                note(sampler, seed, count, b2max, flag, seconds)
    for sampler, make in peers.PEERS.items():
        if sampler not in samplers or start != "near":
            continue
        shared = sampler in ("BlackJAX MCLMC", "BlackJAX MAMS")
        for limit in doubling(budget) if shared else [budget]:
            try:
                run = make(problem, limit)
            except Exception as error:
                print(f"{sampler} on {name}: {type(error).__name__}: {error}")
                continue
            counts = np.array([limit]) if shared else grid(budget)
            for seed in seeds:
                found = run(seed)
                # A run whose tuning alone is over its budget is told by its first record, if any.
                first = found.gradients[0] if found.gradients.size else 0
                at = np.maximum(counts, first) if shared else counts
                bias = peers.bias_on_grid([found], problem.truth, at)[0]
                for count, b2max in zip(counts, bias, strict=True):
                    note(sampler, seed, count, b2max, None, found.seconds)
    return rows


def condensed(rows):
    """For each target and sampler the rows where the median crosses the bar, and the last ones."""
    kept = []
    for name, sampler in dict.fromkeys((row["target"], row["sampler"]) for row in rows):
        mine = [row for row in rows if (row["target"], row["sampler"]) == (name, sampler)]
        wanted = {max(row["gradients"] for row in mine), crossing(mine, name, sampler)}
        kept += [row for row in mine if row["gradients"] in wanted]
    return kept


def crossing(rows, name, sampler):
    """Gradients from which on the median b²max stays below the bar."""
    mine = [row for row in rows if row["target"] == name and row["sampler"] == sampler]
    if not mine:
        return None
    counts = sorted({row["gradients"] for row in mine})
    seeds = sorted({row["seed"] for row in mine})
    table = {(row["seed"], row["gradients"]): row["b2max"] for row in mine}
    bias = [[_number(table.get((seed, count))) for count in counts] for seed in seeds]
    return peers.crossing(np.asarray(counts), np.asarray(bias, float))


def _number(value):
    return np.inf if value is None else value


PAGE_HEAD = """# Gradients to trustworthy moments

Gradients of all chains, tuning included, until the estimates of every E[x²] are right to a tenth
of the standard deviation of x² (b²max < 0.01 from there on, for the median of 20 seeds; of 60 for
ours on isotropic-100, icg-rotated, eight-schools and brownian, and for MCLMC on the last of these).
`make bench-posteriors` measures this and writes the page. Our runs are inspected after each window,
and what there is counts from there on. Where tuning is a share of the run, a peer is given
every budget of a doubling grid. In brackets is the median b²max when a budget was spent and the
bar wasn't reached, "none" where there were no draws by then. A dash is what wasn't run; not run at
all: {missing}.

The page is put together of runs on two machines: peers were run once, ours all again with the
present sampler. Medians of 20 seeds scatter: where b²max falls slowly, as on stochastic-volatility,
by a factor of two or three.

Ours changes coordinates on brownian, funnel and eight-schools-centred, where all else is normal
once one or two scales are given, and on rosenbrock, whose valleys are parabolas; the peers could be
given such coordinates by hand.

A silent failure is a run of ours with b²max > 0.1 and a verdict that says nothing; a start where no
chain has a finite energy is refused, which counts as told. On the funnel right draws can miss by
more than that: x² has a standard deviation of 14,000 around a mean of 90. References are exact or
quadrature where the posterior allows it, else those of long runs of NUTS.

"""


def _told(crossed, rows, name, sampler):
    """Where a sampler crosses the bar, or else the median b²max when its budget is spent."""
    if crossed is None:
        return "–"
    if np.isfinite(crossed):
        return f"{crossed:,.0f}"
    mine = [row for row in rows if row["target"] == name and row["sampler"] == sampler]
    last = max(row["gradients"] for row in mine)
    left = np.median([_number(row["b2max"]) for row in mine if row["gradients"] == last])
    return f"({left:.2g})" if np.isfinite(left) else "(none)"


def table_of(rows):
    """Target by target: where each sampler's median crosses the bar, and our silent failures."""
    samplers = [*OURS, *peers.PEERS]
    lines = []
    for name in dict.fromkeys(row["target"] for row in rows):
        found = [crossing(rows, name, sampler) for sampler in samplers]
        cells = [
            _told(crossed, rows, name, sampler)
            for crossed, sampler in zip(found, samplers, strict=True)
        ]
        wrong = {
            (row["sampler"], row["seed"])
            for row in rows
            if row["target"] == name
            and row["sampler"] in OURS
            and row["flagged"] is False
            and _number(row["b2max"]) > 0.1
        }
        lines.append([name, *cells, str(len(wrong))])
    return ["target", *samplers, "silent failures"], lines


def report(rows):
    """Print the table."""
    heads, lines = table_of(rows)
    table = Table(title="gradients to median b²max < 0.01, all chains and tuning included")
    for k, head in enumerate(heads):
        table.add_column(head, justify="right" if k else "left")
    for line in lines:
        table.add_row(*line)
    Console(width=160).print(table)


def write_page(rows):
    """The table as a page for readers."""
    heads, lines = table_of(rows)
    marks = ["---", *["--:"] * (len(heads) - 1)]
    missing = [name for name in BUDGETS if name not in {row["target"] for row in rows}]
    PAGE.write_text(
        PAGE_HEAD.format(missing=", ".join(missing) or "none")
        + "\n".join("| " + " | ".join(line) + " |" for line in [heads, marks, *lines])
        + "\n"
    )


def main():
    """Measure what was asked for, keep the rows of the rest, print all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(BUDGETS))
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--samplers", nargs="*", default=[*OURS, *peers.PEERS])
    parser.add_argument("--start", choices=STARTS, default="near")
    parser.add_argument("--out", type=pathlib.Path, default=RESULTS)
    arguments = parser.parse_args()
    rows = json.loads(arguments.out.read_text()) if arguments.out.exists() else []
    for name in arguments.names:
        seeds = range(arguments.seeds)
        fresh = measure(name, seeds, BUDGETS[name], arguments.samplers, arguments.start)
        done = {(row["target"], row["sampler"]) for row in fresh}
        rows = [row for row in rows if (row["target"], row["sampler"]) not in done]
        rows += condensed(fresh)
        arguments.out.parent.mkdir(exist_ok=True)
        arguments.out.write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n")
    report(rows)
    if arguments.out == RESULTS:
        write_page(rows)


if __name__ == "__main__":
    main()
