"""The adjusted sampler compiled in the background, while the flow runs."""

import contextlib
import threading

import numpy as np

from schuss.sampling import exact
from schuss.sampling.field import Field
from schuss.sampling.tuned import Tuned
from schuss.sampling.whereabouts import Whereabouts


def compiling(field: Field, now: Whereabouts, tuned: Tuned) -> threading.Thread | None:
    """A thread that compiles it for these shapes; None where nothing is compiled."""
    if field.engine.name != "jax":
        return None

    def compile_():
        # What goes wrong here goes wrong again where it can be told to the user.
        with contextlib.suppress(Exception):
            field.advance(sampler, params, tuned.metric, state, 0, 0, field.source(0))

    begun = exact.state(now, tuned, np.random.default_rng(0))
    sampler, params, state = exact.holding(tuned, begun, np.zeros(len(begun.x)), 1)
    thread = threading.Thread(target=compile_)
    thread.start()
    return thread
