"""Configurations: all that come along are built; the commands train, go on and draw samples."""

import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from schuss.ebm import checkpoint, config
from schuss.ebm.batches import Batches
from schuss.ebm.cli import ebm_app

NAMES = config.names()
TINY = {"net": {"features": 2, "width": 2}, "train": {"batch": 4, "steps": 2, "iterations": 2}}


def pictures(folder):
    """Data files of the right kind with a few images."""
    rng = np.random.default_rng(0)
    for name, shape in (("mnist", (28, 28)), ("cifar10", (32, 32, 3))):
        x = rng.integers(0, 256, (12, *shape), dtype=np.uint8)
        y = np.arange(12) % 10
        np.savez(folder / f"{name}.npz", train_x=x, train_y=y, test_x=x, test_y=y)
    return folder


def tiny(name):
    """A configuration, made small."""
    made = config.load(name)
    net = {key: value for key, value in TINY["net"].items() if key in made["net"]}
    made = {**made, "net": made["net"] | net, "train": made["train"] | TINY["train"]}
    made["train"] |= {"precision": None}
    if "buffer" in made:
        made["buffer"] = made["buffer"] | {"size": 8}
    return made


def test_there_is_one_for_every_experiment():
    wanted = {"digits", "mnist", "cifar10", "cifar10_jarzynski", "jem", "toy_mixture", "toy_rings"}
    assert wanted <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_config_trains(name, tmp_path):
    run = config.build(tiny(name), data=pictures(tmp_path))
    history = run.fit()
    assert len(history) == 2 and np.isfinite(history.losses).all()
    made = config.load(name)
    assert type(run.batches.drawer.algorithm).__name__ == made["sampler"]["name"]


def write(path, text):
    path.write_text(text)
    return str(path)


DIGITS = """
[data]
name = "digits"
[net]
name = "conv"
features = 2
[sampler]
name = "ESH"
step_size = 0.5
[buffer]
size = 16
[train]
batch = 8
steps = 2
iterations = 4
every = 2
energy_scale = 100.0
"""


def invoke(*arguments):
    return CliRunner().invoke(ebm_app, list(arguments))


def test_commands(tmp_path):
    file, run = write(tmp_path / "digits.toml", DIGITS), str(tmp_path / "run")
    done = invoke("train", file, "--folder", run, "--device", "cpu", "--iterations", "2")
    assert done.exit_code == 0, done.output
    assert "2 iterations" in done.output
    more = invoke("train", file, "--folder", run, "--device", "cpu")
    assert more.exit_code == 0, more.output
    assert "going on from iteration 2" in more.output and "4 iterations" in more.output
    for source in ("buffer", "noise"):
        out = tmp_path / f"{source}.png"
        options = ("--from", source, "--out", str(out), "--n", "9", "--gradients", "5")
        drawn = invoke("sample", run, *options, "--device", "cpu")
        assert drawn.exit_code == 0, drawn.output
        with Image.open(out) as image:
            assert image.size == (2 + 9 * 66, 2 + 66)
            assert np.asarray(image)[2:66, 2:66].std() > 10


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("[net]", "[network]"), "config must have a table [net]; add it"),
        (
            ("[buffer]", "[bufer]"),
            "config has the unknown table bufer; the nearest known one is buffer",
        ),
        (
            ('"conv"', '"unet"'),
            "net.name must be one of 'toy', 'conv', 'strided', 'joint', got 'unet'",
        ),
        (('"ESH"', '"SGLD"'), "sampler.name must be one of 'ESH', 'ULA'"),
        (
            ("steps = 2", "stepz = 2"),
            "config has the unknown key of [train], stepz; the nearest known one is steps",
        ),
        (
            ("steps = 2", "sampler = 2"),
            "config has the unknown key of [train], sampler; the nearest",
        ),
        (
            ("step_size = 0.5", "stepsize = 0.5"),
            "config has the unknown key of [sampler], stepsize; the nearest known one is step_size",
        ),
        (
            ("features = 2", "feature = 2"),
            "config has the unknown key of [net], feature; the nearest known one is features",
        ),
        (("size = 16", "sizes = 16"), "config has the unknown key of [buffer], sizes; the nearest"),
        (("size = 16", "shape = 16"), "config has the unknown key of [buffer], shape; the nearest"),
        (
            ('name = "digits"', 'name = "digits"\nlimits = 5'),
            "config has the unknown key of [data], limits; the nearest known one is limit",
        ),
        (('"digits"', '"cifar10"'), "data 'cifar10' isn't part of schuss; pass --data PATH"),
        (("size = 16", "size = 4"), "batch must be at most the buffer's size 4, got 8"),
        (("batch = 8", "batch ="), "isn't TOML"),
    ],
)
def test_bad_configs(change, message, tmp_path):
    file = write(tmp_path / "digits.toml", DIGITS.replace(*change))
    with pytest.raises(ValueError, match=re.escape(message)):
        config.build(config.load(file))
    shown = invoke("train", file, "--folder", str(tmp_path / "run"), "--device", "cpu")
    assert shown.exit_code == 2 and "Traceback" not in shown.output


