"""One wish, checked at the door, and the clock."""

import math
import time
import types

import numpy as np
import pytest

from schuss.sampling import progress, windows
from schuss.sampling.wish import DRAWS, Clock, Wish, wish


def test_without_a_wish_a_thousand_draws():
    assert wish() == Wish(draws=DRAWS) == Wish(draws=1000)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"draws": 50}, "50 draws a chain"),
        ({"draws": np.int64(50)}, "50 draws a chain"),
        ({"ess": 400}, "an effective sample size of 400"),
        ({"seconds": 2.5}, "2.5 s"),
        ({"gradients": 10_000}, "10000 gradients"),
    ],
)
def test_a_wish_and_its_words(given, text):
    found = wish(**given)
    ((name, value),) = given.items()
    assert getattr(found, name) == value and found.text == text
    assert [v is not None for v in vars(found).values()].count(True) == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"draws": 3}, "draws must be a whole number of at least 4, got 3"),
        ({"draws": 10.5}, "draws must be a whole number of at least 4, got 10.5"),
        ({"draws": "many"}, "draws must be a whole number of at least 4, got 'many'"),
        (
            {"gradients": 1e4},
            "gradients must be a whole number of at least 1, got 10000.0; pass 10000, without a "
            "point",
        ),
        ({"draws": True}, "draws must be a whole number of at least 4, got True"),
        ({"ess": True}, "ess must be positive and finite, got True"),
        ({"seconds": [1, 2]}, "seconds must be one number, got [1, 2]"),
        ({"gradients": 0}, "gradients must be a whole number of at least 1, got 0"),
        ({"ess": -1}, "ess must be positive and finite, got -1"),
        ({"ess": float("nan")}, "ess must be positive and finite, got nan"),
        ({"seconds": 0}, "seconds must be positive and finite, got 0"),
        ({"seconds": float("inf")}, "seconds must be positive and finite, got inf"),
        (
            {"draws": 10, "seconds": 1},
            "pass one of draws, ess, seconds and gradients, got draws and seconds",
        ),
        (
            {"ess": 10, "gradients": 5, "draws": 4},
            "pass one of draws, ess, seconds and gradients, got draws and ess and gradients",
        ),
    ],
)
def test_what_cannot_be_granted_is_refused(given, message):
    with pytest.raises(ValueError) as caught:
        wish(**given)
    assert str(caught.value) == message


def test_the_clock_shares_out_all_of_its_time():
    clock = Clock()
    for phase in ("tuning", "sampling", "tuning"):
        time.sleep(0.002)
        clock.lap(phase)
    assert list(clock.seconds) == ["tuning", "sampling"]
    assert clock.seconds["tuning"] >= 0.004 and clock.seconds["sampling"] >= 0.002
    assert sum(clock.seconds.values()) <= clock.total


@pytest.mark.parametrize("temperature, drawn", [(1.0, 400), (8.0, 100)])
def test_states_of_a_hot_run_are_not_all_draws(temperature, drawn):
    """Four of them make one, and the time left is that for the rest."""
    field = types.SimpleNamespace(temperature=temperature)
    archive = types.SimpleNamespace(size=400)
    clock = types.SimpleNamespace(seconds={"sampling": 2.0}, total=3.0)
    course = types.SimpleNamespace(
        phase="sampling", archive=archive, field=field, chains=4, total=9000, ess=math.nan
    )
    assert f"{drawn}/800 draws × 4" in progress.line(course, Wish(draws=800), clock)
    left = progress.remaining(course, Wish(draws=800), clock)
    assert left == pytest.approx(2.0 * (800 / drawn - 1))


def test_windows_of_sampling_grow_up_to_a_length():
    sizes = [windows.sampling(k) for k in (*range(12), 10**5)]
    assert sizes == sorted(sizes) and sizes[0] == 1024 and set(sizes[8:]) == {16384}


def test_a_run_without_a_terminal_says_something_now_and_then(monkeypatch, capfd):
    times = iter([0.0, 10.0, 31.0, 31.0, 40.0, 62.0, 62.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(times))
    with progress.telling(True) as tell:
        for word in ("one", "two [bold]", "three", "four"):
            tell(word)
    assert capfd.readouterr().err.splitlines() == ["two [bold]", "four"]


def test_how_far_a_wish_was_granted():
    assert wish(draws=5000).reached(101) == "101 of 5000 draws a chain"
    assert wish(ess=400).reached(101) == "101 draws a chain, before an effective sample size of 400"
