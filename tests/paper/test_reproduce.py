"""The machinery: results are kept, reused, and never half written; the page shows what is there."""

import io
import json
import signal
import subprocess
import sys
import time

import pytest
from rich.console import Console

from schuss.paper import ITEMS, store
from schuss.paper.item import Item, Settings
from schuss.paper.reproduce import reproduce


def item(name, compute):
    def draw(result, folder):
        (folder / f"{name}.png").write_bytes(b"picture")
        return [f"{name}.png"]

    return Item(
        name=name,
        title=f"The {name}",
        place="Figure 0",
        compute=compute,
        draw=draw,
        tell=lambda result: f"The value is {result['value']}.",
        parts=lambda settings: 1,
    )


class Counter:
    def __init__(self, error=None):
        self.calls, self.error = 0, error

    def __call__(self, settings, advance):
        self.calls += 1
        advance("one part")
        if self.error is not None:
            raise self.error
        return {"value": 41 + self.calls, "seed": settings.seed}


def quiet():
    return Console(file=io.StringIO(), width=120)


def test_results_are_reused_until_settings_change(tmp_path):
    count = Counter()
    items = [item("one", count)]
    for settings, fresh, calls in (
        (Settings(), False, 1),
        (Settings(), False, 1),
        (Settings(), True, 2),
        (Settings(seed=1), False, 3),
    ):
        assert reproduce(items, ["one"], tmp_path, settings, fresh=fresh, console=quiet())
        assert count.calls == calls


def test_pictures_are_drawn_again_from_results_alone(tmp_path):
    count = Counter()
    items = [item("one", count)]
    reproduce(items, ["one"], tmp_path, Settings(seed=3), console=quiet())
    picture = tmp_path / "reproduction" / "one.png"
    picture.unlink()
    assert reproduce(items, [], tmp_path, Settings(), redraw=True, console=quiet())
    assert picture.exists() and count.calls == 1
    assert store.load(tmp_path / "reproduction", "one").settings.seed == 3


def test_a_smoke_run_never_replaces_a_full_one(tmp_path):
    count = Counter()
    items, quick = [item("one", count)], Settings(quick=True)
    assert reproduce(items, ["one"], tmp_path, quick, console=quiet())
    assert reproduce(items, ["one"], tmp_path, Settings(), console=quiet())
    with pytest.raises(ValueError, match=r"^out holds full runs of one.*--out quick"):
        reproduce(items, ["one"], tmp_path, quick, fresh=True, console=quiet())
    assert count.calls == 2


def test_page_names_settings_and_versions(tmp_path):
    reproduce([item("one", Counter())], ["one"], tmp_path, Settings(seed=3), console=quiet())
    text = (tmp_path / "reproduction.md").read_text()
    for words in (
        "## The one",
        "![The one](reproduction/one.png)",
        "The value is 42.",
        "seed 3",
        "jax ",
        "[The one](#the-one)",
    ):
        assert words in text, words


def test_an_interruption_keeps_what_is_finished(tmp_path):
    done, cut, never = Counter(), Counter(KeyboardInterrupt()), Counter()
    items = [item("one", done), item("two", cut), item("three", never)]
    console = quiet()
    wanted = ["one", "two", "three"]
    assert not reproduce(items, wanted, tmp_path, Settings(), console=console)
    assert "interrupted" in console.file.getvalue()
    assert never.calls == 0
    text = (tmp_path / "reproduction.md").read_text()
    assert "## The one" in text and "## The two" not in text
    cut.error = None
    assert reproduce(items, wanted, tmp_path, Settings(), console=quiet())
    assert (done.calls, cut.calls, never.calls) == (1, 2, 1)


def test_a_torn_file_is_computed_again(tmp_path):
    count = Counter()
    reproduce([item("one", count)], ["one"], tmp_path, Settings(), console=quiet())
    path = tmp_path / "reproduction" / "one.json"
    path.write_text(path.read_text()[:-30])
    reproduce([item("one", count)], ["one"], tmp_path, Settings(), console=quiet())
    assert count.calls == 2
    assert json.loads(path.read_text())["value"] == 43


def test_numbers_that_are_not_are_refused(tmp_path):
    result = store.Result("one", Settings(), {}, 1.0, [], {"value": float("nan")})
    with pytest.raises(ValueError, match="not JSON compliant"):
        store.save(tmp_path, result)
    assert not list(tmp_path.glob("*.json"))


def test_items_of_the_paper():
    names = [known.name for known in ITEMS]
    assert len(set(names)) == len(names)
    assert "table1" in names


@pytest.mark.slow
def test_ctrl_c_in_a_terminal(tmp_path):
    """A real interrupt of the command: exit status 130, a page, no half-written file."""
    command = [sys.executable, "-m", "schuss.cli", "reproduce", "all", "--out", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    time.sleep(25)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 130, output
    assert (tmp_path / "reproduction.md").exists()
    for path in (tmp_path / "reproduction").glob("*.json"):
        json.loads(path.read_text())