def test_a_folder_goes_on_with_its_own_run_only(tmp_path):
    """Another sampler or seed is refused by name; more iterations are the same run."""
    folder = ("--folder", str(tmp_path / "run"), "--device", "cpu", "--iterations")
    file = write(tmp_path / "digits.toml", DIGITS)
    assert invoke("train", file, *folder, "2").exit_code == 0
    other = write(tmp_path / "other.toml", DIGITS.replace('"ESH"', '"ULA"'))
    said = squeezed(invoke("train", other, *folder, "4"))
    assert 'holds another run: sampler.name was "ESH" and is now "ULA"' in said
    assert "seed was 0 and is now 7" in squeezed(invoke("train", file, *folder, "4", "--seed", "7"))
    shown = invoke("train", file, *folder, "2")
    assert shown.exit_code == 0 and "its 2 iterations are done" in shown.output
    shown = invoke("train", file, *folder, "3")
    assert shown.exit_code == 0 and "going on from iteration 2" in shown.output


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("times", [1, 2])
def test_a_signal_saves_and_ends_quietly(tmp_path, monkeypatch, number, times):
    """The second signal comes while a checkpoint is written, which is dropped."""
    file, run = write(tmp_path / "digits.toml", DIGITS), tmp_path / "run"
    draw, save, sent = Batches.draw, checkpoint.write, []

    def drawn(self, iteration, attempt):
        if iteration == 7:
            sent.append(number)
            os.kill(os.getpid(), number)
        return draw(self, iteration, attempt)

    def written(*given):
        if sent and len(sent) < times:
            sent.append(number)
            os.kill(os.getpid(), number)
        return save(*given)

    monkeypatch.setattr(Batches, "draw", drawn)
    monkeypatch.setattr(checkpoint, "write", written)
    before = signal.getsignal(signal.SIGTERM)
    given = ("train", file, "--folder", str(run), "--device", "cpu", "--iterations", "9")
    shown = invoke(*given)
    assert signal.getsignal(signal.SIGTERM) == before
    assert shown.exit_code == 128 + number and len(sent) == times
    assert "stopped; the same command goes on" in shown.output and "Traceback" not in shown.output
    monkeypatch.undo()
    begun = {1: 6, 2: 2}[times]
    assert f"going on from iteration {begun}" in invoke(*given).output


def test_bad_commands(tmp_path):
    assert "config must be a TOML file or one of" in squeezed(invoke("train", "nothing"))
    assert "holds no checkpoint" in squeezed(invoke("sample", str(tmp_path)))
    assert "must be noise or buffer" in squeezed(invoke("sample", str(tmp_path), "--from", "x"))
    assert "must end in .png" in squeezed(invoke("sample", str(tmp_path), "--out", "x.pdf"))


def squeezed(result):
    """What was said, without the frame around it."""
    assert result.exit_code == 2
    return " ".join(re.sub("[│╭╮╰╯─]", " ", result.output).split())


WITHOUT_TORCH = """
import sys


class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")


sys.meta_path.insert(0, Blocked())
from typer.testing import CliRunner
from schuss.cli import app

for given in ("--help", "train --help", "sample --help", "train digits", "sample run"):
    result = CliRunner().invoke(app, ["ebm", *given.split()])
    print(given, result.exit_code, type(result.exception).__name__)
    print(result.output)
try:
    from schuss.ebm import Trainer
except ImportError as error:
    print(error)
"""


