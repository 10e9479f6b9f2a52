"""Every Python block of the README runs, and gives what the text beside it says."""

import pathlib
import re

import numpy as np
import pytest

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
    assert len(BLOCKS) == 8


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


def test_a_posterior(tmp_path, monkeypatch):
    """Mean and variance of log τ are .802 and 1.372 (quadrature); 5 sigma of their errors."""
    monkeypatch.chdir(tmp_path)
    names = block("logdensity=logdensity, init=init")
    post = names["post"]
    assert post.verdict.converged
    assert post.draws["theta"].shape == (4, 1000, 8)
    assert (tmp_path / "run.html").stat().st_size > 10_000
    assert names["data"].posterior["theta"].shape == (4, 1000, 8)
    log_tau = post.draws["log_tau"]
    size = diagnostics.fast_ess(log_tau.T[..., None])[0]
    assert abs(log_tau.mean() - 0.802) < 5 * np.sqrt(1.372 / size)
    assert abs(log_tau.var() - 1.372) < 5 * 1.372 * np.sqrt(4 / size)


def test_a_pymc_model():
    pytest.importorskip("pymc")
    post = block("schuss.from_pymc(model)")["post"]
    assert post.verdict.converged
    assert np.all(post.draws["tau"] > 0) and post.draws["theta"].shape == (4, 1000, 8)


def test_evidence():
    """The truth is 5 log(π/2); 5 of its standard errors."""
    found = block("schuss.evidence(")["found"]
    assert found.verdict.converged
    assert abs(found.log_z - 5 * np.log(np.pi / 2)) < 5 * found.error < 0.5


def test_training(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    history = block("ebm.Trainer(")["history"]
    assert len(history.losses) > 0
    assert (tmp_path / "digits.png").stat().st_size > 1000


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
    headings = re.findall(r"^#+ (.*)$", README, flags=re.MULTILINE)
    anchors = {"#" + heading.lower().replace(" ", "-") for heading in headings}
    for name in re.findall(r"\]\(([^)h][^)]*)\)", README):
        assert name in anchors or (ROOT / name).exists(), name
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make (\S+)", README, flags=re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
