"""The paper's samplers: where a chain is after so many gradients, and how it becomes a sample."""

import numpy as np
import pytest
from seeds import shifted

from schuss import targets
from schuss.paper import samplers


def test_a_sample_is_linear_in_time_between_states():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((12, 5, 3))
    time = np.concatenate([np.zeros((1, 5)), rng.random((11, 5)).cumsum(axis=0)])
    time[4, 2] = time[3, 2]  # a stretch that took no time
    moments = rng.random((40, 5)) * time[-1]
    drawn = samplers._interpolated(x, time, moments)
    for chain in range(5):
        for i in range(3):
            wanted = np.interp(moments[:, chain], time[:, chain], x[:, chain, i])
            np.testing.assert_allclose(drawn[:, chain, i], wanted, atol=1e-13)


def test_esh_samples_are_uniform_in_time_up_to_the_checkpoint():
    """Kolmogorov–Smirnov at 4000 draws: 2.5/√n is passed by chance once in 10⁵."""
    states, chains = 101, 4000
    time = np.linspace(0, 1, states)[:, None] ** 2 * np.ones((1, chains))
    place = time[..., None]
    made = samplers.Chains("ESH-leap", place, None, time, 1, 0.0, None)
    start, middle, end = made.at([0, 50, 100], seed=shifted(1))[..., 0]
    assert np.all(start == 0)
    for drawn, last in ((middle, time[50, 0]), (end, 1.0)):
        empirical = np.sort(drawn) / last
        apart = np.abs(empirical - (np.arange(chains) + 0.5) / chains).max()
        assert apart < 2.5 / np.sqrt(chains)
    assert abs(np.corrcoef(middle, end)[0, 1]) < 5 / np.sqrt(chains)


def test_the_last_state_is_the_sample_of_the_others():
    found = samplers.run("ULA 0.1", targets.scg(), gradients=10, chains=6)
    np.testing.assert_array_equal(found.at([0, 4, 10]), found.x[[0, 4, 10]])


def test_hmc_moves_every_five_gradients():
    found = samplers.run("HMC k=5", targets.scg(), gradients=20, chains=6)
    assert found.x.shape == (21, 6, 2) and found.own.shape == (5, 6, 2)
    moved = np.any(np.diff(found.x, axis=0) != 0, axis=(1, 2))
    assert set(np.flatnonzero(moved) + 1) <= {5, 10, 15, 20} and moved.any()


@pytest.mark.parametrize("name", samplers.TABLE)
def test_runs_are_repeatable_in_double_precision_and_begin_apart(name):
    first = samplers.run(name, targets.mog(), gradients=10, chains=4, seed=3)
    again = samplers.run(name, targets.mog(), gradients=10, chains=4, seed=3)
    other = samplers.run(name, targets.mog(), gradients=10, chains=4, seed=4)
    assert first.x.dtype == np.float64
    np.testing.assert_array_equal(first.x, again.x)
    assert np.all(first.x[0] != other.x[0])


def test_nuts_counts_a_transition_as_the_public_code_does():
    """The path rebuilt from single transitions of one chain at a time, counted afterwards."""
    jax = pytest.importorskip("jax")
    blackjax = pytest.importorskip("blackjax")
    target, gradients = targets.scg(), 30
    found = samplers.run("NUTS", target, gradients, chains=3, seed=5)
    seed = samplers._number("NUTS/scg/5")
    with jax.enable_x64(True):
        key, _ = jax.random.split(jax.random.key(seed))

        def logdensity(x):
            return -target.energy(jax.numpy, x[None])[0]

        algorithm = blackjax.nuts(logdensity, 0.25 / 2**0.25, np.ones(2), max_num_doublings=5)
        step = jax.jit(algorithm.step)
        for chain in range(3):
            state = algorithm.init(jax.numpy.asarray(found.x[0, chain]))
            positions, ends = [np.asarray(state.position)], [0]
            number = 0
            while ends[-1] <= gradients:
                keys = jax.random.split(jax.random.fold_in(key, number), 3)
                state, info = step(keys[chain], state)
                positions.append(np.asarray(state.position))
                ends.append(ends[-1] + int(info.num_integration_steps) + 1)
                number += 1
            for k in range(gradients + 1):
                last = np.flatnonzero(np.asarray(ends) <= k)[-1]
                np.testing.assert_allclose(found.x[k, chain], positions[last], rtol=1e-9)


def test_tuned_nuts_states_what_tuning_took():
    found = samplers.run("NUTS tuned", targets.mog(), gradients=10, chains=4)
    assert found.tuning >= 20 and found.divergent is not None


def test_an_unknown_sampler_is_refused():
    with pytest.raises(ValueError, match="name must be one of ESH-leap"):
        samplers.run("Gibbs", targets.mog())


def test_missing_blackjax_says_how_to_get_it(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(samplers.importlib, "import_module", missing)
    with pytest.raises(ImportError, match=r"pip install 'schuss\[paper\]'"):
        samplers.run("NUTS", targets.mog(), gradients=4, chains=2)
