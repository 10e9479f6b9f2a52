"""BlackJAX's microcanonical Langevin dynamics, un-adjusted.

`mclmc_find_L_and_step_size` for `num_steps`, then `num_steps` of sampling; its default shares make
tuning a quarter of the budget. Minimal norm, two gradients a step.
"""

import jax

from schuss.peers.chain import RECORDS, chain, library, logdensity
from schuss.peers.run import Peer
from schuss.targets.target import Target


def mclmc(target: Target, budget: int, keep: bool = False) -> Peer:
    """BlackJAX's microcanonical Langevin dynamics, un-adjusted, with its tuner."""
    blackjax = library("blackjax", "mclmc")
    logp, num_steps = logdensity(target), 3 * budget // 8
    kernel = blackjax.mcmc.mclmc.build_kernel()

    def tune(key, position):
        start_key, tune_key = jax.random.split(key)
        state = blackjax.mcmc.mclmc.init(position, logp, start_key)
        state, parameters, steps = blackjax.mclmc_find_L_and_step_size(
            mclmc_kernel=kernel,
            logdensity_fn=logp,
            num_steps=num_steps,
            state=state,
            rng_key=tune_key,
        )
        return state, parameters, 2 * steps

    def draw(key, state, parameters):
        metric, length, size = parameters.inverse_mass_matrix, parameters.L, parameters.step_size
        return kernel(key, state, logp, metric, length, size)[0], 2

    return chain(target, budget, tune, draw, max(1, num_steps // RECORDS), keep)
