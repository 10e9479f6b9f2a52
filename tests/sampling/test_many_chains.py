"""Many chains: convergence is assessed by some of them, and what one chain does is still told."""

import math

import numpy as np
import pytest

from schuss.problem import pose
from schuss.results.verdict import judge
from schuss.sampling.adapt import assess
from schuss.sampling.initialise import initialise
from schuss.sampling.run import MAX_MONITORED, monitored
from schuss.sampling.state import Block

from .targets import quietly

CHAINS, DIM, FAR = 96, 3, 60.0


def outside(chains):
    """The first chain in the second half that isn't monitored."""
    return int(np.setdiff1d(np.arange(chains // 2, chains), monitored(chains))[0])


def autoregression(draws, chains, dim, rho=0.7, seed=0):
    """x ← ρx + √(1 − ρ²) z: τ = (1 + ρ)/(1 − ρ)."""
    x = np.random.default_rng(seed).standard_normal((draws, chains, dim))
    for t in range(1, draws):
        x[t] = rho * x[t - 1] + math.sqrt(1 - rho**2) * x[t]
    return x


@pytest.mark.parametrize("chains", [1, 4, MAX_MONITORED])
def test_few_chains_are_all_monitored(chains):
    values = np.zeros((5, chains, 2))
    assert values[:, monitored(chains)].shape == values.shape


@pytest.mark.parametrize("chains", [MAX_MONITORED + 1, 100, 2 * MAX_MONITORED, 1000, 1024])
def test_one_chain_of_each_part(chains):
    chosen = monitored(chains)
    bounds = np.arange(MAX_MONITORED + 1) * chains // MAX_MONITORED
    assert np.all((bounds[:-1] <= chosen) & (chosen < bounds[1:]))


@pytest.mark.parametrize("period", [2, 4, 8, 16])
def test_starts_that_repeat_in_a_cycle_are_all_among_them(period):
    """At equal distances of 16 all of them would have begun at the same one."""
    seen = np.bincount(monitored(1024) % period, minlength=period)
    assert seen.min() >= MAX_MONITORED / period / 3


def test_the_effective_sample_size_is_that_of_all_chains():
    """Of 400 · 512 draws from an eighth of them: 2 % a column, so that the least of 12 is 10 %."""
    x = autoregression(400, 512, 4)
    energy, flat = 0.5 * np.sum(x**2, axis=2), np.zeros((400, 512))
    problem = pose(value_and_grad=lambda x: (0.5 * np.sum(x**2, -1), x), init=np.zeros((512, 4)))
    begun = initialise(problem, x[0], 0)
    block = Block(x, energy, x, flat, flat, np.full(512, 400))
    state = begun._replace(blocks=(*begun.blocks, block))
    found, every = assess(state, monitored(512)), assess(state)
    assert found.ess == pytest.approx(every.ess, rel=0.1)
    assert found.draws == every.draws == 400 and found.rhat < 1.02
    assert every.ess == pytest.approx(400 * 512 * (1 - 0.7) / (1 + 0.7), rel=0.1)


def wells(higher):
    """Two unit Gaussians that none leaves for the other, the second with a higher energy."""
    centre = np.array([0.0, FAR])[:, None, None] * np.eye(DIM)[0]
    floor = np.array([0.0, higher])[:, None]

    def value_and_grad(x):
        each = 0.5 * np.sum((x - centre) ** 2, axis=-1) + floor
        lower = np.argmin(each, axis=0)
        return np.min(each, axis=0), x - centre[lower, 0]

    return value_and_grad


def one_elsewhere():
    """Starts of which one, not monitored, is in the second well, and which one it is."""
    start, odd = np.random.default_rng(1).standard_normal((CHAINS, DIM)), outside(CHAINS)
    start[odd, 0] += FAR
    return start, odd


def test_a_chain_elsewhere_that_is_not_monitored_is_told():
    """One chain of 96 in a mode that no other sees, five sd of the energy above the others."""
    start, odd = one_elsewhere()
    found = quietly(value_and_grad=wells(6.0), init=start, draws=100, max_gradients=200_000)
    assert found.x.shape == (CHAINS, 100, DIM)
    assert found.x[odd, :, 0].min() > FAR / 2 and np.delete(found.x, odd, 0)[..., 0].max() < FAR / 2
    assert not found.verdict.converged
    assert f" and chain {odd} (mean log-density" in str(found.verdict)


def test_a_lost_chain_that_is_not_monitored_begins_again_elsewhere():
    """Thirty sd above the others burn-in ends with the chain among them."""
    start, _ = one_elsewhere()
    found = quietly(value_and_grad=wells(40.0), init=start, draws=20)
    assert found.x[..., 0].max() < FAR / 2


def test_a_chain_that_stands_still_is_told():
    x = autoregression(100, CHAINS, DIM)
    odd = outside(CHAINS)
    x[:, odd] = x[0, odd]
    found = judge(np.swapaxes(x, 0, 1), 0.5 * np.sum(x**2, axis=2).T)
    assert any(f"chain {odd} hardly moved" in reason.what for reason in found.reasons)


def test_an_effective_sample_size_of_many_chains():
    """By the verdict's own count, which is of all chains."""
    found = quietly(
        value_and_grad=lambda x: (0.5 * np.sum(x**2, axis=-1), x),
        init=np.zeros(DIM),
        chains=CHAINS,
        ess=8000,
    )
    assert found.verdict.converged
    assert found.verdict.numbers["ess"] > 0.8 * 8000


def test_short_chains_from_the_same_places_are_compared_by_groups():
    """And those from places of their own one by one."""
    starts = np.repeat(np.random.default_rng(0).standard_normal((8, 3)), 8, axis=0)
    shared, own = (
        quietly(value_and_grad=lambda x: ((x * x).sum(-1) / 2, x), init=init, draws=20).verdict
        for init in (starts, starts + 0.1 * np.arange(64)[:, None])
    )
    assert shared.converged and shared.numbers["nested_rhat"] < 1.1
    assert "nested_rhat" not in own.numbers
