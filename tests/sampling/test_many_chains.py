"""Many chains: decisions are taken from some of them, and what one chain does is still told."""

import math

import numpy as np
import pytest

from schuss.diagnostics.vectorised import ess_and_rhat
from schuss.results.verdict import judge
from schuss.sampling.windows import MIXED_TO_SWITCH
from schuss.sampling.witnesses import MOST, Witnesses
from schuss.tuning import length, metric, slopes

from .targets import quietly

CHAINS, DIM, FAR = 96, 3, 60.0


def outside(chains):
    """The first chain in the second half that isn't a witness."""
    return int(np.setdiff1d(np.arange(chains // 2, chains), Witnesses.among(chains).chosen)[0])


def autoregression(draws, chains, dim, rho=0.7, seed=0):
    """x ← ρx + √(1 − ρ²) z: τ = (1 + ρ)/(1 − ρ)."""
    x = np.random.default_rng(seed).standard_normal((draws, chains, dim))
    for t in range(1, draws):
        x[t] = rho * x[t - 1] + math.sqrt(1 - rho**2) * x[t]
    return x


@pytest.mark.parametrize("chains", [1, 4, MOST])
def test_few_chains_are_all_looked_at_without_a_copy(chains):
    values = np.zeros((5, chains, 2))
    found = Witnesses.among(chains)
    assert found.each == 1 and np.shares_memory(found.of(values), values)
    assert found.of(values).shape == values.shape


@pytest.mark.parametrize("chains", [MOST + 1, 100, 2 * MOST, 1000, 1024])
def test_one_chain_of_each_part(chains):
    found = Witnesses.among(chains)
    bounds = np.arange(MOST + 1) * chains // MOST
    assert np.all((bounds[:-1] <= found.chosen) & (found.chosen < bounds[1:]))
    assert found.each * MOST == chains


@pytest.mark.parametrize("period", [2, 4, 8, 16])
def test_starts_that_repeat_in_a_cycle_are_all_among_them(period):
    """At equal distances of 16 all witnesses would have begun at the same one."""
    seen = np.bincount(Witnesses.among(1024).chosen % period, minlength=period)
    assert seen.min() >= MOST / period / 3


def test_sizes_are_those_of_all_chains():
    """ESS of 400 · 512 draws from an eighth of them: it is known to 2 % a column, 5 sigma are 10 %.

    The energies are those of all chains, so that nothing is estimated there.
    """
    x = autoregression(400, 512, 4)
    energy = 0.5 * np.sum(x**2, axis=2)
    found = Witnesses.among(512)
    sizes, _ = found.sizes_and_rhat(found.of(x), energy)
    squares = (x - x.mean(axis=(0, 1))) ** 2
    every = ess_and_rhat(np.concatenate([x, squares, energy[..., None]], axis=2)).ess
    np.testing.assert_allclose(sizes, every, rtol=0.1)
    assert sizes[-1] == every[-1]


def test_a_lost_chain_that_is_no_witness_shows_in_the_energies():
    x = autoregression(200, 512, 2)
    energy = 0.5 * np.sum(x**2, axis=2)
    energy[:, outside(512)] += 200
    found = Witnesses.among(512)
    sizes, rhat = found.sizes_and_rhat(found.of(x), energy)
    assert rhat[:-1].max() < 1.1 and sizes[:-1].min() > 10_000
    assert rhat[-1] > MIXED_TO_SWITCH and sizes[-1] < 3000


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
    """Starts of which one, no witness, is in the second well, and which one it is."""
    start, odd = np.random.default_rng(1).standard_normal((CHAINS, DIM)), outside(CHAINS)
    start[odd, 0] += FAR
    return start, odd


def test_a_run_decides_from_the_witnesses_and_tells_of_a_chain_elsewhere(monkeypatch):
    """One chain of 96 in a mode that no witness sees, seven sd of the energy above the others."""
    looked = {"fit": set(), "length": set(), "tried": set()}
    fit, refreshment, tries = metric.fit, length.refreshment, slopes.tries

    def seen_fit(x, g, effective):
        looked["fit"].add(len(x) % MOST)
        return fit(x, g, effective)

    def seen_length(step, x, last):
        looked["length"].add(x.shape[1])
        return refreshment(step, x, last)

    def seen_tries(g, acceptance):
        looked["tried"].add(acceptance.shape[1])
        return tries(g, acceptance)

    monkeypatch.setattr(metric, "fit", seen_fit)
    monkeypatch.setattr(length, "refreshment", seen_length)
    monkeypatch.setattr(slopes, "tries", seen_tries)
    start, odd = one_elsewhere()
    found = quietly(value_and_grad=wells(8.5), init=start, draws=100)
    assert looked == {"fit": {0}, "length": {MOST}, "tried": {MOST}}
    assert found.x.shape == (CHAINS, 100, DIM)
    assert found.x[odd, :, 0].min() > FAR / 2 and np.delete(found.x, odd, 0)[..., 0].max() < FAR / 2
    assert not found.verdict.converged
    assert f" and chain {odd} (mean log-density" in str(found.verdict)


def test_a_lost_chain_that_is_no_witness_begins_again_elsewhere():
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
        ess=20_000,
    )
    assert found.verdict.converged
    assert found.verdict.numbers["ess"] > 0.8 * 20_000


def test_short_chains_from_the_same_places_are_compared_by_groups():
    """And those from places of their own one by one."""
    starts = np.repeat(np.random.default_rng(0).standard_normal((8, 3)), 8, axis=0)
    shared, own = (
        quietly(value_and_grad=lambda x: ((x * x).sum(-1) / 2, x), init=init, draws=20).verdict
        for init in (starts, starts + 0.1 * np.arange(64)[:, None])
    )
    assert shared.converged and shared.numbers["nested_rhat"] < 1.1
    assert "nested_rhat" not in own.numbers
