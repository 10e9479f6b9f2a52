"""A run that was killed goes on by the same call, and gives the draws it would have given."""

import itertools
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from schuss.checkpoint import Checkpoint, CheckpointError

from .targets import quietly, value_and_grad

GIVEN = {"draws": 1500, "thin": 2}


class Killed(BaseException):
    """The end of the process, as far as the run can tell."""


def run(path=None, **given):
    return quietly(checkpoint=path, **(GIVEN | given))


def killed_at(monkeypatch, moment, path, after, **given):
    """Run until the moment-th commit, and die before or after it; True if it lived to the end."""
    made = itertools.count()
    commit = Checkpoint.commit

    def failing(self, state, rows):
        last = next(made) == moment
        if last and not after:
            raise Killed
        commit(self, state, rows)
        if last:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "commit", failing)
        try:
            run(path, **given)
        except Killed:
            return False
    return True


def assert_same(found, whole):
    np.testing.assert_array_equal(found.x, whole.x)
    for name in ("energy", "energy_error", "acceptance", "gradient"):
        np.testing.assert_array_equal(getattr(found.stats, name), getattr(whole.stats, name))
    for name in ("gradients", "step_size", "refresh", "thin", "divergences"):
        assert getattr(found.stats, name) == getattr(whole.stats, name), name
    assert len(found.stats.history) == len(whole.stats.history)


@pytest.fixture(scope="module")
def whole():
    return run()


def test_with_a_checkpoint_nothing_changes(whole, tmp_path):
    assert_same(run(tmp_path / "run.zarr"), whole)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_killed_at_every_commit(whole, tmp_path, monkeypatch, after):
    """Once for each commit, then resumed to the end."""
    for moment in itertools.count():
        path = tmp_path / f"{moment}.zarr"
        if killed_at(monkeypatch, moment, path, after):
            break
        assert_same(run(path), whole)
    assert moment > 10


def test_killed_again_and_again(whole, tmp_path, monkeypatch):
    """At its second commit each time: one window a life."""
    path, lives = tmp_path / "run.zarr", 0
    while not killed_at(monkeypatch, 1, path, after=False):
        lives += 1
    assert lives > 5
    assert_same(run(path), whole)


@pytest.mark.parametrize(
    "given",
    [{"exact": False}, {"keep": "moments"}, {"thin": None, "draws": None, "gradients": 30_000}],
    ids=["unadjusted", "moments", "gradients"],
)
def test_other_runs_killed_halfway(given, tmp_path, monkeypatch):
    path = tmp_path / "run.zarr"
    want = run(**given)
    for moment in (3, 4, 2):
        assert not killed_at(monkeypatch, moment, path, True, **given)
    found = run(path, **given)
    if want.x is None:
        for name in ("mean", "variance", "total", "ess"):
            np.testing.assert_array_equal(
                getattr(found.moments, name), getattr(want.moments, name), err_msg=name
            )
    else:
        np.testing.assert_array_equal(found.x, want.x)


def test_an_interrupted_run_goes_on(whole, tmp_path):
    path = tmp_path / "run.zarr"

    def callback(view):
        if view.phase == "sampling":
            raise KeyboardInterrupt

    assert run(path, callback=callback).stats.interrupted
    assert_same(run(path), whole)


def test_a_finished_run_is_read_and_asked_for_more(whole, tmp_path):
    path = tmp_path / "run.zarr"
    first = run(path, draws=500)
    np.testing.assert_array_equal(first.x, whole.x[:, :500])
    assert_same(run(path), whole)
    seen = []
    np.testing.assert_array_equal(run(path, draws=300, callback=seen.append).x, whole.x[:, :300])
    assert len(seen) == 1


def test_another_run_is_refused(tmp_path):
    path = tmp_path / "run.zarr"
    run(path, draws=10)
    for given, word in (
        ({"seed": 1}, "seed was 0 and is now 1"),
        ({"exact": False}, "exact was true and is now false"),
        ({"init": np.ones(3)}, "start was"),
        ({"value_and_grad": value_and_grad}, 'engine was "jax" and is now "numpy"'),
    ):
        with pytest.raises(ValueError, match="holds another run") as caught:
            run(path, **given)
        assert word in str(caught.value) and "model was" not in str(caught.value)
    with pytest.raises(ValueError, match="model was"):
        run(path, logdensity=lambda x: -(x @ x))


def test_a_state_of_other_making_is_refused(tmp_path, monkeypatch):
    """Whole files whose content no version of the run has written."""
    path = tmp_path / "run.zarr"
    commit = Checkpoint.commit

    def other(self, state, rows):
        commit(self, {name: state[name] for name in list(state)[::2]}, rows)

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "commit", other)
        run(path, draws=10)
    with pytest.raises(CheckpointError, match=r"holds another state than this version .* delete"):
        run(path, draws=10)


SCRIPT = """
import sys
sys.path.insert(0, sys.argv[1])
from tests.sampling.targets import quietly, value_and_grad
quietly(value_and_grad=value_and_grad, draws=3000, thin=1, checkpoint=sys.argv[2])
"""


@pytest.mark.slow
@pytest.mark.parametrize("kills", [5, 50])
def test_killed_for_real(tmp_path, kills):
    """SIGKILL at random moments after the first commit, by a seeded clock."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
    path = tmp_path / "run.zarr"
    rng, died = random.Random(kills), 0
    for _ in range(kills):
        process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, root, str(path)],
            env=os.environ | {"JAX_PLATFORMS": "cpu"},
        )
        deadline = time.monotonic() + 120
        before = _written(path)
        while process.poll() is None and _written(path) == before and time.monotonic() < deadline:
            time.sleep(0.002)
        time.sleep(rng.uniform(0, 1.0 / kills))
        died += process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert died >= min(kills, 4)
    given = {"value_and_grad": value_and_grad, "draws": 3000, "thin": 1}
    np.testing.assert_array_equal(quietly(checkpoint=path, **given).x, quietly(**given).x)


def _written(path):
    try:
        return os.stat(path / "checkpoint" / "commit.zip").st_mtime_ns
    except FileNotFoundError:
        return 0
