"""Checkpoints resume to the same numbers, survive a kill, and hold nothing that can run."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys

import numpy as np
import pytest
import torch
from safetensors import safe_open

import schuss
from schuss import ebm
from schuss.ebm import checkpoint

from .runs import small_net, trainer, weights

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
run = trainer(folder={folder!r}, save_every=4, iterations=24)
if os.path.exists(os.path.join({folder!r}, "latest")):
    run.resume()
draw = run.batches.draw
def drawn(iteration, attempt):
    if iteration == 10 and sys.argv[1] == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    return draw(iteration, attempt)
run.batches.draw = drawn
print(run.iteration, *[value.hex() for value in run.fit().losses.tolist()])
"""


@pytest.mark.slow
def test_a_killed_run_resumes_to_the_same_losses(tmp_path):
    tests = str(pathlib.Path(__file__).parents[1])
    script = SCRIPT.format(tests=tests, folder=str(tmp_path / "run"))
    whole = SCRIPT.format(tests=tests, folder=str(tmp_path / "whole"))

    def python(code, how):
        command = [sys.executable, "-c", code, how]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    assert python(script, "kill").returncode == -signal.SIGKILL
    resumed, want = python(script, "go"), python(whole, "go")
    assert resumed.returncode == want.returncode == 0, resumed.stderr + want.stderr
    assert resumed.stdout.split()[0] == "8" and want.stdout.split()[0] == "0"
    assert resumed.stdout.split()[1:] == want.stdout.split()[1:]


def test_a_checkpoint_that_was_not_finished_is_not_used(tmp_path):
    run = trainer(folder=tmp_path, save_every=4)
    run.fit(4)
    place = checkpoint.begin(tmp_path, 8)
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


def test_files(tmp_path):
    run = trainer(folder=tmp_path, save_every=4, iterations=60, config={"name": "small"})
    run.fit()
    files = sorted(
        str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()
    )
    kept = [f"weights-{4 * k:07d}.safetensors" for k in range(6, 16)]
    place = "checkpoint-0000060"
    assert files == [f"{place}/state.safetensors", f"{place}/stream-0.safetensors", "latest", *kept]
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
    with refuse("the saved buffer holds (32, 2) but this one (16, 2); make it of the same size"):
        trainer(buffer=ebm.ReplayBuffer(16, (2,))).resume(tmp_path)
    with refuse("the checkpoint has 1 buffers in all but this run has 2; use as many"):
        trainer(streams=2).resume(tmp_path)
    with refuse("ema must be given if, and only if, it was when this run was saved"):
        trainer(ema=None).resume(tmp_path)
    state = checkpoint.latest(tmp_path) / "state.safetensors"
    os.truncate(state, 100)
    with refuse(f"{str(state)!r} isn't a checkpoint that can be read"):
        trainer().resume(tmp_path)
