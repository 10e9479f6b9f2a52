"""Checkpoints resume to the same numbers, survive a kill, and hold nothing that can run."""

import contextlib
import json
import math
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np
import pytest
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from safetensors import safe_open

import schuss
from schuss import ebm
from schuss.checkpoint import CheckpointError, files
from schuss.ebm import checkpoint

from .runs import data, small_net, trainer, weights

OPTIONS = {
    "adam": {},
    "sgd": {"optimiser": "sgd", "momentum": 0.9, "ema": None},
    "two streams": {"streams": 2},
    "ULA": {"sampler": schuss.ULA(0.1), "keep": "last"},
    "no buffer": {"buffer": None, "start": "normal"},
    "auto": {"energy_scale": "auto", "lr_schedule": "tail"},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
def test_resumes_exactly(tmp_path, options):
    whole = trainer(**options)
    whole.fit()
    first = trainer(folder=tmp_path, save_every=4, **options)
    first.fit(6)
    with torch.no_grad():
        first.net[0].weight += 1  # what happens after the save is lost
    # Another beginning, to be overwritten.
    second = trainer(small_net(seed=9), **options).resume(tmp_path)
    assert second.iteration == 6
    history = second.fit()
    np.testing.assert_array_equal(history.losses, whole.history.losses)
    np.testing.assert_array_equal(history.grad_norm, whole.history.grad_norm)
    assert torch.equal(weights(second.net), weights(whole.net))
    assert torch.equal(weights(second.averaged), weights(whole.averaged))
    for mine, other in zip(second.batches.buffers, whole.batches.buffers, strict=True):
        assert torch.equal(mine.x, other.x)


def test_rollbacks_are_remembered(tmp_path):
    run = trainer(folder=tmp_path)
    run.recovery.remember(0, run._tensors())
    run._go_back(3, "a reason")
    run.fit(4)
    again = trainer().resume(tmp_path)
    assert again.history.rollbacks == (ebm.Rollback(3, "a reason", 0),)
    assert again.recovery.attempt == 1
    np.testing.assert_array_equal(again.fit().losses, run.fit().losses)


def test_spectral_norm_resumes_exactly(tmp_path):
    images = torch.rand(30, 1, 8, 8) * 2 - 1

    def run(**options):
        torch.manual_seed(0)
        buffer = ebm.ReplayBuffer(20, (1, 8, 8))
        return trainer(ebm.ConvEnergy(2, 1, 8), images, buffer=buffer, iterations=6, **options)

    whole, first = run(), run(folder=tmp_path)
    whole.fit()
    first.fit(3)
    second = run().resume(tmp_path)
    np.testing.assert_array_equal(second.fit().losses, whole.history.losses)
    assert {path.name for path in tmp_path.glob("*.png")} == {"buffer.png", "noise.png"}


SCRIPT = """
import os, signal, sys
sys.path.insert(0, {tests!r})
from ebm.runs import trainer
run = trainer(folder={folder!r}, save_every=4, iterations={iterations})
if os.path.exists(os.path.join({folder!r}, "latest")):
    run.resume()
draw = run.batches.draw
def drawn(iteration, attempt):
    if iteration == 10 and sys.argv[1] == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    return draw(iteration, attempt)
run.batches.draw = drawn
print("begun", flush=True)
print(run.iteration, *[value.hex() for value in run.fit().losses.tolist()])
"""


def started(folder, how, iterations=24):
    """A process that trains in a folder, or goes on there."""
    tests = str(pathlib.Path(__file__).parents[1])
    script = SCRIPT.format(tests=tests, folder=str(folder), iterations=iterations)
    command = [sys.executable, "-c", script, how]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def reported(process):
    """The iteration from which a process went on, and the losses of the whole run."""
    out, errors = process.communicate()
    assert process.returncode == 0, errors
    return out.splitlines()[1].split()


@pytest.mark.slow
def test_a_killed_run_resumes_to_the_same_losses(tmp_path):
    killed = started(tmp_path / "run", "kill")
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL
    resumed, want = (reported(started(tmp_path / name, "go")) for name in ("run", "whole"))
    assert resumed[0] == "8" and want[0] == "0"
    assert resumed[1:] == want[1:]


@pytest.mark.slow
def test_killed_at_any_moment(tmp_path):
    """Six times, by a seeded clock, while a checkpoint is written every few milliseconds."""
    rng, begun = np.random.default_rng(0), []
    for _ in range(6):
        process = started(tmp_path / "run", "go", 2000)
        assert process.stdout is not None and process.stdout.readline() == "begun\n"
        time.sleep(rng.uniform(0, 1.5))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        run = trainer(iterations=2000)
        begun.append(
            run.resume(tmp_path / "run").iteration if checkpoint.exists(tmp_path / "run") else 0
        )
    assert begun == sorted(begun) and len(set(begun)) > 3
    goes_on = trainer(iterations=2000).resume(tmp_path / "run")
    end = begun[-1] + 40
    np.testing.assert_array_equal(goes_on.fit(40).losses, trainer(iterations=2000).fit(end).losses)


def test_a_checkpoint_that_was_not_finished_is_not_used(tmp_path):
    run = trainer(folder=tmp_path, save_every=4)
    run.fit(4)
    place = checkpoint.begin(tmp_path, 8)
    place.mkdir()
    (place / "state.safetensors.part").write_bytes(b"half of")
    assert trainer().resume(tmp_path).iteration == 4


def test_an_interrupted_run_leaves_the_last_good_state(tmp_path):
    run, draw = trainer(folder=tmp_path, save_every=100), None
    draw = run.batches.draw

    def interrupt(iteration, attempt):
        if iteration == 6:
            raise KeyboardInterrupt
        return draw(iteration, attempt)

    run.batches.draw = interrupt
    with pytest.raises(KeyboardInterrupt):
        run.fit()
    assert run.iteration == 4
    again = trainer().resume(tmp_path)
    np.testing.assert_array_equal(again.fit().losses, trainer().fit().losses)


def test_a_second_interrupt_leaves_the_last_whole_checkpoint(tmp_path, monkeypatch):
    run = trainer(folder=tmp_path, save_every=100)
    interrupt_at(run, 9)

    def again(*args):
        raise KeyboardInterrupt("second")

    with monkeypatch.context() as patch:
        run.fit(4)
        patch.setattr(checkpoint, "write", again)
        with pytest.raises(KeyboardInterrupt) as caught:
            run.fit()
    assert str(caught.value) == "first" and caught.value.__context__ is None
    assert trainer().resume(tmp_path).iteration == 4
    np.testing.assert_array_equal(run.fit().losses, trainer().fit().losses)
    assert trainer().resume(tmp_path).iteration == 12


def interrupt_at(run, iteration):
    """Ctrl-C in an iteration, once."""
    draw = run.batches.draw

    def drawn(now, attempt):
        if now == iteration:
            run.batches.draw = draw
            raise KeyboardInterrupt("first")
        return draw(now, attempt)

    run.batches.draw = drawn


def test_a_folder_with_a_checkpoint_is_gone_on_from_or_refused(tmp_path):
    first = trainer(folder=tmp_path)
    first.fit(10)
    message = r"checkpoint-0000010 of a run that this one doesn't go on from; call resume\(\)"
    other = trainer(folder=tmp_path)
    for start in (other.fit, other.save, lambda: trainer().save(tmp_path)):
        with pytest.raises(ValueError, match=message):
            start()
    assert other.iteration == 0 and checkpoint.latest(tmp_path).name == "checkpoint-0000010"
    other.resume().fit(1)
    other.fit(1)
    with pytest.raises(ValueError, match="checkpoint-0000012 of a run that this one doesn't"):
        first.fit()
    np.testing.assert_array_equal(other.history.losses, trainer().fit().losses)


def test_two_at_once_are_refused(tmp_path):
    run, other = trainer(folder=tmp_path), trainer(folder=tmp_path)
    draw, refused = run.batches.draw, []

    def drawn(iteration, attempt):
        for start in (other.fit, other.save):
            with pytest.raises(CheckpointError, match=f"in use by process {os.getpid()} on"):
                start()
            refused.append(start)
        return draw(iteration, attempt)

    run.batches.draw = drawn
    run.fit(2)
    assert len(refused) == 4
    other.resume().fit(1)


OTHERS = {
    "data": ({"examples": data(seed=1)}, "data.digest was "),
    "shape": ({"examples": data(59)}, r"data.shape was \[60, 2\] and is now \[59, 2\]"),
    "function": (
        {"examples": lambda n, g: torch.zeros(n, 2)},
        'data was absent and is now "a func',
    ),
    "batch": ({"batch": 5}, "batch was 10 and is now 5"),
    "lr": ({"lr": 2e-2}, "lr was 0.01 and is now 0.02"),
    "betas": ({"betas": (0.9, 0.99)}, r"betas was \[0.5, 0.999\] and is now \[0.9, 0.99\]"),
    "optimiser": ({"optimiser": "sgd"}, 'optimiser was "Adam" and is now "SGD"'),
    "sampler": ({"sampler": schuss.ULA(0.2)}, 'sampler.name was "ESH" and is now "ULA"'),
    "step": ({"sampler": schuss.ESH(0.1)}, "sampler.step_size was 0.2 and is now 0.1"),
    "steps": ({"steps": 4}, "steps was 3 and is now 4"),
    "seed": ({"seed": 3}, "seed was 0 and is now 3"),
    "scale": ({"energy_scale": 2.0}, "energy_scale was 1.0 and is now 2.0"),
    "buffer": ({"buffer": None}, "buffers in all"),
    "noise": ({"data_noise": 0.1}, "data_noise was 0.03 and is now 0.1"),
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    trainer(folder=folder).fit(8)
    return folder


@pytest.mark.parametrize(("given", "message"), OTHERS.values(), ids=OTHERS.keys())
def test_another_run_is_refused_by_name(saved, given, message):
    with pytest.raises(ValueError, match=message) as caught:
        trainer(**given).resume(saved)
    assert "holds another run" in str(caught.value) or "buffers" in str(caught.value)


def test_all_fields_that_differ_are_named(saved):
    with pytest.raises(ValueError, match=r"batch was 10 .*; lr was 0.01 .*; steps was 3 "):
        trainer(batch=5, lr=1.0, steps=1, iterations=50, every=2, retries=1).resume(saved)
    assert trainer(iterations=50, every=2, retries=1).resume(saved).iteration == 8


# By the clock.


def test_a_checkpoint_is_written_early(tmp_path):
    run = trainer(folder=tmp_path, save_every=1000)
    kill_at(run, 7)
    with pytest.raises(Killed):
        run.fit()
    assert trainer().resume(tmp_path).iteration == 4
    assert not list(tmp_path.glob("weights-*"))


class Killed(BaseException):
    """The end of the process, as far as training can tell."""


def kill_at(run, iteration):
    draw = run.batches.draw

    def drawn(now, attempt):
        if now == iteration:
            raise Killed
        return draw(now, attempt)

    run.batches.draw = drawn


@pytest.mark.parametrize("every", [4, 100])
def test_a_checkpoint_is_written_when_time_has_passed(tmp_path, monkeypatch, every):
    """Of every iteration, where any time is long; with the same numbers."""
    for name in ("FIRST_SAVE", "NEXT_SAVE"):
        monkeypatch.setattr(f"schuss.ebm.trainer.{name}", 0.0)
    run = trainer(folder=tmp_path, save_every=1000, every=every)
    kill_at(run, 7)
    with pytest.raises(Killed):
        run.fit()
    again = trainer(folder=tmp_path, every=every).resume()
    assert again.iteration == 7
    np.testing.assert_array_equal(again.fit().losses, trainer().fit().losses)


def test_the_clock_has_no_part_in_what_is_done_about_divergences(monkeypatch, tmp_path):
    def spoilt(folder):
        run = trainer(folder=folder)
        draw, left = run.batches.draw, [7, 9]

        def drawn(now, attempt):
            made = draw(now, attempt)
            if now in left:
                left.remove(now)
                return made._replace(x=made.x * math.nan)
            return made

        run.batches.draw = drawn
        return run.fit()

    want = spoilt(None)
    monkeypatch.setattr("schuss.ebm.trainer.FIRST_SAVE", 0.0)
    monkeypatch.setattr("schuss.ebm.trainer.NEXT_SAVE", 0.0)
    found = spoilt(tmp_path)
    assert len(want.rollbacks) == 2 and found.rollbacks == want.rollbacks
    np.testing.assert_array_equal(found.losses, want.losses)


# Damage.


def flip(file, share):
    content = bytearray(file.read_bytes())
    content[int(share * (len(content) - 1))] ^= 16
    file.write_bytes(content)


@pytest.fixture
def two(tmp_path):
    """A run with two checkpoints, of iterations 4 and 8."""
    trainer(folder=tmp_path / "run", save_every=4).fit(8)
    return tmp_path / "run"


FILES = (
    "latest",
    "checkpoint-0000008/state.safetensors",
    "checkpoint-0000008/stream-0.safetensors",
)


@pytest.mark.parametrize("share", [0, 0.01, 0.3, 0.7, 1, None])
@pytest.mark.parametrize("name", FILES)
def test_a_damaged_checkpoint_is_named_and_the_one_before_used(two, name, share):
    (two / name).unlink() if share is None else flip(two / name, share)
    run = trainer(folder=two, save_every=4)
    if (name, share) == ("latest", None):  # as after a kill between two names
        run.resume()
    else:
        with pytest.warns(UserWarning, match=f"{name} is missing or damaged .*; the commit before"):
            run.resume()
    assert run.iteration == 4
    np.testing.assert_array_equal(run.fit().losses, trainer().fit().losses)
    places = {path.name for path in two.glob("checkpoint-*")}
    assert len(places) == 2 and checkpoint.latest(two).name in places
    assert trainer().resume(two).iteration == 12
    flip(checkpoint.latest(two) / "state.safetensors", 0.5)
    with pytest.warns(UserWarning):
        assert trainer().resume(two).iteration == 8


def test_where_nothing_is_whole_the_damaged_file_is_named(two):
    for place in two.glob("checkpoint-*"):
        flip(place / "stream-0.safetensors", 0.5)
    for read in (trainer().resume, lambda at: checkpoint.load_weights(small_net(), at)):
        with pytest.raises(CheckpointError, match=f"{FILES[2]} is missing or damaged .*; restore"):
            read(two)
    with pytest.raises(CheckpointError, match="missing or damaged"):
        checkpoint.load_weights(small_net(), two / "checkpoint-0000004")
    weights_alone = two / "weights-0000008.safetensors"
    checkpoint.load_weights(small_net(), weights_alone)
    flip(weights_alone, 1)
    with pytest.raises(CheckpointError, match=r"weights-0000008.safetensors is missing or damaged"):
        checkpoint.load_weights(small_net(), weights_alone)


def test_a_retried_iteration_leaves_the_checkpoint_of_its_first_try_alone(two):
    run = trainer(folder=two).resume()
    before = checkpoint.latest(two)
    assert run.save() != before and before.exists()
    assert run.save() not in (before, two / "checkpoint-0000008-again")
    assert trainer().resume(two).iteration == 8 and not (two / "checkpoint-0000004").exists()


# What a head says that someone has forged, its checksum being right.

VALUES = (
    "../victim",
    "/etc",
    "",
    "checkpoint-0000004/../../victim",
    "checkpoint-0000009",
    7,
    None,
    [],
    {},
)
FORGERIES = st.one_of(
    st.tuples(st.just("place"), st.sampled_from(VALUES)),
    st.tuples(st.just("name"), st.sampled_from(VALUES[:5])),
    st.tuples(st.just("checksum"), st.sampled_from(VALUES)),
    st.tuples(st.just("checksums"), st.sampled_from(VALUES)),
    st.tuples(st.just("bytes"), st.binary(max_size=40)),
    st.tuples(st.just("link"), st.sampled_from([*FILES, "lock", "checkpoint-0000008"])),
    st.tuples(st.just("leftover"), st.sampled_from(["latest.part", "checkpoint-0000009", "lock"])),
)


def forge(folder, kind, value):
    """One change of a folder of two checkpoints beside a victim."""
    _, _, content = (folder / "latest").read_bytes().partition(b"\n")
    listed = json.loads(content)
    if kind in ("place", "checksums"):
        listed[kind] = value
    elif kind == "name":
        listed["checksums"][value] = 0
    elif kind == "checksum":
        listed["checksums"][FILES[1]] = value
    content = value if kind == "bytes" else json.dumps(listed).encode()
    (folder / "latest").write_bytes(files.sealed(content))
    victim = folder.with_name("victim")
    if kind == "link":
        path = folder / value
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        path.symlink_to(victim if value.endswith("8") else victim / STATE)
    elif kind == "leftover":
        (folder / value).unlink(missing_ok=True)
        (folder / value).symlink_to(victim / STATE)


STATE = "state.safetensors"
QUICKLY = {"deadline": None, "derandomize": True, "database": None, "phases": [Phase.generate]}


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    root = tmp_path_factory.mktemp("forged")
    trainer(folder=root / "run", save_every=4).fit(8)
    (root / "victim").mkdir()
    (root / "victim" / STATE).write_text("precious")
    return root


def check_forged(base, forgeries):
    """Nothing elsewhere is written or deleted; what can't be used is a CheckpointError."""
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(shutil.copytree(base, pathlib.Path(name) / "root"))
        for forgery in forgeries:
            with contextlib.suppress(
                FileNotFoundError, ValueError, TypeError, AttributeError, OSError
            ):
                forge(root / "run", *forgery)
        run = trainer(folder=root / "run")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                run.resume()
                assert run.iteration in (4, 8)
                run.fit(1)
        except CheckpointError as error:
            assert str(root / "run") in str(error) and "; " in str(error)
        assert sorted(p.name for p in root.iterdir()) == ["run", "victim"]
        assert [p.name for p in (root / "victim").iterdir()] == [STATE]
        assert (root / "victim" / STATE).read_text() == "precious"


@settings(max_examples=20, **QUICKLY)
@given(forgeries=st.lists(FORGERIES, min_size=1, max_size=2))
def test_forged_checkpoints(base, forgeries):
    check_forged(base, forgeries)


@pytest.mark.slow
@settings(max_examples=300, **QUICKLY)
@given(forgeries=st.lists(FORGERIES, min_size=1, max_size=2))
def test_many_forged_checkpoints(base, forgeries):
    check_forged(base, forgeries)


def test_files(tmp_path):
    run = trainer(folder=tmp_path, save_every=4, iterations=60, config={"name": "small"})
    run.fit()
    there = sorted(
        str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()
    )
    kept = [f"weights-{4 * k:07d}.safetensors" for k in range(6, 16)]
    place = "checkpoint-0000060"
    two = ("checkpoint-0000056", place)
    named = [f"{p}/{n}.safetensors" for p in two for n in ("state", "stream-0")]
    assert there == [*named, "latest", "latest.before", "lock", *kept]
    with safe_open(tmp_path / place / "state.safetensors", "pt") as held:
        meta = json.loads(held.metadata()["schuss"])
    assert meta["format"] == 1 and meta["content"]["config"] == {"name": "small"}

    member = checkpoint.load_weights(small_net(5), tmp_path / kept[-1])
    assert torch.equal(weights(member), weights(run.averaged))
    assert torch.equal(
        weights(checkpoint.load_weights(small_net(5), tmp_path)), weights(run.averaged)
    )


def refuse(message):
    return pytest.raises(ValueError, match="^" + re.escape(message))


def test_what_cannot_be_resumed(tmp_path):
    with refuse("folder is missing; pass it here or to the Trainer"):
        trainer().save()
    with refuse(f"folder {str(tmp_path)!r} holds no checkpoint"):
        trainer().resume(tmp_path)
    trainer(folder=tmp_path).fit(4)
    with refuse(
        "the checkpoint is of another architecture: 0.bias is (8,) there and (9,) here; build net "
        "as it was when it was saved"
    ):
        trainer(small_net(width=9)).resume(tmp_path)
    with refuse(
        "the checkpoint is of another architecture: 0.bias is (8,) there and missing here; build"
    ):
        trainer(torch.nn.Sequential(torch.nn.Linear(2, 8, bias=False))).resume(tmp_path)
    with refuse(f"path {tmp_path} holds another run: buffer.size was 32 and is now 16; pass"):
        trainer(buffer=ebm.ReplayBuffer(16, (2,), reinit=0.1)).resume(tmp_path)
    with refuse("the checkpoint has 1 buffers in all but this run has 2; use as many"):
        trainer(streams=2).resume(tmp_path)
    with refuse("ema must be given if, and only if, it was when this run was saved"):
        trainer(ema=None).resume(tmp_path)
    state = checkpoint.latest(tmp_path) / "state.safetensors"
    os.truncate(state, 100)
    with pytest.raises(CheckpointError, match=f"^{state} is missing or damaged"):
        trainer().resume(tmp_path)
