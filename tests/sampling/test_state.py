"""The records of a run: draws of ragged blocks, and that nothing in a state can change."""

import numpy as np
import pytest

from schuss.problem import pose
from schuss.sampling.run import Plan, run
from schuss.sampling.state import Block, draws, rows, thinned
from schuss.targets import funnel


def block(rng, counts, dim=2):
    n, chains = max(counts), len(counts)
    x = rng.standard_normal((n, chains, dim))
    flat = rng.standard_normal((3, n, chains))
    return Block(x, flat[0], x.copy(), flat[1], flat[2], np.array(counts))


@pytest.fixture
def blocks():
    rng = np.random.default_rng(0)
    return tuple(block(rng, counts) for counts in [(3, 5), (2, 2), (4, 1), (6, 6)])


def sequence(blocks, name, chain):
    """All draws of one chain, in order of time."""
    return np.concatenate([getattr(b, name)[: b.counts[chain], chain] for b in blocks])


def test_draws_are_the_first_of_each_chain(blocks):
    x, energy = draws(blocks, "x", "energy")
    assert len(x) == rows(blocks) == 14
    for chain in range(2):
        np.testing.assert_array_equal(x[:, chain], sequence(blocks, "x", chain)[:14])
        np.testing.assert_array_equal(energy[:, chain], sequence(blocks, "energy", chain)[:14])


def test_blocks_that_are_not_ragged():
    rng = np.random.default_rng(0)
    even = (block(rng, (3, 3)), block(rng, (2, 2)))
    (x,) = draws(even, "x")
    np.testing.assert_array_equal(x, np.concatenate([even[0].x, even[1].x]))


def test_thinned_blocks_have_every_second_draw(blocks):
    half = thinned(blocks[0], 2)
    np.testing.assert_array_equal(half.counts, [1, 2])
    np.testing.assert_array_equal(half.x[:, 1], blocks[0].x[[1, 3], 1])


def leaves(value, path="state"):
    if isinstance(value, tuple):
        names = getattr(value, "_fields", range(len(value)))
        for name, part in zip(names, value, strict=True):
            yield from leaves(part, f"{path}.{name}")
    else:
        yield path, value


def test_a_state_cannot_change():
    """No dict, list or other object with a state of its own, and no array that can be written."""
    target = funnel(5)
    problem = pose(target, init=target.start(np.random.default_rng(0), 4))
    plan = Plan(problem, seed=0, moments=True)
    for state, _ in zip(run(plan, np.asarray(problem.x)), range(8), strict=False):
        for path, value in leaves(state):
            assert isinstance(value, np.ndarray | float | int | str | bool | type(None)), path
            if isinstance(value, np.ndarray):
                assert not value.flags.writeable, path