def test_help_needs_no_torch():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH], capture_output=True, text=True, check=True
    )
    said = " ".join(re.sub("[│╭╮╰╯─]", " ", done.stdout).split())
    for given in ("--help", "train --help", "sample --help"):
        assert f"{given} 0 " in said
    assert "Train neural energies" in said and "Of the whole run" in said
    for given in ("train digits", "sample run"):
        assert f"{given} 2 SystemExit" in said
    assert said.count("schuss ebm needs PyTorch (No module named 'torch'); run pip install") == 2
    assert "schuss.ebm.Trainer needs PyTorch; install it with pip install 'schuss[torch]'" in said


OWN = """
import numpy as np
import torch


def points(path=None, n=60, classes=False):
    x = np.random.default_rng(0).uniform(-1, 1, (n, 1, 8, 8))
    return (x, np.arange(n) % 2) if classes else x


class Net(torch.nn.Module):
    def __init__(self, shape, width=4):
        super().__init__()
        inside = shape[0] * shape[1] * shape[2]
        self.layers = torch.nn.Sequential(
            torch.nn.Flatten(), torch.nn.Linear(inside, width), torch.nn.SiLU(),
            torch.nn.Linear(width, 2),
        )

    def forward(self, x):
        return self.layers(x)[:, 0]


class Given(Net):
    def forward(self, x, y):
        return self.layers(x).gather(1, y[:, None])


number = 3
"""

OWN_CONFIG = """
[data]
name = "{file}:points"
n = 40
{more}
[net]
name = "{file}:{net}"
width = 3
[sampler]
name = "ULA"
step_size = 0.05
box = [-1.0, 1.0]
boundary = "clamp"
gradient_clip = 100.0
[buffer]
size = 16
[train]
batch = 8
steps = 2
iterations = 4
every = 2
"""


@pytest.mark.parametrize("conditional", [False, True])
def test_an_own_net_on_own_data(tmp_path, conditional):
    write(tmp_path / "mine.py", OWN)
    net, more = ("Given", "classes = true") if conditional else ("Net", "")
    text = OWN_CONFIG.format(file=tmp_path / "mine.py", net=net, more=more)
    file, run = write(tmp_path / "mine.toml", text), str(tmp_path / "run")
    done = invoke("train", file, "--folder", run, "--device", "cpu")
    assert done.exit_code == 0, done.output
    assert "report.html" in done.output
    out = tmp_path / "samples.png"
    options = ("--out", str(out), "--n", "3", "--gradients", "5", "--device", "cpu")
    if conditional:
        assert "y is missing" in squeezed(invoke("sample", run, *options))
        options += ("--y", "0,1")
    drawn = invoke("sample", run, *options)
    assert drawn.exit_code == 0, drawn.output
    with np.load(tmp_path / "samples.npz") as stored:
        assert stored["x"].shape == (6 if conditional else 3, 1, 8, 8)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("width = 3", "widht = 3"), "config has the unknown key of [net], widht; the nearest"),
        (("n = 40", "m = 40"), "config has the unknown key of [data], m; the nearest known one is"),
        ((":points", ":lines"), "has nothing called 'lines'; name a class or a function in it"),
        ((":points", ":number"), "is of type int; name a class or a function"),
        ((":Net", ":points"), "config has the unknown key of [net], width"),
        ((":Net", ":Given"), "needs data with labels; use digits, mnist or cifar10, or let"),
    ],
)
def test_own_names_that_are_refused(tmp_path, change, message):
    write(tmp_path / "mine.py", OWN)
    text = OWN_CONFIG.format(file=tmp_path / "mine.py", net="Net", more="")
    file = write(tmp_path / "mine.toml", text.replace(*change))
    with pytest.raises(ValueError, match=re.escape(message)):
        config.build(config.load(file))


def test_a_module_of_the_working_directory(tmp_path, monkeypatch):
    write(tmp_path / "mine_too.py", OWN)
    monkeypatch.chdir(tmp_path)
    text = OWN_CONFIG.format(file="mine_too", net="Net", more="")
    run = config.build(config.load(write(tmp_path / "mine.toml", text)))
    assert len(run.fit()) == 4
    with pytest.raises(ValueError, match=r"^no_such can't be imported: .*; pass FILE.py:NAME$"):
        config.load(write(tmp_path / "mine.toml", text.replace("mine_too", "no_such")))
