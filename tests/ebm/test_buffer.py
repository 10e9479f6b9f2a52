"""The replay buffer: chains stay apart, go back to their slots, and are begun anew as often."""

import math
import re

import pytest
import torch

from schuss.ebm import ReplayBuffer


def distinct(x):
    return len(torch.unique(x.reshape(len(x), -1), dim=0))


@pytest.mark.parametrize("reinit", [0.0, 0.1])
def test_no_chain_is_lost(reinit):
    """100 chains in batches of 20, 50 rounds of a sampler that makes no step."""
    buffer = ReplayBuffer(100, (3,), reinit=reinit)
    before = buffer.x.clone()
    for _ in range(50):
        x, slots = buffer.draw(20)
        assert len(set(slots.tolist())) == 20
        buffer.write(slots, x)
    assert distinct(buffer.x) == 100
    if not reinit:
        torch.testing.assert_close(buffer.x, before, rtol=0, atol=0)


def test_chains_go_back_where_they_came_from():
    buffer = ReplayBuffer(50, (2, 2), reinit=0.0)
    counts = torch.zeros(50)
    buffer.x = buffer.x * 0
    for _ in range(30):
        x, slots = buffer.draw(7)
        counts[slots] += 1
        buffer.write(slots, x + 1)
    torch.testing.assert_close(buffer.x[:, 0, 0], counts, rtol=0, atol=0)
    assert counts.sum() == 210


def test_every_slot_is_drawn_equally_often():
    """5 sigma of a binomial count of 2000 draws of 10 out of 40, over all slots."""
    buffer = ReplayBuffer(40, (1,), reinit=0.0)
    counts = torch.zeros(40)
    for _ in range(2000):
        counts[buffer.draw(10)[1]] += 1
    assert (counts - 500).abs().max() < 5 * math.sqrt(2000 * 0.25 * 0.75)


def test_share_of_chains_begun_anew():
    """5 sigma of a binomial share of 20 000 draws."""
    buffer = ReplayBuffer(100, (1,), reinit=0.2)
    buffer.x = buffer.x + 10
    anew = sum(int((buffer.draw(100)[0] < 5).sum()) for _ in range(200))
    assert abs(anew / 20_000 - 0.2) < 5 * math.sqrt(0.2 * 0.8 / 20_000)


@pytest.mark.parametrize(
    ("start", "mean", "sd"), [("uniform", 0.0, 1 / math.sqrt(3)), ("normal", 0.0, 1.0)]
)
def test_named_starts(start, mean, sd):
    """5 sigma of mean and variance of 30 000 numbers."""
    x = ReplayBuffer(10_000, (3,), start=start).x
    assert abs(float(x.mean()) - mean) < 5 * sd / math.sqrt(30_000)
    assert abs(float(x.std()) / sd - 1) < 5 / math.sqrt(30_000)


def test_uniform_start_in_another_box():
    x = ReplayBuffer(1000, (3,), lower=2.0, upper=6.0).x
    assert 2 <= float(x.min()) < 2.1 and 5.9 < float(x.max()) <= 6


def test_colour_start():
    """The covariance of the mean colour is a quarter of SPREAD², plus what the noise leaves."""
    x = ReplayBuffer(4000, (3, 16, 16), start="colour").x
    assert float(x.abs().max()) <= 1
    spread = torch.tensor(
        [[0.2181, 0.1126, 0.0751], [0.1126, 0.1878, 0.1238], [0.0751, 0.1238, 0.2703]]
    )
    seen = torch.cov(x.mean((2, 3)).T)
    want = spread @ spread.T / 4 + torch.eye(3) * 0.25 / 256
    # Clipping at two sd takes a few per cent; 4000 images add two.
    torch.testing.assert_close(seen, want, rtol=0.2, atol=1e-3)
    grey = ReplayBuffer(10, (1, 8, 8), start="colour").x
    assert grey.shape == (10, 1, 8, 8)


def test_own_start():
    buffer = ReplayBuffer(
        5, (2,), start=lambda n, generator: torch.rand(n, 2, generator=generator) + 7
    )
    assert float(buffer.x.min()) >= 7


def test_same_seed_same_draws_and_state():
    one, two = ReplayBuffer(30, (2,), seed=3), ReplayBuffer(30, (2,), seed=3)
    one.draw(5)
    x, slots = one.draw(5)
    one.write(slots, x + 1)
    two.load_state_dict({name: value.clone() for name, value in one.state_dict().items()})
    for _ in range(3):
        for mine, other in zip(one.draw(8), two.draw(8), strict=True):
            torch.testing.assert_close(mine, other, rtol=0, atol=0)
    other = ReplayBuffer(30, (2,), seed=4)
    assert not torch.equal(other.x, ReplayBuffer(30, (2,), seed=3).x)


def test_siblings_have_their_own_numbers():
    buffer = ReplayBuffer(30, (2,), seed=3)
    assert buffer.sibling(0) is buffer
    others = [buffer.sibling(k).x for k in (1, 2)]
    assert distinct(torch.cat([buffer.x, *others])) == 90
    torch.testing.assert_close(buffer.sibling(1).x, others[0], rtol=0, atol=0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ReplayBuffer(0, (2,)), "size must be a whole number of at least 1, got 0"),
        (
            lambda: ReplayBuffer(4, (2,), reinit=1.5),
            "reinit must be a fraction between 0 and 1, got 1.5",
        ),
        (
            lambda: ReplayBuffer(4, (2,), start="noise"),
            "start must be one of 'uniform', 'colour', 'normal', got 'noise'",
        ),
        (
            lambda: ReplayBuffer(4, (2,), start="colour"),
            "start='colour' is for images of shape (channels, height, width), got (2,); use "
            "start='uniform' or 'normal'",
        ),
        (
            lambda: ReplayBuffer(4, (2,), start=lambda n, g: torch.zeros(n, 3)),
            "start must return a tensor of shape (4, 2), got (4, 3)",
        ),
        (
            lambda: ReplayBuffer(4, (2,)).draw(5),
            "batch must be at most the buffer's size 4, got 5; take a larger buffer or a smaller "
            "batch",
        ),
        (
            lambda: ReplayBuffer(4, (2,)).write(torch.tensor([0, 1]), torch.zeros(2, 3)),
            "x must have shape (2, 2), one chain for each slot, got (2, 3)",
        ),
        (
            lambda: ReplayBuffer(4, (2,)).load_state_dict(ReplayBuffer(5, (2,)).state_dict()),
            "the saved buffer holds (5, 2) but this one (4, 2); make it of the same size and shape",
        ),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match="^" + re.escape(message) + "$"):
        call()
