"""BlackJAX's No-U-Turn sampler: window adaptation over its default of 1000 draws, then sampling."""

import importlib

import jax.numpy as jnp

from schuss.peers.chain import chain, library, logdensity
from schuss.peers.run import Peer
from schuss.targets.target import Target

WARM_UP = 1000


def nuts(target: Target, budget: int, keep: bool = False, warm_up: int = WARM_UP) -> Peer:
    """BlackJAX's NUTS with a diagonal metric from window adaptation."""
    blackjax = library("blackjax", "nuts")
    kept = importlib.import_module("blackjax.adaptation.base").get_filter_adapt_info_fn
    logp, kernel = logdensity(target), blackjax.mcmc.nuts.build_kernel()
    steps = kept(info_keys={"num_integration_steps"})
    adaptation = blackjax.window_adaptation(blackjax.nuts, logp, adaptation_info_fn=steps)

    def tune(key, position):
        found, info = adaptation.run(key, position, warm_up)
        state, parameters = found
        chosen = {name: parameters[name] for name in ("step_size", "inverse_mass_matrix")}
        return state, chosen, jnp.sum(info.info.num_integration_steps)

    def draw(key, state, parameters):
        state, info = kernel(key, state, logp, **parameters)
        return state, info.num_integration_steps

    return chain(target, budget, tune, draw, 10, keep)
