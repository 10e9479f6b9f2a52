"""Other samplers with their own tuners, counted in gradients.

Each function takes a target and a budget of gradients and gives a function of a seed, compiled
once, that runs one chain in float64 from `target.start` and returns a `Run`. All gradients count:
the first one, tuning, rejected and divergent steps. With `keep` the run holds its draws too.
"""

from collections.abc import Callable

from schuss.peers.mams import mams
from schuss.peers.mclmc import mclmc
from schuss.peers.nutpie import nutpie
from schuss.peers.nuts import nuts
from schuss.peers.run import BAR, Peer, Run, bias, bias_on_grid, crossing

PEERS: dict[str, Callable[..., Peer]] = {
    "BlackJAX MCLMC": mclmc,
    "BlackJAX MAMS": mams,
    "BlackJAX NUTS": nuts,
    "nutpie": nutpie,
}

__all__ = [
    "BAR",
    "PEERS",
    "Peer",
    "Run",
    "bias",
    "bias_on_grid",
    "crossing",
    "mams",
    "mclmc",
    "nutpie",
    "nuts",
]
