"""Long steps where the target is close to a Gaussian, and leapfrog steps where it isn't."""

import math

import numpy as np
import pytest
from scipy.stats import norm
from seeds import shifted

from schuss.problem import pose
from schuss.sampling import exact
from schuss.sampling.course import Course
from schuss.sampling.field import Field
from schuss.sampling.tuned import LONG, LONGEST, SHORTER, SMALL, untuned
from schuss.targets import isotropic
from schuss.targets.posteriors import eight_schools, rosenbrock

DIM = 25
ROOT = math.sqrt(DIM)
LONG_ENOUGH = untuned(DIM).stepping(1.1 * LONG * ROOT)


def tries(steep, others, count=1000):
    """A tenth of them on steep slopes, and how likely both kinds are to be accepted."""
    slope = np.linspace(0, 1, count)
    return np.stack([slope, np.where(slope > 0.9, steep, others)])


def test_steps_of_the_flow_are_long_from_some_length_on():
    assert LONG_ENOUGH.long and not LONG_ENOUGH.stepping(0.99 * LONG * ROOT).long
    assert exact.kernel(LONG_ENOUGH) is exact.LONG
    assert exact.kernel(LONG_ENOUGH.leaping()) is exact.EXACT


def test_in_few_dimensions_one_kernel_serves_for_all_steps():
    small = untuned(SMALL).stepping(2 * LONG * math.sqrt(SMALL))
    assert not small.long
    assert exact.kernel(small) is exact.kernel(small._replace(local=True)) is exact.LOCAL
    assert exact.kernel(untuned(SMALL + 1)) is exact.EXACT


def test_long_steps_are_foreseen_where_they_will_stay():
    assert not LONG_ENOUGH.foreseen.long
    assert LONG_ENOUGH.stepping(1.5 * LONG * ROOT).foreseen.long


def test_long_steps_have_a_limit():
    tuned = LONG_ENOUGH
    for _ in range(5):
        tuned = tuned.accepted(0.999, np.full(10, 0.999))
    assert tuned.long and tuned.step == pytest.approx(LONGEST * ROOT)


@pytest.mark.parametrize("made", [0.5, 1.0, 2.0])
def test_the_first_exact_step_follows_from_the_errors_of_the_flow(made):
    """Errors N(s²/2, s²), s = −2Φ⁻¹(.45), are those of steps accepted nine times out of ten.

    They were made by steps of `made` in units of the present one. 200 000 of them know the factor
    to a tenth of a percent.
    """
    tuned = untuned(DIM).stepping(1.5)
    epsilon = np.full((50_000, 1), made * tuned.epsilon)
    for times in (1, 4):
        s = -2 * norm.ppf(0.45) * times
        error = norm.rvs(s**2 / 2, s, (50_000, 4), random_state=0) * made**3
        found = tuned.adjusted(error, epsilon, np.ones_like(epsilon))
        want = SHORTER * tuned.step * times ** (-1 / 3)
        assert not found.long and found.step == pytest.approx(want, rel=0.005)
        assert LONG_ENOUGH.adjusted(error, epsilon, np.ones_like(epsilon)) is LONG_ENOUGH


def test_steps_that_would_be_short_leap():
    tuned = LONG_ENOUGH.accepted(0.4, np.full(10, 0.4))
    assert not tuned.long
    assert 0.5 * SHORTER * ROOT < tuned.step < SHORTER * LONG * ROOT


def test_long_steps_that_are_refused_on_steep_slopes_leap_before_they_are_local():
    assert LONG_ENOUGH.localised(tries(0.9, 0.98)) == LONG_ENOUGH
    leaping = LONG_ENOUGH.localised(tries(0.7, 0.98))
    assert not leaping.long and not leaping.local
    assert leaping.localised(tries(0.7, 0.98)).local


def test_a_velocity_is_forgotten_within_the_root_of_the_dimension():
    """Draws that hardly move ask for the longest length."""
    x = np.cumsum(np.random.default_rng(0).standard_normal((200, 4, DIM)), axis=0)
    length = LONG_ENOUGH.refreshed(x).length
    assert length == pytest.approx(ROOT)
    assert LONG_ENOUGH.leaping().refreshed(x).length > 2 * ROOT


def run(target, gradients, *, adjust=True):
    problem = pose(target, chains=4, seed=shifted(0))
    field = Field.over(problem, shifted(0), 1.0)
    course = Course(field, np.asarray(problem.x, float), exact=adjust)
    for _ in course.run():
        if course.total >= gradients:
            break
    return course


@pytest.mark.statistics
def test_a_gaussian_is_sampled_with_long_steps():
    """E[x²/σ²] to 5 standard errors of the effective draws, which are many a gradient."""
    target = isotropic(50)
    course = run(target, 8000)
    assert course.exactly and course.long
    assert course.gradients["adapting"] == 2 * 4 * course.archive.size
    x = course.archive.stack("x")
    ratio = (x**2).mean(axis=(0, 1)) / target.truth.second_moment
    assert course.sizes.min() > 0.2 * course.gradients["adapting"]
    assert np.abs(ratio - 1).max() < 5 * math.sqrt(2 / course.sizes.min())


@pytest.mark.statistics
def test_a_posterior_that_is_no_gaussian_is_sampled_with_leapfrog_steps():
    assert not run(eight_schools(), 3000).long


@pytest.mark.statistics
@pytest.mark.parametrize(
    ("target", "gradients", "adjusted"),
    [(isotropic(50), 2000, False), (rosenbrock(), 8000, False), (eight_schools(), 2000, True)],
)
def test_where_the_flow_goes_on_unadjusted(target, gradients, adjusted):
    """Where steps are long, and where it takes many of them to make a draw."""
    course = run(target, gradients, adjust=False)
    assert (course.phase == "adapting") == adjusted == (course.gradients["adapting"] > 0)


@pytest.mark.statistics
def test_exact_draws_of_a_chain_that_was_far_away_do_not_count():
    """One chain is thrown 1000 standard deviations out as the exact phase begins."""
    target = isotropic(50)
    problem = pose(target, chains=4, seed=0)
    course = Course(Field.over(problem, 0, 1.0), np.asarray(problem.x, float))
    thrown = False
    for _ in course.run():
        if course.phase == "adapting" and not thrown:
            x = course.x.copy()
            x[0] += 1000 / math.sqrt(50)
            course.x, (course.energy, course.g), course.state = x, course.field.evaluate(x), None
            thrown = True
        if course.total >= 20_000:
            break
    x = course.archive.stack("x") if course.adapted is None else course.adapted.stack("x")
    assert np.abs(x).max() < 6
