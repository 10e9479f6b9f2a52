"""Decisions between windows: how step sizes change, and what they come to."""

import math

import numpy as np
import pytest
from seeds import shifted

from schuss.diagnostics.vectorised import fast_ess
from schuss.problem import pose
from schuss.sampling.adapt import ACCEPTANCE, ERROR, FREE_OF_BIAS, _step_change, assess
from schuss.sampling.initialise import evaluate, initialise
from schuss.sampling.run import Plan, run
from schuss.sampling.state import Block, WindowRow, draws
from schuss.targets import isotropic

DIM = 50


def row(acceptance, error):
    return WindowRow(0, "adapting", 16, 1.0, 1.0, 0, acceptance, error, 0.0, 0.0, 1.0)


@pytest.mark.parametrize("epsilon", [0.6, 1.0, 2.2])
def test_unadjusted_steps_come_to_the_wanted_error(epsilon):
    """E[W²]/d ∝ ε⁶."""
    factor = _step_change(row(math.nan, ERROR * epsilon**6), 0.0)
    assert factor == pytest.approx(1 / epsilon)


def test_the_bias_of_unadjusted_steps_falls_with_the_scatter():
    """bias² ∝ ε⁴, and the variance is 1/ESS: ε to the power −¼ of ESS."""
    few, many = (_step_change(row(math.nan, ERROR), size) for size in (10, 8 * FREE_OF_BIAS))
    assert few == 1 and many == pytest.approx(8 ** (-1 / 4))


@pytest.mark.parametrize("acceptance", [0.0, 0.5, 1.0])
def test_steps_that_are_refused_shrink(acceptance):
    factor = _step_change(row(acceptance, 1.0), 0.0)
    assert (factor < 1) == (acceptance < ACCEPTANCE) and 0.4 <= factor <= 2.5
    assert _step_change(row(ACCEPTANCE, 1.0), 0.0) == pytest.approx(1)


def test_steps_without_any_error_that_is_known_shrink():
    assert _step_change(row(math.nan, math.nan), 0.0) < 1


def started(seed=0):
    problem = pose(isotropic(DIM), chains=4, seed=shifted(seed))
    return run(Plan(problem, shifted(seed)), np.asarray(problem.x, float))


@pytest.mark.statistics
def test_a_gaussian():
    """E[x²/σ²] to 5 standard errors of the effective draws, which are many a gradient."""
    state = next(state for state in started() if state.counts.gradients >= 8000)
    (x,) = draws(state.settled_blocks, "x")
    ratio = (x**2).mean(axis=(0, 1)) / isotropic(DIM).truth.second_moment
    size = min(fast_ess(x).min(), fast_ess(x**2).min())
    assert state.frozen and size > 0.2 * state.counts.gradients
    assert np.abs(ratio - 1).max() < 5 * math.sqrt(2 / size)
    late = [row.acceptance for row in state.history[-3:]]
    assert np.mean(late) == pytest.approx(ACCEPTANCE, abs=0.07)


def test_the_effective_sample_size_has_no_limit():
    """30,000 independent draws of four chains are worth 120,000."""
    x = np.random.default_rng(0).standard_normal((30_000, 4, 2))
    flat = np.zeros(x.shape[:2])
    problem = pose(value_and_grad=lambda x: ((x**2).sum(-1) / 2, x), init=np.zeros((4, 2)))
    begun = initialise(problem, x[0], 0)
    block = Block(x, (x**2).sum(-1) / 2, x, flat, flat, np.full(4, len(x)))
    cold = begun._replace(temperature=1.0, blocks=(*begun.blocks, block))
    assert assess(cold).ess == pytest.approx(120_000, rel=0.1)


@pytest.mark.statistics
def test_draws_of_a_chain_that_was_far_away_do_not_count():
    """One chain is thrown 1000 standard deviations out after burn-in."""
    problem = pose(isotropic(DIM), chains=4, seed=0)
    states = run(Plan(problem, 0), np.asarray(problem.x, float))
    state = next(state for state in states if state.counts.windows == 1)
    x = np.array(state.chains.x)
    x[0] += 1000 / math.sqrt(DIM)
    energy, grad = evaluate(problem, x)
    thrown = state._replace(chains=state.chains._replace(x=x, energy=energy, grad=grad))
    for later in run(Plan(problem, 0), x, thrown):
        if later.counts.gradients > 20_000:
            assert later.frozen and np.abs(draws(later.settled_blocks, "x")[0]).max() < 6
            return
