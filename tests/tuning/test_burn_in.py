"""When energies have stopped falling."""

import math

import numpy as np
import pytest
from seeds import shifted

from schuss.tuning import burn_in

DIM = 50
SIGMA = math.sqrt(DIM / 2)


def falling(rate, chunks, chains=4, top=1000.0):
    """Mean energies that fall by a factor in every chunk, to 0."""
    return top * rate ** np.arange(chunks)[:, None] * np.ones(chains)


def test_is_over_once_the_fall_of_four_chunks_is_small():
    """Half a σ, 2.5."""
    ended = [burn_in.over(falling(0.7, n), DIM) for n in range(1, 30)]
    first = 1 + ended.index(True)
    assert all(ended[first - 1 :])
    means = falling(0.7, first)[:, 0]
    assert means[-4] - means[-1] < 0.5 * SIGMA < means[-5] - means[-2]


def test_a_slow_fall_is_a_fall():
    """A third of a σ in every chunk, from afar."""
    slow = -0.33 * SIGMA * np.arange(30)[:, None] * np.ones(4)
    assert not burn_in.over(slow, DIM)


def test_takes_at_least_four_and_at_most_forty_chunks():
    still = np.zeros((60, 4))
    assert [burn_in.over(still[:n], DIM) for n in (1, 2, 3, 4)] == [False, False, False, True]
    steep = -1000.0 * np.arange(60)[:, None] * np.ones(4)
    assert [burn_in.over(steep[:n], DIM) for n in (39, 40)] == [False, True]


@pytest.mark.parametrize(
    ("before", "last", "over"),
    [
        ([0, 0, 0, 0], [0, 0, 0, 0], True),
        ([0, 0, 0, 5.9], [0, 0, 0, 5.9], True),
        ([0, 0, 0, 6.1], [0, 0, 0, 6.1], False),  # one stands above the others
        ([0, 0, 0, 0], [-0.6, -0.6, -0.6, -0.6], False),  # they fall on average
        ([0, 0, 0, 0], [1, 1, 1, -2.9], True),
        ([0, 0, 0, 0], [1, 1, 1, -3.1], False),  # one still falls
    ],
)
def test_every_chain_has_a_say(before, last, over):
    means = SIGMA * np.array([before] * 4 + [last], float)
    assert burn_in.over(means, DIM) is over


def test_lost_are_ten_sigma_above_the_median():
    energy = np.array([0.0, 1.0, -2.0, 9.5 * SIGMA, 10.7 * SIGMA])
    found = burn_in.lost(energy, np.ones(5), DIM)
    np.testing.assert_array_equal(found, [False, False, False, False, True])
    assert not burn_in.lost(np.array([5.0]), np.ones(1), DIM).any()


def test_lost_are_stuck_in_a_neck():
    found = burn_in.lost(np.zeros(4), np.array([1.0, 1.2, 0.9, 0.001]), DIM)
    np.testing.assert_array_equal(found, [False, False, False, True])


def test_somebody_is_never_lost():
    """The only chains of low energy are stuck: those above them are the ones that move."""
    energy, steps = np.array([-90 * SIGMA, -80 * SIGMA, 0.0, 0.0]), np.array([1e-6, 1e-6, 1.0, 1.1])
    np.testing.assert_array_equal(burn_in.lost(energy, steps, DIM), [True, True, False, False])


def test_blocks_are_left_out_until_the_last_chain_has_come_down():
    """Chain 0 comes down at block 3 and chain 1 at block 7 of 40; it may go up again."""
    means = np.zeros((40, 2))
    means[:3, 0], means[:7, 1] = 50.0, 50.0
    means[20, 0] = 30.0
    assert burn_in.strayed(means, 1.0) == 7
    assert burn_in.strayed(np.zeros((40, 2)), 1.0) == 0
    assert burn_in.strayed(np.zeros((1, 2)), 0.0) == 0


@pytest.mark.parametrize("sign", [-1, 1])
def test_chains_may_come_from_below(sign):
    """As those that begin at a mode do."""
    means = np.zeros((40, 2))
    means[:5, 1] = 50.0 * sign
    assert burn_in.strayed(means, 1.0) == 5


def test_where_a_chain_never_comes_nothing_is_left_out():
    means = np.stack([np.zeros(40), np.full(40, 100.0)], axis=1)
    assert burn_in.strayed(means, 1.0) == 0


def test_draws_hardly_ever_begin_far_away():
    """Of 200 runs that begin in equilibrium none is cut."""
    rng = np.random.default_rng(shifted(6))
    for _ in range(200):
        energy = rng.gamma(1.5, size=(12, 8, 4))
        assert burn_in.strayed(energy.mean(axis=1), float(energy[6:].std())) == 0


def test_energies_fall_without_end_where_they_fall_faster_and_faster():
    """−(9/4)ⁿ, against (4/9)ⁿ; forty chunks are needed to say so."""
    steep = -(2.25 ** np.arange(40))
    assert burn_in.endless(steep) and not burn_in.endless(steep[:39])
    assert not burn_in.endless(1e9 / 2.25 ** np.arange(40))
    assert not burn_in.endless(np.append(steep[:39], steep[0]))
