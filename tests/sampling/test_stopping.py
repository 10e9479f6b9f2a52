"""What a run is asked for, checked before it begins; the clock; and the line of progress."""

import time
import types

import numpy as np
import pytest

from schuss import progress
from schuss.problem import pose
from schuss.sampling.adapt import LONGEST, adapt
from schuss.sampling.initialise import initialise
from schuss.sampling.state import Mixing
from schuss.sampling.stopping import DRAWS, Clock, StoppingRule, line, remaining, stopping_rule

from .targets import value_and_grad


def test_a_thousand_draws_if_nothing_is_said():
    assert stopping_rule() == StoppingRule(draws=DRAWS) == StoppingRule(draws=1000)


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
def test_a_rule_and_its_words(given, text):
    found = stopping_rule(**given)
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
def test_what_cannot_be_reached_is_refused(given, message):
    with pytest.raises(ValueError) as caught:
        stopping_rule(**given)
    assert str(caught.value) == message


def test_the_clock_shares_out_all_of_its_time():
    clock = Clock()
    for phase in ("tuning", "sampling", "tuning"):
        time.sleep(0.002)
        clock.lap(phase)
    assert list(clock.seconds) == ["tuning", "sampling"]
    assert clock.seconds["tuning"] >= 0.004 and clock.seconds["sampling"] >= 0.002
    assert sum(clock.seconds.values()) <= clock.total


@pytest.fixture(scope="module")
def burnt():
    problem = pose(value_and_grad=value_and_grad, init=np.zeros((4, 3)))
    return initialise(problem, np.asarray(problem.x), 0)


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ({"draws": 800}, 2.0 * (800 / 100 - 1)),  # of four chains, at four draws to an ESS of 1
        ({"ess": 400}, 2.0 * (400 / 100 - 1)),
        ({"gradients": 4000}, 3.0 * (4000 / 1000 - 1)),
        ({"seconds": 10}, 7.0),
    ],
)
def test_the_line_of_progress(burnt, given, left):
    """Time left is that of windows, in proportion to what is there: here an ESS of 100 in 2 s."""
    blocks, counts = (burnt.blocks[0],) * 3, burnt.counts._replace(gradients=1000)
    state = burnt._replace(
        blocks=blocks, thin=2, counts=counts, history=(None, None), mixing=Mixing(100.0, 1.05, 32)
    )
    seconds = {"burn-in": 1.0, "adapting": 2.0}
    rule, clock = stopping_rule(**given), types.SimpleNamespace(seconds=seconds, total=3.0)
    draws = 2 * 2 * int(blocks[0].counts.min())
    told = line(state, rule, clock)
    assert told.startswith("adapting")
    assert f" {draws}" + ("/800" if "draws" in given else "") + " draws × 4 " in told
    assert "1,000 gradients, 333/s" in told and "R-hat 1.050  ESS 100" in told
    assert remaining(state, rule, clock) == pytest.approx(left)
    assert told.endswith(f"{left:.0f} s left")


def test_before_anything_is_known_no_time_is_left_to_tell(burnt):
    assert remaining(burnt, stopping_rule(), Clock()) is None
    assert "left" not in line(burnt, stopping_rule(), Clock())


def test_windows_grow_up_to_a_length(burnt):
    state, sizes = burnt._replace(frozen=True), []
    for _ in range(30):
        state = adapt(state, 0)
        sizes.append(state.steps)
    assert sizes == sorted(sizes) and sizes[0] < 50 and set(sizes[15:]) == {LONGEST}


def test_a_run_without_a_terminal_says_something_now_and_then(monkeypatch, capfd):
    times = iter([0.0, 10.0, 31.0, 31.0, 40.0, 62.0, 62.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(times))
    with progress.reporting(True) as report:
        for word in ("one", "two [bold]", "three", "four"):
            report(word)
    assert capfd.readouterr().err.splitlines() == ["two [bold]", "four"]


def test_how_far_a_rule_was_reached():
    assert stopping_rule(draws=5000).reached(101) == "101 of 5000 draws a chain"
    assert (
        stopping_rule(ess=400).reached(101)
        == "101 draws a chain, before an effective sample size of 400"
    )
