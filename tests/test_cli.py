"""The command line says what it should and refuses plainly."""

import pytest
from typer.testing import CliRunner

from schuss import demo
from schuss.cli import app
from schuss.targets import TARGETS


def call(*words):
    return CliRunner().invoke(app, words, env={"COLUMNS": "120", "NO_COLOR": "1"})


def test_version():
    result = call("--version")
    assert result.exit_code == 0
    assert result.output.startswith("schuss 0.")


def test_targets_are_all_listed():
    result = call("targets")
    assert result.exit_code == 0
    listed = {line.split()[0] for line in result.output.splitlines() if line.strip()}
    assert set(TARGETS) <= listed
    assert "E[x₁] = −.4825" in " ".join(result.output.split())


def test_demo_is_given_its_path(monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(demo, "run", asked.append)
    assert call("demo", "--out", str(tmp_path / "a.svg")).exit_code == 0
    assert asked == [tmp_path / "a.svg"]


@pytest.mark.parametrize("out", ["picture", "picture.jpeg"])
def test_demo_refuses_other_files(out):
    result = call("demo", "--out", out)
    assert result.exit_code == 2
    assert "must end in one of .png, .pdf, .svg" in " ".join(result.output.replace("│", "").split())
