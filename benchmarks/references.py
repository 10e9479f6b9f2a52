"""Reference moments of the posteriors: `python benchmarks/references.py [NAME …]`, or all.

Quadrature where the posterior is Gaussian given its scales (`quadrature.py`): NUTS doesn't get to
the end of a neck, and its 400 000 draws made Var[x²] of the Brownian motion's noise a quarter too
small. Else long runs of NumPyro's NUTS in float64, four chains after up to 2000 steps of warm-up,
at an acceptance of .95, or .99 where that led to divergent transitions. Item response, whose mean
ability moves along a ridge that a diagonal metric doesn't see, has the inverse Hessian at the mode
for its metric. A standard error is the posterior's standard deviation over √ESS (ArviZ, of x and of
x²). A run that hasn't mixed (R-hat over 1.01, or a second moment known to less than .03 of its
standard deviation) isn't stored.
"""

import json
import pathlib
import sys
import time

import arviz
import jax
import jax.numpy as jnp
import numpy as np
import quadrature
from numpyro.infer import MCMC, NUTS

from schuss.targets import Target, get, posteriors
from schuss.targets.posteriors import reference

FILE = pathlib.Path(posteriors.__file__).parent / reference.FILE
CHAINS, WARM_UP, SEED = 4, 2000, 20211110
DRAWS = {
    "sparse-logistic": 10_000,
    "stochastic-volatility": 10_000,
    "gaussian-process": 10_000,
    "item-response": 1500,
}
ACCEPT = {"stochastic-volatility": 0.99, "gaussian-process": 0.99}
CORRELATED = ("item-response",)
LEAST_ESS, LARGEST_RHAT = (1 / 0.03) ** 2, 1.01


def inverse_hessian(target: Target, steps: int = 20) -> jax.Array:
    """(∂²E)⁻¹ at the mode of a log-concave target, by Newton's method from the origin."""

    def energy(x):
        return target.energy(jnp, x[None, :])[0]

    slope, curvature = jax.jit(jax.grad(energy)), jax.jit(jax.hessian(energy))
    x = jnp.zeros(target.dim)
    for _ in range(steps):
        x = x - jnp.linalg.solve(curvature(x), slope(x))
    if not float(jnp.abs(slope(x)).max()) < 1e-8:
        raise RuntimeError(f"Newton's method found no mode of {target.name}")
    return jnp.linalg.inv(curvature(x))


def run_nuts(target: Target, draws: int) -> np.ndarray:
    """NUTS on a target, (chains, draws, dim)."""
    metric = {}
    if target.name in CORRELATED:
        matrix = inverse_hessian(target)
        metric = {"dense_mass": True, "inverse_mass_matrix": matrix, "adapt_mass_matrix": False}
    kernel = NUTS(
        potential_fn=lambda x: target.energy(jnp, x[None, :])[0],
        target_accept_prob=ACCEPT.get(target.name, 0.95),
        **metric,
    )
    mcmc = MCMC(
        kernel,
        num_warmup=min(draws, WARM_UP),
        num_samples=draws,
        num_chains=CHAINS,
        chain_method="sequential",
        progress_bar=False,
    )
    start = jnp.asarray(target.start(np.random.default_rng(SEED), CHAINS))
    mcmc.run(jax.random.key(SEED), init_params=start, extra_fields=("diverging",))
    print(f"  {int(mcmc.get_extra_fields()['diverging'].sum())} divergent transitions")
    return np.asarray(mcmc.get_samples(group_by_chain=True))


def summarise(target: Target, x: np.ndarray) -> dict | None:
    """What is stored of the draws (chains, draws, dim), or None where they haven't mixed."""
    flat = x.reshape(-1, target.dim)
    mean, second = flat.mean(axis=0), (flat**2).mean(axis=0)
    variance, second_variance = flat.var(axis=0), (flat**2).var(axis=0)
    ess, ess_second = (_each(arviz.ess, values) for values in (x, x**2))
    rhat = max(_each(arviz.rhat, values).max() for values in (x, x**2))
    print(f"  smallest ESS {ess.min():.0f}, of x² {ess_second.min():.0f}, R-hat {rhat:.4f}")
    if ess_second.min() < LEAST_ESS or rhat > LARGEST_RHAT:
        print("  not mixed: nothing stored; give it more draws")
        return None
    energy = np.concatenate([target.energy(np, part) for part in np.array_split(flat, 200)])
    return {
        "mean": mean,
        "mean_error": np.sqrt(variance / ess),
        "variance": variance,
        "second_moment": second,
        "second_error": np.sqrt(second_variance / ess_second),
        "second_variance": second_variance,
        "energy": energy.mean(),
        "method": f"NumPyro NUTS, {x.shape[0]} chains of {x.shape[1]} draws",
    }


def exact(target: Target) -> dict:
    """What is stored where quadrature gives it; its errors are those of rounding."""
    nothing = np.zeros(target.dim)
    found = quadrature.moments(target.name)
    return found | {"mean_error": nothing, "second_error": nothing, "method": "quadrature"}


def _each(statistic, values: np.ndarray) -> np.ndarray:
    """An ArviZ statistic of each coordinate."""
    method = {"method": "mean"} if statistic is arviz.ess else {}
    dataset = arviz.convert_to_dataset({"x": values})
    return statistic(dataset, **method)["x"].values


def _digits(values: np.ndarray) -> list[float]:
    return [float(f"{value:.6g}") for value in values]


def store(target: Target, entry: dict) -> None:
    """Put one entry into the file, one target a line."""
    name = target.name
    entry = {key: _digits(v) if isinstance(v, np.ndarray) else v for key, v in entry.items()}
    entry["energy"] = float(f"{entry['energy']:.7g}")
    entry["probe"] = float(target.energy(np, reference.probe(target.dim))[0])
    entries = json.loads(FILE.read_text()) | {name: entry}
    order = [name for name in posteriors.POSTERIORS if name in entries]
    lines = [f"{json.dumps(name)}: {json.dumps(entries[name])}" for name in order]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def main(names: list[str]) -> None:
    """Make the references of the named targets, or of all."""
    known = [*quadrature.GRIDS, *DRAWS]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SystemExit(f"names must be among {known}, got {unknown}")
    jax.config.update("jax_enable_x64", True)
    for name in names or known:
        print(name, flush=True)
        begun, target = time.process_time(), get(name)
        if name in quadrature.GRIDS:
            entry = exact(target)
        else:
            entry = summarise(target, run_nuts(target, DRAWS[name]))
        if entry is not None:
            store(target, entry)
        print(f"  {time.process_time() - begun:.0f} s of CPU", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
