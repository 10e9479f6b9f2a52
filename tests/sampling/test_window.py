"""A window against the target itself, and against itself in other forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from schuss.arguments import mixed
from schuss.coordinates import Conditional
from schuss.problem import pose
from schuss.sampling.initialise import evaluate
from schuss.sampling.state import ChainState, KernelParams, Transform, draws
from schuss.sampling.window import Setting, begin, window
from schuss.targets import funnel
from schuss.tuning import metric

DIM, CHAINS = 4, 3


def energy(x):
    """A Gaussian with a quartic wall around it."""
    return jnp.sum(jnp.arange(1, x.shape[-1] + 1) * x**2) / 2 + jnp.sum(x**4)


def value_and_grad(x):
    scale = np.arange(1, x.shape[-1] + 1)
    return np.sum(scale * x**2 / 2 + x**4, axis=-1), scale * x + 4 * x**3


def beginning(problem, seed=0):
    rng = np.random.default_rng(seed)
    x = np.asarray(problem.engine.to_numpy(problem.x), float)
    u = rng.standard_normal((len(x), max(problem.dim, 2)))
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    return ChainState(x, *evaluate(problem, x), u, rng.uniform(-1, 1, len(x)))


def of_jax(dim=DIM):
    start = 0.1 * np.random.default_rng(1).standard_normal((CHAINS, dim))
    return pose(energy=energy, init=start)


def of_numpy(dim=DIM):
    start = 0.1 * np.random.default_rng(1).standard_normal((CHAINS, dim))
    return pose(value_and_grad=value_and_grad, init=start)


def of_torch(dim=DIM):
    """In single precision."""

    def total(x):
        return (torch.arange(1, dim + 1) * x**2 / 2 + x**4).sum(-1)

    start = 0.1 * np.random.default_rng(1).standard_normal((CHAINS, dim))
    return pose(energy=total, init=torch.tensor(start, dtype=torch.float32))


def setting(dim=DIM, **given):
    size = max(dim, 2)
    given = {
        "exact": True,
        "transform": Transform(metric.scaled(np.linspace(0.3, 1, size))),
        "params": KernelParams(np.full(CHAINS, 0.8 * size**0.5), 2 * size**0.5),
    } | given
    return Setting(**given)


rotated = metric.fit(*2 * [np.random.default_rng(0).standard_normal((50, DIM)) @ np.eye(DIM)], 50.0)


@pytest.mark.parametrize(
    ("dim", "given"),
    [
        (DIM, {}),
        (DIM, {"transform": Transform(rotated)}),
        (DIM, {"temperature": 8.0}),
        (DIM, {"exact": False}),
        (1, {}),
        (1, {"temperature": 8.0}),
    ],
    ids=["metric", "low-rank", "temperature", "unadjusted", "line", "hot-line"],
)
def test_draws_are_in_the_users_coordinates(dim, given):
    """Energies and gradients are the user's at x, whatever the kernel moves in."""
    problem = of_jax(dim)
    found = window(problem, setting(dim, **given), beginning(problem), 24, (0, 1))
    block = found.block
    assert (block.counts > 1).all()
    flat = block.x.reshape(-1, dim)
    value, grad = value_and_grad(flat)
    np.testing.assert_allclose(block.energy.ravel(), value, rtol=1e-9)
    np.testing.assert_allclose(block.grad.reshape(-1, dim), grad, rtol=1e-9, atol=1e-9)
    for chain, last in enumerate(block.counts - 1):
        np.testing.assert_array_equal(found.chains.x[chain], block.x[last, chain])


@pytest.mark.parametrize("of", [of_numpy, of_torch])
@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("temperature", [1.0, 8.0])
def test_other_engines_are_in_the_users_coordinates(of, exact, temperature):
    problem = of()
    one = setting(exact=exact, transform=Transform(rotated), temperature=temperature)
    found = window(problem, one, beginning(problem), 24, (0, 1))
    value, grad = value_and_grad(found.block.x.reshape(-1, DIM))
    near = {"rtol": 1e-9} if of is of_numpy else {"rtol": 1e-5, "atol": 1e-5}
    np.testing.assert_allclose(found.block.energy.ravel(), value, **near)
    np.testing.assert_allclose(found.block.grad.reshape(-1, DIM), grad, **near)


def test_single_precision_stays():
    """And the global switch of JAX is left alone. What a run keeps has 64 bits."""
    start = 0.1 * np.random.default_rng(1).standard_normal((CHAINS, DIM))
    for problem in (pose(energy=energy, init=start.astype(np.float32)), of_torch()):
        found = window(problem, setting(), beginning(problem), 4, (0, 1))
        assert found.step.x.dtype == np.float32
        assert {part.dtype for part in found.chains} == {np.dtype(float)}
        assert {part.dtype for part in found.block[:5]} == {np.dtype(float)}
    assert not jax.config.jax_enable_x64


