"""Local steps: taken where steep slopes refuse the others, and not elsewhere."""

import numpy as np
import pytest
from seeds import shifted

from schuss import targets
from schuss.problem import pose
from schuss.sampling import packing
from schuss.sampling.course import Course
from schuss.sampling.field import Field
from schuss.tuning import slopes

pytestmark = pytest.mark.statistics


def course(name, seed=0):
    seed = shifted(seed)
    target = targets.get(name)
    x = np.asarray(target.start(np.random.default_rng(seed), 4), float)
    return Course(Field.over(pose(target, init=x, seed=seed), seed, 1.0), x)


def follow(run, gradients):
    """To the end of a window."""
    for ended in run.run():
        if ended and run.total >= gradients:
            return run
    raise AssertionError


@pytest.mark.parametrize(("name", "local"), [("brownian", True), ("rosenbrock", False)])
def test_where_steps_are_local(name, local):
    """A neck in which steps are refused, and a ridge on which they aren't."""
    run = follow(course(name), 15_000)
    assert run.phase in ("adapting", "sampling")
    assert run.local is local
    assert run.history[-1]["local"] is local


def test_slopes_that_say_nothing():
    """Too few tries, or one slope for all of them."""
    likely = np.linspace(0.5, 1, 1000)
    assert not slopes.refused(np.stack([np.zeros(1000), likely]))
    falling = np.stack([-likely, likely])
    assert slopes.refused(falling)
    assert not slopes.refused(falling[:, ::10])
    assert not slopes.refused(falling * [[-1], [1]])


def test_first_tries_alone_are_counted():
    g = np.arange(1.0, 7).reshape(3, 2, 1)
    acceptance = np.array([[0.1, 0.2], [np.nan, 0.4], [0.5, 0.6]])
    found = slopes.tries(g, acceptance)
    np.testing.assert_allclose(found, [np.log([2, 3, 4]), [0.4, 0.5, 0.6]])


def test_a_local_run_goes_on_as_it_was():
    """Packed among the windows of the exact phase, and unpacked into another."""
    run = follow(course("brownian"), 6000)
    assert run.local and run.phase == "adapting"
    other = course("brownian")
    packing.unpack(other, packing.pack(run), None)
    follow(run, 9000)
    follow(other, 9000)
    np.testing.assert_array_equal(run.x, other.x)
    assert run.step == other.step and run.knee == other.knee
    np.testing.assert_array_equal(run.tried, other.tried)
