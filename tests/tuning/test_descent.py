"""Descent from afar: what it costs, where it ends, and what it doesn't mind on the way."""

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from seeds import shifted

import schuss
from schuss.problem import pose
from schuss.sampling.run import Plan, run
from schuss.targets import posteriors
from schuss.tuning.descent import CHUNK, descend

FAR, WINDOWS = 30.0, 9


class Counted:
    """A function that remembers where it was asked."""

    def __init__(self, function):
        self.function, self.asked = function, []

    def __call__(self, x):
        self.asked.append(x)
        return self.function(x)


def of(target):
    return lambda x: (target.energy(np, x), target.gradient(np, x))


def bowl(dim, condition=1e4):
    stiff = np.geomspace(1 / condition, 1, dim)
    return lambda x: ((x**2 @ stiff) / 2, stiff * x)


def far(chains, dim, seed=0):
    return FAR * np.random.default_rng(seed).standard_normal((chains, dim))


@pytest.mark.parametrize("name", ["rosenbrock", "brownian"])
def test_comes_down_as_far_as_scipy_in_the_same_iterations(name):
    """Nearly all of the way to the lowest energy that SciPy's L-BFGS finds from there."""
    target = posteriors.POSTERIORS[name]()
    x = far(4, target.dim)
    energy = target.energy(np, x)
    found = descend(of(target), x)
    for k in range(4):
        lowest = minimize(
            lambda z: tuple(part[0] for part in of(target)(z[None])),
            x[k],
            jac=True,
            method="L-BFGS-B",
        ).fun
        assert found.energy[k] - lowest < 16 * target.dim
        assert (found.energy[k] - lowest) / (energy[k] - lowest) < 0.02


@pytest.mark.parametrize(
    ("name", "deviation", "seeds", "least"),
    [
        ("rosenbrock", 1.0, 4, 3),
        ("rosenbrock", 10.0, 8, 7),
        ("brownian", 1.0, 4, 3),
        ("brownian", 10.0, 4, 3),
    ],
)
def test_with_burn_in_and_eight_windows_it_reaches_the_typical_set(name, deviation, seeds, least):
    """Energies within eight of their deviations √(d/2): all of 24 seeds each."""
    target = posteriors.POSTERIORS[name]()
    reached = 0
    for seed in map(shifted, range(seeds)):
        x = deviation * np.random.default_rng(seed).standard_normal((4, target.dim))
        states = run(Plan(pose(target, init=x, engine="numpy"), seed), x)
        state = next(state for state in states if state.counts.windows == WINDOWS)
        away = np.abs(state.chains.energy - target.truth.energy) / np.sqrt(target.dim / 2)
        reached += np.all(away < 8)
    assert reached >= least


@pytest.mark.slow
@pytest.mark.parametrize(("name", "gradients"), [("rosenbrock", 80_000), ("brownian", 20_000)])
def test_runs_from_far_away_are_right_or_say_that_they_are_not(name, gradients):
    """From N(0, 30²), b² = (mean of x² − truth)²/Var x² of the worst coordinate, 8 seeds."""
    target = posteriors.POSTERIORS[name]()
    right = 0
    for seed in range(8):
        x = far(4, target.dim, seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", schuss.NotConverged)
            found = schuss.sample(
                target, init=x, gradients=gradients, seed=shifted(seed), progress=False
            )
        off = (found.x**2).mean(axis=(0, 1)) - target.truth.second_moment
        good = np.max(off**2 / target.truth.second_variance) < 0.1
        assert good or not found.verdict.converged
        right += good
    assert right >= 6


def test_one_gradient_of_each_chain_in_an_iteration():
    function = Counted(bowl(20))
    found = descend(function, far(5, 20))
    assert found.iterations == len(function.asked)
    assert found.iterations % CHUNK == 1
    assert all(x.shape == (5, 20) for x in function.asked)


def test_what_it_gives_is_a_point_of_the_path_with_its_energy_and_gradient():
    function = Counted(bowl(20))
    found = descend(function, far(5, 20))
    energy, g = function.function(found.x)
    np.testing.assert_array_equal(found.energy, energy)
    np.testing.assert_array_equal(found.g, g)
    path = np.stack(function.asked)
    assert np.all(np.any(np.all(path == found.x, axis=-1), axis=0))


def test_chains_go_their_own_way():
    """Each ends where it would have ended alone, also when others go on for longer."""
    function = bowl(10)
    x = far(4, 10) * np.array([1e-3, 1.0, 30.0, 1000.0])[:, None]
    together = descend(function, x)
    alone = [descend(function, x[k : k + 1]) for k in range(4)]
    assert len({one.iterations for one in alone}) > 1
    assert together.iterations == max(one.iterations for one in alone)
    for k in range(4):
        np.testing.assert_allclose(together.x[k], alone[k].x[0], rtol=1e-5, atol=1e-6)


def test_stays_near_where_it_is_good_already():
    """From draws of a Gaussian, whose mean energy is 25, it hardly goes down to the mode."""
    x = np.random.default_rng(0).standard_normal((8, 50))
    found = descend(lambda x: ((x**2).sum(axis=-1) / 2, x), x)
    assert found.iterations <= 1 + 4 * CHUNK
    before = (x**2).sum(axis=-1) / 2
    assert np.all(found.energy <= before)
    assert found.energy.mean() > 50 / 4


@pytest.mark.parametrize("outside", [np.inf, np.nan, -np.inf])
def test_trials_that_are_not_finite_are_taken_back(outside):
    """A round bowl that ends at |x − 3| = 4; its bottom, at −2, lies beyond the edge."""
    centre = np.full(5, 3.0)

    def walled(x):
        inside = np.linalg.norm(x - centre, axis=-1) < 4
        energy = np.where(inside, 50 * ((x + 2) ** 2).sum(axis=-1), outside)
        return energy, np.where(inside[:, None], 100 * (x + 2), np.nan)

    x = centre + 0.1 * np.random.default_rng(0).standard_normal((6, 5))
    found = descend(walled, x)
    assert np.isfinite(found.energy).all() and np.isfinite(found.g).all()
    assert np.all(np.linalg.norm(found.x - centre, axis=-1) < 4)
    assert np.all(found.energy < walled(x)[0])


def test_a_density_without_a_bottom_ends_all_the_same():
    found = descend(lambda x: (-(x**2).sum(axis=-1), -2 * x), far(3, 4), most=200)
    assert found.iterations <= 200 + CHUNK
    assert np.isfinite(found.x).all()


def test_plains_are_left_as_they_are():
    x = far(3, 4)
    found = descend(lambda x: (np.zeros(len(x)), np.zeros_like(x)), x)
    np.testing.assert_array_equal(found.x, x)
    assert found.iterations == 1 + CHUNK


def test_gradients_whose_squares_are_infinite():
    """cosh(9x) begins with a gradient of 1e200 and must come down all the same."""

    def steep(x):
        return np.cosh(9 * x).sum(axis=-1), 9 * np.sinh(9 * x)

    start = np.full((2, 3), 51.0)
    found = descend(steep, start)
    assert np.all(steep(start)[1] > 1e160)
    assert np.all(found.energy < 10)
