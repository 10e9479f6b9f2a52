"""The loop: moments of all draws, and how many of them are kept."""

import numpy as np
import pytest

from schuss.problem import pose
from schuss.sampling.run import Plan, _moments, advanced, run
from schuss.sampling.state import Block, rows

from .targets import value_and_grad

CHAINS, DIM = 3, 2


def blocks(sizes, offset=0.0):
    """Ragged draws: each chain has its own share of them."""
    rng = np.random.default_rng(0)
    for n in sizes:
        counts = np.maximum((n * np.array([1.0, 0.7, 0.3])).astype(int), 1)
        x, energy = rng.standard_normal((n, CHAINS, DIM)), rng.standard_normal((n, CHAINS))
        yield Block(x + offset, energy, x, energy, energy, counts)


@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_moments_are_of_all_draws(offset):
    """Also far from zero, where the squares of x would have lost all digits of the variance."""
    found, made = None, list(blocks([7, 50, 90], offset))
    for block in made:
        found = _moments(found, block)
    assert found is not None
    for k in range(CHAINS):
        x = np.concatenate([block.x[: block.counts[k], k] for block in made])
        away = found.total[k] / found.states[k]
        np.testing.assert_allclose(found.origin[k] + away, x.mean(axis=0), rtol=1e-14, atol=1e-14)
        variance = found.squares[k] / found.states[k] - away**2
        np.testing.assert_allclose(variance, x.var(axis=0), rtol=1e-6)
        assert found.states[k] == len(x)


def test_draws_are_thinned_where_there_are_twice_as_many_as_are_kept():
    """By windows of twenty steps, of which sixteen times as many are made as are kept."""
    problem = pose(value_and_grad=value_and_grad, init=np.zeros((4, 3)))
    plan = Plan(problem, 0, max_rows=100)
    state = next(state for state in run(plan, np.asarray(problem.x)) if state.frozen)
    for _ in range(300):
        state = advanced(plan, state._replace(steps=20))
    assert np.log2(state.thin) % 1 == 0
    assert 0.8 * plan.max_rows <= rows(state.settled_blocks) <= 2 * plan.max_rows
    assert rows(state.settled_blocks) * state.thin == pytest.approx(300 * 17, rel=0.3)
