"""From the end of a run to its draws: cooling, cutting, and what a line or a plane adds."""

import numpy as np
import pytest

import schuss
from schuss.sampling.cooling import RAW, cooled, hang_on_few

from .targets import quietly, value_and_grad

HOT = 8.0


def hot(n, chains, seed=0):
    """Independent draws of e^(−E/T) for a round Gaussian in the plane, with E/T."""
    x = np.sqrt(HOT) * np.random.default_rng(seed).standard_normal((n, chains, 2))
    energy = (x**2).sum(axis=-1) / (2 * HOT)
    return {"x": x, "energy": energy, "number": np.arange(n)[:, None] * np.ones(chains)}


def test_cooled_draws_have_the_law_of_the_target():
    """Variance 1 from 8: 40 chains of 4000 states, to 5 standard errors of the chains (p = 1e-5).

    Weights e^(−7E/8) leave a quarter of the states, the ESS is (2T − 1)/T² = .23 of them.
    """
    found = cooled(hot(4000, 40), HOT, None)
    assert found["x"].shape == (4000, 40, 2)
    for values, truth in ((found["x"], 0), (found["x"] ** 2, 1), (found["energy"] * HOT, 1)):
        means = values.mean(axis=0)
        error = means.std(axis=0, ddof=1) / np.sqrt(40)
        assert np.all(error < 0.02) and np.all(np.abs(means.mean(axis=0) - truth) < 5 * error)


@pytest.mark.parametrize("draws", [None, 100])
def test_states_are_taken_in_proportion_and_in_order(draws):
    """Each as often as its share, rounded up or down; all fields from the same state."""
    given = hot(400, 3)
    found = cooled(given, HOT, draws)
    count = 400 if draws is None else 400 // RAW
    for k in range(3):
        numbers = found["number"][:, k].astype(int)
        assert len(numbers) == count and np.all(np.diff(numbers) >= 0)
        np.testing.assert_array_equal(found["x"][:, k], given["x"][numbers, k])
        w = np.exp(-(HOT - 1) * given["energy"][:, k])
        taken = np.bincount(numbers, minlength=400)
        assert np.all(np.abs(taken - count * w / w.sum()) < 1)


def test_far_energies_do_not_overflow():
    given = hot(50, 2)
    given["energy"] = given["energy"] + np.array([1e6, -1e6])
    found = cooled(given, HOT, None)
    assert np.isfinite(found["x"]).all() and len(np.unique(found["number"][:, 0])) > 5


def test_hot_draws_hang_on_few_where_a_lower_place_was_met():
    """Of 4000 states .12 are within 1 of the bottom, which has to be theirs."""
    energy = hot(4000, 1)["energy"].ravel()
    assert not hang_on_few(energy, 0.0, HOT)
    assert hang_on_few(energy, -3.0 / HOT, HOT)


def test_hot_draws_hang_on_few_where_few_have_the_weight():
    energy = hot(4000, 1)["energy"].ravel()
    energy[:40] -= 12.0 / HOT
    assert hang_on_few(energy, energy.min(), HOT)


def test_a_plane_gives_as_many_draws_as_were_asked_for():
    plane = schuss.targets.coupled_quartic()
    pair = lambda x: (plane.energy(np, x), plane.gradient(np, x))  # noqa: E731
    found = quietly(value_and_grad=pair, init=np.zeros(2), draws=60)
    assert found.x.shape == (4, 60, 2) == found.draws.shape
    np.testing.assert_allclose(
        found.stats.energy, plane.energy(np, found.x.reshape(-1, 2)).reshape(4, 60), atol=1e-9
    )
    np.testing.assert_allclose(
        found.stats.gradient.reshape(-1, 2), plane.gradient(np, found.x.reshape(-1, 2)), atol=1e-8
    )


def test_the_coordinate_that_was_added_to_a_line_is_taken_away():
    def pair(x):
        return x[:, 0] ** 4 / 4, x**3

    found = quietly(value_and_grad=pair, init=np.zeros(1), gradients=4000)
    assert found.x.shape[2] == 1 and found.draws.shape == found.x.shape
    np.testing.assert_allclose(found.stats.energy, found.x[..., 0] ** 4 / 4, atol=1e-9)
    np.testing.assert_allclose(found.stats.gradient, found.x**3, atol=1e-9)


def test_who_asks_for_draws_gets_those_made_since_all_was_frozen():
    """Others get those of the adapting phase too, in front of them."""
    given = {"value_and_grad": value_and_grad, "thin": 1}
    many = quietly(gradients=16_000, **given)
    few = quietly(draws=many.stats.gradients["sampling"] // 8, **given)
    assert many.x.shape[1] > few.x.shape[1] + 1000
    joined = np.flatnonzero(np.all(many.x == few.x[:, :1], axis=(0, 2)))
    assert len(joined) == 1 and joined[0] > 1000
    part = many.x[:, joined[0] : joined[0] + few.x.shape[1]]
    np.testing.assert_array_equal(part, few.x)