def test_learned_coordinates_are_undone():
    target = funnel(3)
    start = target.sample(np.random.default_rng(0), CHAINS)
    problem = pose(target, init=start)
    eye, row = np.eye(3), np.array([[1.0, 0, 0], [0, 1, 1]])
    chart = Conditional(eye, eye, row, 0 * row, np.array([[0.0, 0, 0], [1, 0, 0]]))
    transform = Transform(metric.unit(3), (chart,))
    block = window(problem, setting(3, transform=transform), beginning(problem), 24, (0, 1)).block
    flat = block.x.reshape(-1, 3)
    np.testing.assert_allclose(block.energy.ravel(), target.energy(np, flat), rtol=1e-9)
    np.testing.assert_allclose(block.grad.reshape(-1, 3), target.gradient(np, flat), rtol=1e-7)


@pytest.mark.parametrize("exact", [True, False])
def test_fused_and_stepwise_give_the_same_numbers(exact):
    problem, one = of_jax(), setting(exact=exact)
    stepwise = window(problem, one, beginning(problem), 40, (0, 1))
    fused = window(problem, one._replace(fused=True), beginning(problem), 40, (0, 1))
    for name in ("x", "energy", "grad", "error", "counts"):
        there, here = getattr(stepwise.block, name), getattr(fused.block, name)
        np.testing.assert_allclose(here, there, rtol=1e-12, atol=1e-12)


def test_the_same_key_gives_the_same_window():
    problem = of_numpy()
    one, again, other = (
        window(problem, setting(), beginning(problem), 10, key).block.x
        for key in ((0, 1), (0, 1), (0, 2))
    )
    np.testing.assert_array_equal(one, again)
    assert not np.array_equal(one, other)


def test_every_window_has_noise_of_its_own():
    """Burn-in's keys (seed, 1, windows, chunk), and those of later windows (seed, 2, windows)."""
    windows = [(2, k) for k in range(500)] + [(1, k, j) for k in range(20) for j in range(40)]
    words = [mixed(seed, *key) for seed in range(5) for key in windows]
    assert len(set(words)) == len(words)


def test_every_chain_finishes_its_transition():
    """Steps so long that many are refused: lookaheads are under way when the steps are made."""
    problem = of_numpy()
    long = setting(params=KernelParams(np.full(CHAINS, 1.5), 15.0))
    found = [window(problem, long, beginning(problem), 2, (0, 5, k)) for k in range(20)]
    assert max(len(one.step.energy) for one in found) > 2
    for one in found:
        for chain, count in enumerate(one.block.counts):
            assert one.step.complete[:, chain].sum() == count >= 1
            # A chain that has finished stays as it is while others go on.
            last = np.flatnonzero(one.step.complete[:, chain])[-1]
            assert not one.step.moved[last + 1 :, chain].any()


def test_windows_of_any_length_are_one_chain():
    """With parameters as they are, where windows end changes nothing but the noise."""
    problem, one = of_numpy(), setting()
    chains, found = beginning(problem), []
    for k in range(400):
        made = window(problem, one, chains, 8, (0, 3, k))
        chains = made.chains
        found.append(made.block)
    (x,) = draws(tuple(found[20:]), "x")
    # The virial theorem: E[x ∂E/∂x] = 1, to four standard errors by the scatter of 38 parts.
    product = x * value_and_grad(x)[1]
    parts = np.array([part.mean(axis=(0, 1)) for part in np.array_split(product, 38)])
    error = parts.std(axis=0, ddof=1) / len(parts) ** 0.5
    assert (np.abs(parts.mean(axis=0) - 1) < 4 * error).all() and (error < 0.1).all()


def test_an_unadjusted_step_takes_two_calls():
    """The minimal-norm step by its two gradients is the one that `leap` makes at once."""
    from schuss.core.dynamics import ESH, leap, start
    from schuss.core.integrators import MINIMAL_NORM
    from schuss.core.kernel import Noise

    problem = of_numpy()
    chains = beginning(problem)
    params = KernelParams(np.full(CHAINS, 0.5), 1e300)
    rng = np.random.default_rng(0)
    begun = begin(False, params, chains, chains.x, chains.energy, chains.grad, rng)
    state, silence = begun.state, Noise(np.zeros((CHAINS, DIM)), None)
    for stage in range(2):
        assert (state.stage == stage).all()
        state, info = begun.kernel.step(np, value_and_grad, state, silence, begun.params)
    assert info.complete.all() and (state.stage == 0).all()
    here = start(np, ESH, chains.x, chains.energy, chains.grad, chains.u)
    there = leap(np, value_and_grad, ESH, MINIMAL_NORM, here, 0.5 * np.ones(CHAINS), DIM - 1.0)
    np.testing.assert_allclose(state.x, there.x, rtol=1e-12)
    np.testing.assert_allclose(state.u, there.u, rtol=1e-12)
    error = there.energy - here.energy + (DIM - 1) * (there.r - here.r)
    np.testing.assert_allclose(info.energy_error, error, rtol=1e-9, atol=1e-12)
