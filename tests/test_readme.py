"""Every Python block of the README runs, and gives what the text beside it says."""

import pathlib
import re

import numpy as np
import pytest

import schuss
from schuss import diagnostics

ROOT = pathlib.Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)


def block(words):
    """Run the one block that contains `words`."""
    (code,) = [code for code in BLOCKS if words in code]
    names = {"__name__": "readme"}
    exec(compile(code, f"README.md, block with {words!r}", "exec"), names)
    return names


def test_every_block_is_run_here():
    assert len(BLOCKS) == 5


def test_the_papers_flow():
    names = block("ergodic_sample(500")
    assert names["samples"].shape == (500, 2)
    assert names["more"].x.shape == (401, 500, 2)
    # 5 sigma of the mean of 500 chains, and the bias of the start in 200 steps.
    assert abs(names["mean"] - 0.5) < 0.05


def test_every_sampler(capsys):
    block("paper_ess")
    printed = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert set(printed) == {"ESH", "ULA", "MALA", "HMC", "NoseHoover", "Unscaled"}
    ess = {name: float(line.split()[0]) for name, line in printed.items()}
    assert max(ess, key=lambda name: ess[name]) == "ESH"


def test_a_posterior():
    """Against a long run of another exact sampler, 5 sigma in each coordinate."""
    names = block("logistic regression")
    mean, error = names["mean"], names["error"]
    assert np.all(error < 0.03)
    assert names["path"].acceptance_rate.max() < 1
    other = schuss.trajectory(
        logdensity=names["logdensity"],
        init=names["init"],
        sampler=schuss.HMC(step_size=0.1, steps=5),
        steps=10_000,
        seed=1,
    )
    expected, its_error = diagnostics.ratio_jackknife(other.x[501:], other.weights[500:])
    assert np.all(np.abs(mean - expected) < 5 * np.hypot(error, its_error))


def test_a_neural_energy():
    pytest.importorskip("torch")
    names = block("torch.optim")
    assert names["buffer"].shape == (128, 2)
    assert names["net"].training
    assert all(parameter.requires_grad for parameter in names["net"].parameters())


def test_plain_numpy():
    """Variances of a Gaussian from 10 chains of 1000 steps, to 5 sigma."""
    names = block("value_and_grad=")
    np.testing.assert_allclose(names["variance"], names["scales"] ** 2, rtol=0.3)


def test_files_and_commands_exist():
    for name in re.findall(r"\]\(([^)h][^)]*)\)", README):
        assert (ROOT / name).exists(), name
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make (\S+)", README, flags=re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
