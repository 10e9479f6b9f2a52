"""docs/energy-models.md: its files, its Python and its commands work, made shorter."""

import pathlib
import re
import shlex

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from schuss.cli import app

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "energy-models.md"
TEXT = PAGE.read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", TEXT, flags=re.MULTILINE | re.DOTALL)


def shorter(code):
    """The same with few iterations of few steps."""
    return re.sub(r"\b(iterations|rounds|steps) ?= ?\d+", r"\1=3", code)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the page's files, in which its commands are given."""
    for kind, code in BLOCKS:
        name = re.match(r"# (\w+\.(?:py|toml))\n", code)
        if name:
            (tmp_path / name[1]).write_text(shorter(code) if kind == "toml" else code)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_its_python(folder):
    names = {"__name__": "page"}
    blocks = [code for kind, code in BLOCKS if kind == "python" and not code.startswith("# mine")]
    assert len(blocks) == 7
    for code in blocks:
        exec(compile(shorter(code), "energy-models.md", "exec"), names)
    assert 0 <= names["found"].auroc <= 1 and names["ratio"].shape == (500,)
    assert (folder / "outliers.png").exists()
    assert (folder / "stripes-run" / "report.html").exists()
    assert (folder / "stripes.png").exists()
    x, left = names["x"][:20], names["left"]
    for filled in (names["filled"], names["again"]):
        assert torch.equal(filled[:, left], x[:, left]) and filled.shape == x.shape
    assert names["both"].shape == (10, 1, 12, 12) and names["ones"].shape == (5, 1, 12, 12)
    assert names["negatives"].abs().max() <= 1


def test_its_commands(folder):
    lines = [line for kind, code in BLOCKS if kind == "sh" for line in code.splitlines()]
    assert lines[0] == "schuss ebm train digits --folder digits-run"
    for line in lines[1:]:
        words = shlex.split(line)[1:]
        more = ["--gradients", "100"] if words[1] == "sample" else []
        done = CliRunner().invoke(app, [*words, *more, "--device", "cpu"])
        assert done.exit_code == 0, done.output
    assert (folder / "mine-run" / "report.html").exists()
    with np.load(folder / "mine.npz") as stored:
        assert stored["x"].shape == (25, 1, 12, 12)


def test_what_it_names():
    """Its pictures and configurations are there, and the table of a line is that of a line."""
    for name in re.findall(r"\]\((energy-models/\S+)\)", TEXT):
        assert (PAGE.parent / name).stat().st_size > 1000
    (line,) = re.findall(r"^```\n(\d+/.*)\n```", TEXT, flags=re.MULTILINE)
    for word in ("E₊", "E₋", "δ", "|∇|", "ΔH", "frozen"):
        assert word in line
