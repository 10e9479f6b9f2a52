"""BlackJAX's Metropolis-adjusted microcanonical sampler.

`adjusted_mclmc_find_L_and_step_size` at acceptance .9 with random trajectory lengths and no third
phase, three of thirteen parts of the budget; two gradients a step, two steps a draw. The share is
that of the number of draws: trajectories may be longer while tuning.
"""

import jax

from schuss.peers.chain import RECORDS, chain, library, logdensity
from schuss.peers.run import Peer
from schuss.targets.target import Target


def mams(target: Target, budget: int, keep: bool = False) -> Peer:
    """BlackJAX's Metropolis-adjusted microcanonical sampler with its tuner."""
    blackjax = library("blackjax", "mams")
    adjusted = blackjax.mcmc.adjusted_mclmc_dynamic
    logp, num_steps = logdensity(target), round(budget / (4 * 1.3))
    kernel = adjusted.build_kernel(adjusted.make_random_trajectory_length_fn(True))

    def tune(key, position):
        start_key, tune_key = jax.random.split(key)
        state, parameters, steps = blackjax.adjusted_mclmc_find_L_and_step_size(
            mclmc_kernel=kernel,
            logdensity_fn=logp,
            num_steps=num_steps,
            state=adjusted.init(position, logp, start_key),
            rng_key=tune_key,
            target=0.9,
        )
        return state, parameters, 2 * steps

    def draw(key, state, parameters):
        state, info = kernel(
            key,
            state,
            logp,
            step_size=parameters.step_size,
            inverse_mass_matrix=parameters.inverse_mass_matrix,
            integration_steps_params=(parameters.L / parameters.step_size,),
        )
        return state, 2 * info.num_integration_steps

    return chain(target, budget, tune, draw, max(1, num_steps // RECORDS), keep)
