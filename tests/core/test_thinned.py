"""Every n-th transition, against all of them with most left out afterwards."""

import numpy as np
import pytest

from schuss.core import persistent, thinned
from schuss.core.dynamics import ESH
from schuss.core.integrators import LEAPFROG
from schuss.core.kernel import Noise

CHAINS, DIM, STEPS = 7, 3, 120
PARAMS = persistent.Params(*map(np.float64, (1.1, 2.0, 2.0, 0.2, 3.0, 0.3)))


def quartic(x):
    return np.sum(x**4, axis=1) / 4, x**3


def noises():
    rng = np.random.default_rng(3)
    while True:
        yield Noise(rng.standard_normal((CHAINS, DIM)), rng.uniform(size=(CHAINS, 1)))


@pytest.mark.parametrize("every", [1, 2, 5])
def test_the_transitions_held_are_every_nth(every):
    """Chains begin after different numbers of transitions, look ahead, and get out of step."""
    inner = persistent.kernel(ESH, LEAPFROG)
    kernel, source = thinned.kernel(inner), noises()
    x = np.random.default_rng(0).standard_normal((CHAINS, DIM))
    params = thinned.Params(PARAMS, np.float64(every), np.float64(0.5))
    start, nothing = inner.init(np, x, *quartic(x), next(source), PARAMS), np.zeros(CHAINS)
    begun = np.arange(CHAINS) % every
    plain, state = start, thinned.beginning(start, begun.astype(float), nothing)
    wanted, found, diverged = ([[] for _ in range(CHAINS)] for _ in range(3))
    number, last = begun.copy(), np.zeros(CHAINS)
    for t in range(STEPS):
        noise = next(source)
        plain, info = inner.step(np, quartic, plain, noise, PARAMS)
        state, told = kernel.step(np, quartic, state, noise, params)
        np.testing.assert_array_equal(told.complete, info.complete)
        number += info.complete
        for k in range(CHAINS):
            diverged[k].append(not info.energy_error[k] < 0.5)
            if info.complete[k] and number[k] % every == 0:
                wanted[k].append((*plain.x[k], plain.energy[k], *plain.g[k], info.acceptance[k]))
        if (t + 1) % every == 0:  # as seldom as is allowed
            held = state.held
            for k in np.flatnonzero(held.number > last):
                found[k].append((*held.x[k], held.energy[k], *held.g[k], held.acceptance[k]))
            last = held.number
    assert len({len(part) for part in wanted}) > 1
    for one, other in zip(wanted, found, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(state.number, number)
    np.testing.assert_array_equal(state.diverged, np.sum(diverged, axis=1))
    assert state.diverged.any() and np.array_equal(state.x, plain.x)
