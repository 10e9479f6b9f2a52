"""Several hosts, one process on each: all run chains of their own and pool their moments.

On two hosts (or twice on one machine, to try it):

    python examples/multihost.py --coordinator host0:9000 --processes 2 --process 0
    python examples/multihost.py --coordinator host0:9000 --processes 2 --process 1

Under SLURM, Open MPI or on Cloud TPUs `--cluster` finds out all three. Without arguments it is one
process.
"""

import argparse

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.multihost_utils import process_allgather

import schuss

SCALES = np.array([1.0, 2.0, 5.0])
CHAINS = 32


def logdensity(x):
    """A Gaussian with these scales: its variances are to be found."""
    return -jnp.sum((x / SCALES) ** 2) / 2


def share(index: int, seed: int = 0, steps: int = 4000):
    """The chains of process `index`: for each one its weight, and the mean and variance of x."""
    # Starts and noise come from the seed and the index: no two processes share them.
    for_starts, for_settling, for_sampling = np.random.SeedSequence([seed, index]).generate_state(3)
    sampler = schuss.ESH(step_size=0.7, refresh=3.0, adjust="persistent", metric=SCALES)
    init = np.random.default_rng(for_starts).normal(size=(CHAINS, len(SCALES)))
    settle = schuss.Sampler(sampler, steps=steps // 4, keep="reservoir", seed=for_settling)
    start = settle.run(logdensity=logdensity, init=init).last
    measure = schuss.Sampler(sampler, steps=steps, keep="moments", seed=for_sampling)
    run = measure.run(logdensity=logdensity, init=start)
    assert run.moments is not None
    weight = np.where(run.frozen, 0.0, np.exp(np.asarray(run.moments.log_total)))
    return weight, np.asarray(run.moments.mean), np.asarray(run.moments.variance)


def pool(weight, mean, variance):
    """Mean and variance over the chains of all processes, and the standard error of the mean."""
    part = weight.reshape(-1, 1) / weight.sum()
    mean, variance = mean.reshape(len(part), -1), variance.reshape(len(part), -1)
    overall = (part * mean).sum(axis=0)
    error = np.sqrt((part**2 * (mean - overall) ** 2).sum(axis=0))
    return overall, (part * (variance + (mean - overall) ** 2)).sum(axis=0), error


def main():
    """Join the others, sample, pool, and let the first process say what came out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--coordinator", help="address:port of process 0")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--process", type=int, default=0)
    parser.add_argument("--cluster", action="store_true", help="ask the cluster for the above")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", help="an .npz file for the pooled moments")
    given = parser.parse_args()

    # The way CPUs talk to each other; other devices have their own. Before anything is computed.
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    if given.cluster:
        jax.distributed.initialize()
    elif given.processes > 1:
        jax.distributed.initialize(given.coordinator, given.processes, given.process)

    mine = share(jax.process_index(), given.seed)
    with jax.enable_x64(True):  # or they would be gathered in 32 bits
        everyone = process_allgather(mine)
    mean, variance, error = pool(*everyone)

    if jax.process_index() == 0:
        print(f"{jax.process_count()} processes of {CHAINS} chains")
        print("mean    ", mean, "±", error)
        print("variance", variance, "exactly", SCALES**2)
        if given.save:
            np.savez(given.save, mean=mean, variance=variance, error=error)


if __name__ == "__main__":
    main()
