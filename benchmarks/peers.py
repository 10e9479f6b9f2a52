"""The peers of `schuss.peers`, by the names that the benchmarks know."""

from schuss.peers import (
    BAR,
    PEERS,
    Peer,
    Run,
    bias,
    bias_on_grid,
    crossing,
    mams,
    mclmc,
    nutpie,
    nuts,
)
from schuss.peers.chain import RECORDS, logdensity, start

__all__ = [
    "BAR",
    "PEERS",
    "RECORDS",
    "Peer",
    "Run",
    "bias",
    "bias_on_grid",
    "crossing",
    "logdensity",
    "mams",
    "mclmc",
    "nutpie",
    "nuts",
    "start",
]
