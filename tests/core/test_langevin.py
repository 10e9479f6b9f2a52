"""Langevin and Hamiltonian Monte Carlo against the textbook, with the same noise."""

import numpy as np
import pytest
from seeds import shifted

import schuss

from .energies import bowl

CHAINS, DIM, STEPS = 6, 3, 12


def grad_bowl(x):
    return bowl(np, x)


def noises(steps=STEPS, chains=CHAINS, seed=0):
    rng = np.random.default_rng(seed)
    normal = rng.standard_normal((steps + 1, chains, DIM))
    return normal, rng.random((steps + 1, chains, 1))


def starts(chains=CHAINS):
    return np.random.default_rng(9).standard_normal((chains, DIM))


def run(sampler, x, normal, uniform, steps=STEPS):
    return schuss.trajectory(
        value_and_grad=grad_bowl,
        init=x,
        sampler=sampler,
        steps=steps,
        noise=schuss.Noise(normal, uniform),
    )


def test_ula_is_langevin():
    """x − ε²/2 g + ε z, z the noise drawn at the end of the step before."""
    epsilon, x = 0.3, starts()
    normal, uniform = noises()
    path = run(schuss.ULA(epsilon), x, normal, uniform)
    for t in range(STEPS):
        x = x - epsilon**2 / 2 * bowl(np, x)[1] + epsilon * normal[t]
        np.testing.assert_allclose(path.x[t + 1], x, atol=1e-12)
        np.testing.assert_allclose(path.energy[t + 1], bowl(np, x)[0], atol=1e-12)


def log_density(end, x, epsilon):
    """The Langevin proposal from x to `end`, up to a constant."""
    mean = x - epsilon**2 / 2 * bowl(np, x)[1]
    return -np.sum((end - mean) ** 2, axis=1) / (2 * epsilon**2)


def test_mala_is_metropolis_hastings_with_a_langevin_proposal():
    """α from the two densities of the proposal, which no momentum enters."""
    epsilon, chains, steps = 0.5, 200, 8
    normal, uniform = noises(steps, chains)
    path = run(schuss.MALA(epsilon), starts(chains), normal, uniform, steps)
    x, decisions = starts(chains), []
    for t in range(steps):
        proposal = x - epsilon**2 / 2 * bowl(np, x)[1] + epsilon * normal[t]
        log_alpha = bowl(np, x)[0] - bowl(np, proposal)[0]
        log_alpha += log_density(x, proposal, epsilon) - log_density(proposal, x, epsilon)
        accepted = np.log(uniform[t + 1, :, 0]) < log_alpha
        np.testing.assert_allclose(path.acceptance[t], np.minimum(1, np.exp(log_alpha)), rtol=1e-9)
        x = np.where(accepted[:, None], proposal, x)
        np.testing.assert_allclose(path.x[t + 1], x, atol=1e-12)
        decisions.append(accepted.mean())
    assert 0.3 < np.mean(decisions) < 0.95
    assert path.complete.all()


@pytest.mark.parametrize("leaps", [1, 4])
def test_hmc_is_the_textbook_one(leaps):
    epsilon, proposals, chains = 0.4, 10, 50
    steps = leaps * proposals
    normal, uniform = noises(steps, chains, seed=shifted(leaps))
    path = run(schuss.HMC(epsilon, steps=leaps), starts(chains), normal, uniform, steps)
    x, moved = starts(chains), 0
    for k in range(proposals):
        p = normal[k * leaps]
        y, q = x, p
        for _ in range(leaps):
            q = q - epsilon / 2 * bowl(np, y)[1]
            y = y + epsilon * q
            q = q - epsilon / 2 * bowl(np, y)[1]
        before = bowl(np, x)[0] + np.sum(p * p, axis=1) / 2
        after = bowl(np, y)[0] + np.sum(q * q, axis=1) / 2
        accepted = np.log(uniform[(k + 1) * leaps, :, 0]) < before - after
        # In between, a chain is where it was last accepted.
        for t in range(k * leaps, (k + 1) * leaps):
            np.testing.assert_allclose(path.x[t], x, atol=1e-10)
        x = np.where(accepted[:, None], y, x)
        moved += accepted.mean() / proposals
        np.testing.assert_allclose(path.x[(k + 1) * leaps], x, atol=1e-10)
        np.testing.assert_allclose(
            path.energy_error[(k + 1) * leaps - 1], after - before, atol=1e-9
        )
    assert 0.2 < moved < 0.98
    expected = np.arange(1, steps + 1) % leaps == 0
    np.testing.assert_array_equal(path.complete, np.repeat(expected[:, None], chains, axis=1))
    np.testing.assert_array_equal(path.log_weight, np.where(path.complete, 0.0, -np.inf))


def test_endpoint_esh_uses_the_volume():
    """log α = −(ΔE + (d−1)ΣΔr), with Δr from the momentum −∫e^r g/κ of the same velocities."""
    epsilon, kappa, chains = 0.6, 2.2, 100
    normal, uniform = noises(1, chains)
    sampler = schuss.ESH(epsilon, kappa=kappa, adjust="endpoint", steps=1)
    x = starts(chains)
    path = run(sampler, x, normal, uniform, 1)
    flow = schuss.trajectory(
        value_and_grad=grad_bowl,
        init=x,
        velocity=normal[0],
        sampler=schuss.ESH(epsilon, kappa=kappa),
        steps=1,
    )
    log_alpha = flow.energy[0] - flow.energy[1] - (DIM - 1) * flow.r[1]
    accepted = np.log(uniform[1, :, 0]) < log_alpha
    assert 0.2 < accepted.mean() < 0.99
    expected = np.where(accepted[:, None], flow.x[1], x)
    np.testing.assert_allclose(path.x[1], expected, atol=1e-12)
