"""The step from errors that grow like ε³, and from how often steps are accepted."""

import math

import numpy as np
import pytest
from scipy.stats import norm
from seeds import shifted

from schuss.tuning import step_size

DIM, WANTED = 7, 3e-3


def test_errors_in_proportion_to_the_cube_give_the_step_that_makes_the_wanted_one():
    """ΔW = cε³: c²ε⁶/d = ξ* at the step that is found, whatever steps were made."""
    steps = np.linspace(0.1, 2.0, 50)[:, None]
    for c in (0.01, 1.0, 30.0):
        signs = np.where(np.arange(4) % 2, 1.0, -1.0)
        found = step_size.from_errors(signs * c * steps**3, steps, DIM, WANTED)
        assert c**2 * found**6 / DIM == pytest.approx(WANTED, rel=1e-10)


def test_random_errors_give_the_step_on_average():
    """N(0, c²ε⁶) errors, 40 000 of them: the sixth root knows the step to 0.1 %; 5 sigma."""
    rng = np.random.default_rng(shifted(0))
    steps = rng.uniform(0.2, 0.8, (10_000, 1))
    errors = 2.0 * steps**3 * rng.standard_normal((10_000, 4))
    found = step_size.from_errors(errors, steps, DIM, WANTED)
    truth = (DIM * WANTED / 2.0**2) ** (1 / 6)
    assert found == pytest.approx(truth, rel=5 * math.sqrt(2 / 40_000) / 6)


@pytest.mark.parametrize("wild", [np.nan, np.inf, -np.inf, 1e30])
def test_errors_beyond_all_bounds_count_as_far(wild):
    steps = np.full((8, 1), 0.5)
    errors = np.full((8, 4), 0.01)
    errors[3:5] = wild
    found = step_size.from_errors(errors, steps, DIM, WANTED)
    errors[3:5] = step_size.FAR
    assert found == pytest.approx(step_size.from_errors(errors, steps, DIM, WANTED))
    assert 0 < found < 0.1


def test_walls_dont_shorten_steps():
    """A few steps that end where there is no energy are left out, a large error isn't."""
    steps, errors = np.full((8, 1), 0.5), np.full((8, 4), 0.01)
    want = step_size.from_errors(errors, steps, DIM, WANTED)
    errors[3, 2] = np.nan
    assert step_size.from_errors(errors, steps, DIM, WANTED) == pytest.approx(want)
    errors[3, 2] = 1e30
    assert step_size.from_errors(errors, steps, DIM, WANTED) < want / 5


def test_weights_are_repetitions():
    """A step of weight 3 counts like three such steps, one of weight 0 not at all."""
    rng = np.random.default_rng(1)
    steps, errors = rng.uniform(0.2, 0.8, (5, 1)), rng.standard_normal((5, 4))
    times = np.array([3, 0, 1, 2, 1])
    found = step_size.from_errors(errors, steps, DIM, WANTED, times[:, None])
    parts = (np.repeat(part, times, axis=0) for part in (errors, steps))
    assert found == pytest.approx(step_size.from_errors(*parts, DIM, WANTED), rel=1e-12)


def test_no_error_at_all_gives_a_finite_step():
    found = step_size.from_errors(np.zeros((8, 4)), np.full((8, 1), 0.5), DIM, WANTED)
    assert math.isfinite(found) and found > 0.5


def test_acceptance_of_nine_tenths_changes_nothing():
    assert step_size.from_acceptance(0.9) == pytest.approx(1, abs=1e-12)
    assert step_size.from_acceptance(0.7, target=0.7) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 3.0])
def test_steps_converge_to_the_acceptance_wanted(epsilon):
    """With a(ε) = 2Φ(−cε³), the acceptance of normal errors, from far above and below."""

    def acceptance(epsilon):
        return 2 * norm.cdf(-0.4 * epsilon**3)

    for _ in range(25):
        epsilon *= step_size.from_acceptance(acceptance(epsilon))
    assert acceptance(epsilon) == pytest.approx(0.9, abs=1e-6)
    near = epsilon * 1.1
    assert near * step_size.from_acceptance(acceptance(near)) == pytest.approx(epsilon)


def test_factors_are_bounded_and_grow_with_the_rate():
    factors = [step_size.from_acceptance(rate) for rate in np.linspace(0, 1, 101)]
    assert factors[0] == 0.6 and factors[-1] == 1.6
    assert np.all(np.diff(factors) >= 0)


def likely(error):
    """How likely steps with these errors are to be accepted."""
    return np.exp(-np.maximum(error, 0))


def test_bold_steps_where_errors_are_normal():
    """W ~ N(σ²/2, σ²), as close to a Gaussian in many dimensions, at any length of steps."""
    rng = np.random.default_rng(shifted(0))
    for sigma in (0.05, 0.25, 0.6, 1.0):
        error = rng.normal(sigma**2 / 2, sigma, 4000)
        assert step_size.wanted_acceptance(likely(error)) == step_size.BOLD


def test_careful_steps_where_few_errors_are_largest():
    """Errors that a fifth of the places have eight times larger: the last decile is theirs."""
    rng = np.random.default_rng(1)
    error = rng.normal(0, 0.1, 4000) * np.where(rng.random(4000) < 0.2, 8, 1)
    assert step_size.wanted_acceptance(likely(error)) == step_size.CAREFUL
    assert step_size.wanted_acceptance(likely(rng.standard_cauchy(4000))) == step_size.CAREFUL


@pytest.mark.parametrize("rates", [np.empty(0), np.ones(5000), np.full(50, 0.5)])
def test_careful_steps_where_nothing_is_known(rates):
    assert step_size.wanted_acceptance(rates) == step_size.CAREFUL


def test_between_bold_and_careful():
    """Student's t with 3 degrees of freedom has the last decile of its size at 3.08 medians."""
    error = np.random.default_rng(2).standard_t(3, 40_000) * 0.1
    assert step_size.BOLD < step_size.wanted_acceptance(likely(error)) < step_size.CAREFUL


def test_first_steps():
    """A tenth of d/|g|, and no more than 2.5√d where there is hardly a force."""
    g = np.array([[3.0, 4.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0], [1e-9, 0.0, 0.0, 0.0]])
    np.testing.assert_allclose(step_size.first_step(g), [0.1 * 4 / 5, 5.0, 5.0])


def test_errors_say_how_often_steps_would_be_accepted():
    """E min(1, e^(−W)) = 2Φ(−s/2) for W ~ N(s²/2, s²): 400 000 of them, 5 sigma."""
    for s in (0.1, 1.0, 3.0):
        error = norm.rvs(s**2 / 2, s, (100_000, 4), random_state=0)
        found = step_size.acceptance(error, np.ones((len(error), 1)))
        assert found == pytest.approx(2 * norm.cdf(-s / 2), abs=5 * 0.5 / 400_000**0.5)


@pytest.mark.parametrize("wild", [np.nan, np.inf, 1e30])
def test_steps_to_where_there_is_no_energy_would_be_refused(wild):
    error, weight = np.zeros((4, 2)), np.array([[1.0], [1.0], [2.0], [0.0]])
    error[1] = error[3] = wild
    assert step_size.acceptance(error, weight) == pytest.approx(0.75)
