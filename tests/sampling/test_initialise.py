"""Burn-in: step sizes by energy errors, chains that begin again, and what it leaves."""

import numpy as np
import pytest

from schuss.problem import pose
from schuss.sampling.initialise import (
    ERROR,
    Controller,
    beside,
    initialise,
    last_visit,
    moved_beside,
)
from schuss.sampling.state import rows
from schuss.tuning.burn_in import LEAST, MOST

from .targets import value_and_grad

DIM = 50


@pytest.mark.parametrize("curvature", [1e-3, 1.0, 1e3])
def test_step_sizes_come_to_the_wanted_error(curvature):
    """E[W²]/d = c²ε⁶ with errors that are normal: ε to a tenth, by the last dozen of them."""
    rng, zero = np.random.default_rng(0), np.zeros(4)
    control, sizes = Controller(np.full(4, 0.1), zero, zero), []
    for _ in range(60):
        scale = curvature * control.step_size**3 * np.sqrt(DIM)
        control = control.updated(scale * rng.standard_normal((8, 4)), DIM)
        sizes.append(control.step_size)
    wanted = min((ERROR**0.5 / curvature) ** (1 / 3), 2.5 * np.sqrt(DIM))
    assert np.mean(np.log(sizes[20:])) == pytest.approx(np.log(wanted), abs=0.1)


@pytest.mark.parametrize("wild", [np.nan, np.inf, -np.inf, 1e300])
def test_steps_with_errors_beyond_all_bounds_shrink(wild):
    """And no more than by half at a time."""
    control = Controller(np.ones(2), np.zeros(2), np.zeros(2))
    control = control.updated(np.array([[wild, 0.0]] * 8), DIM)
    assert control.step_size[0] == 0.5 and control.step_size[1] == 1.5
    assert np.isfinite(control.errors).all()


def test_step_sizes_in_other_coordinates():
    """Errors are those of the same steps: what is wanted of the next ones stays the same."""
    rng = np.random.default_rng(0)
    control = Controller(np.ones(3), np.zeros(3), np.zeros(3)).updated(
        0.1 * rng.standard_normal((8, 3)), DIM
    )
    silence = np.empty((0, 3))
    there = control.scaled(1.2).updated(silence, DIM).step_size
    np.testing.assert_allclose(there, 1.2 * control.updated(silence, DIM).step_size)


def test_lost_chains_go_on_beside_others():
    lost = np.array([True, False, True, False])
    of = beside(lost, np.random.default_rng(0))
    np.testing.assert_array_equal(of[~lost], [1, 3])
    assert set(of[lost]) <= {1, 3}
    np.testing.assert_array_equal(beside(lost & False, np.random.default_rng(0)), np.arange(4))


@pytest.fixture(scope="module")
def burnt():
    problem = pose(value_and_grad=value_and_grad, init=np.zeros((4, 3)))
    return problem, initialise(problem, np.asarray(problem.x), 0)


def test_chains_that_go_on_beside_another_have_directions_of_their_own(burnt):
    chains = burnt[1].chains
    moved = moved_beside(chains, np.array([1, 1, 1, 3]), np.random.default_rng(1))
    np.testing.assert_array_equal(moved.x, chains.x[[1, 1, 1, 3]])
    np.testing.assert_array_equal(moved.energy, chains.energy[[1, 1, 1, 3]])
    np.testing.assert_array_equal(moved.u[[1, 3]], chains.u[[1, 3]])
    np.testing.assert_allclose(np.linalg.norm(moved.u, axis=1), 1)
    assert np.abs(moved.u[0] - moved.u[1]).max() > 0.01


def test_what_burn_in_leaves(burnt):
    """The last chunk alone, whose draws don't count, and all gradients of descent and of steps."""
    asked = []

    def counted(x):
        asked.append(len(x))
        return value_and_grad(x)

    problem, state = burnt
    again = pose(value_and_grad=counted, init=np.zeros((4, 3)))
    asked.clear()
    other = initialise(again, np.asarray(problem.x), 0)
    np.testing.assert_array_equal(other.chains.x, state.chains.x)
    assert other.counts.gradients == sum(asked)
    assert len(state.blocks) == 1 and rows(state.settled_blocks) == 0 and state.phase == "burn-in"
    energy, grad = value_and_grad(state.chains.x)
    np.testing.assert_allclose(state.chains.energy, energy)
    np.testing.assert_allclose(state.chains.grad, grad)
    assert 8 * LEAST * 4 <= state.counts.gradients <= 2 * 8 * MOST * 4
    assert state.facts.lowest <= energy.min()


def test_a_visit_is_at_the_end_of_a_path():
    """With the mass around its way: here that of a Gaussian of width 2 in three dimensions."""
    x = np.random.default_rng(0).standard_normal((20, 2, 3))
    seen = last_visit(x, x / 4, (x**2).sum(axis=-1) / 8)
    np.testing.assert_array_equal(seen.x, x[-1])
    np.testing.assert_allclose(seen.mass, 3 * np.log(2), rtol=1e-9)
