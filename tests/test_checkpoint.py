"""A checkpoint is killed, filled up, shared, damaged, and read by zarr."""

import contextlib
import errno
import io
import itertools
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from schuss import checkpoint as module
from schuss.checkpoint import Checkpoint, CheckpointError, chunks, files, fingerprint, spec

IDENTITY = {"model": "abc", "settings": {"step_size": 0.1, "chains": 3}, "version": "1"}


def window(number):
    """Rows of window `number`, all of whose values tell where they belong; 1 to 7 of them."""
    rows = 1 + number * 5 % 7
    first = sum(1 + n * 5 % 7 for n in range(number))
    index = np.arange(first, first + rows)
    x = index[None, :, None] + np.arange(3)[:, None, None] / 8 + np.arange(2) / 32
    return {"x": x, "odd": np.broadcast_to(index % 2 == 1, (3, rows)), "number": index}


def state(number):
    return {"windows": number, "z": np.full((3, 2), number, np.float32)}


def whole(windows):
    """All rows of the first windows, put together without a checkpoint."""
    parts = [window(number) for number in range(windows)]
    return {
        name: np.concatenate([part[name] for part in parts], axis=0 if name == "number" else 1)
        for name in ("x", "odd", "number")
    }


def some(shape, dtype):
    return (
        np.random.default_rng(0).integers(2 if dtype == "bool" else 100, size=shape).astype(dtype)
    )


def run(path, windows, chunk_rows=5):
    """Go on from wherever the checkpoint is, up to a number of windows."""
    spec.CHUNK_ROWS = chunk_rows
    with Checkpoint.open(path, IDENTITY) as checkpoint:
        found = checkpoint.load()
        first = found[0]["windows"] if found else 0
        for number in itertools.islice(itertools.count(first), windows):
            checkpoint.commit(state(number + 1), window(number))


def check(path, least=0):
    """What is there is a run of whole windows, `least` at least; returns how many."""
    with Checkpoint.open(path, IDENTITY) as checkpoint:
        found = checkpoint.load()
        if found is None:
            assert least == 0
            return 0
        restored, rows = found
        windows = restored["windows"]
        assert windows == checkpoint.commits >= least
        np.testing.assert_array_equal(restored["z"], state(windows)["z"])
        for name, values in whole(windows).items():
            np.testing.assert_array_equal(rows[name], values, err_msg=name)
        return windows


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """Chunks of five rows, which windows of one to seven fill, overflow and leave half full."""
    monkeypatch.setattr(spec, "CHUNK_ROWS", 5)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.zarr"


@pytest.fixture
def no_waiting(monkeypatch):
    """Files that needn't outlive a power cut."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)


def refused(path, identity=IDENTITY):
    with pytest.raises((ValueError, CheckpointError)) as caught:
        Checkpoint.open(path, identity)
    return str(caught.value)


def test_a_new_one_is_empty_and_a_reopened_one_goes_on(path):
    with Checkpoint.open(path, IDENTITY) as checkpoint:
        assert checkpoint.load() is None
    for total in (1, 2, 3, 13, 14):
        run(path, total - check(path))
        assert check(path) == total


KEYS = (
    np.s_[:],
    np.s_[1],
    np.s_[..., 0],
    np.s_[-1, -1],
    np.s_[:, 3:11],
    np.s_[:, 17:2:-4, 1],
    np.s_[2:2, 2:2],
    np.s_[[0, 2]],
)


@pytest.mark.parametrize("axis", [0, 1])
def test_rows_come_back_as_they_were(path, axis):
    expected = {dtype: some((3, 21, 2) if axis else (21, 3, 2), dtype) for dtype in module.DTYPES}
    along_first = [] if axis else module.DTYPES
    with Checkpoint.open(path, IDENTITY, along_first=along_first) as checkpoint:
        for begin, end in itertools.pairwise([0, 0, 3, 8, 9, 21]):
            part = np.s_[:, begin:end] if axis else np.s_[begin:end]
            checkpoint.commit({}, {name: values[part] for name, values in expected.items()})
    with Checkpoint.open(path, IDENTITY) as checkpoint:
        rows = checkpoint.load()[1]
        for name, values in expected.items():
            lazy = checkpoint.rows(name)
            assert rows[name].dtype == lazy.dtype == values.dtype
            assert lazy.shape == values.shape and len(lazy) == len(values)
            np.testing.assert_array_equal(rows[name], values)
            for key in KEYS:
                np.testing.assert_array_equal(lazy[key], values[key], err_msg=str(key))


def test_lazy_rows_read_only_the_chunks_they_are_in(path, monkeypatch):
    read = []
    original = chunks.read_chunk
    monkeypatch.setattr(
        "schuss.checkpoint.rows.read_chunk", lambda *args: read.append(args[2]) or original(*args)
    )
    with Checkpoint.open(path, IDENTITY) as checkpoint:
        checkpoint.commit({}, {"x": np.zeros((3, 100, 2))})
        assert checkpoint.rows("x")[:, 12:22].shape == (3, 10, 2)
        assert read == [2, 3, 4]
        with pytest.raises(KeyError, match="'y'; there are: x"):
            checkpoint.rows("y")


def test_the_state_comes_back_as_it_was(path):
    rng = np.random.default_rng(0)
    arrays = {
        "file": rng.standard_normal((3, 2)),
        "fortran": np.asfortranarray(rng.standard_normal((4, 5)).astype(np.float32)),
        "flags": np.array([True, False]),
        "key": np.array([2**63, 7], np.uint64),
        "zero-d": np.array(1.5),
        "a/b": np.zeros((0, 3)),
        "text": np.array(["ab", "β"]),
    }
    values = {
        "n": 3,
        "eps": 0.1,
        "inf": float("inf"),
        "none": None,
        "big": 2**100,
        "list": [1, "b"],
    }
    with Checkpoint.open(path, IDENTITY) as checkpoint:
        checkpoint.commit(arrays | values | {"scalar": np.float32(0.1)}, {})
        restored, rows = checkpoint.load()
    assert rows == {}
    assert {name: restored[name] for name in values} == values
    assert restored["scalar"].dtype == np.float32 and restored["scalar"] == np.float32(0.1)
    for name, array in arrays.items():
        assert restored[name].dtype == array.dtype
        np.testing.assert_array_equal(restored[name], array)


def test_dropped_rows_are_gone_with_the_next_commit_and_not_before(path):
    kept = whole(9)
    with Checkpoint.open(path, IDENTITY) as checkpoint:
        checkpoint.commit(state(9), kept)
        before = len(list((path / "x").glob("c.*")))
        checkpoint.truncate("x", 12)
        checkpoint.truncate("odd", 0)
        np.testing.assert_array_equal(checkpoint.load()[1]["x"], kept["x"])
        checkpoint.commit(state(10), {"x": window(9)["x"]})
        rows = checkpoint.load()[1]
        np.testing.assert_array_equal(rows["x"], whole(10)["x"][:, 12:])
        np.testing.assert_array_equal(rows["odd"], kept["odd"])
        assert len(list((path / "x").glob("c.*"))) < before + 1
        np.testing.assert_array_equal(checkpoint.rows("x")[:, 1:3], whole(10)["x"][:, 13:15])
        for bad in (-1, rows["x"].shape[1] + 1):
            with pytest.raises(ValueError, match="keep_from must be between 0 and"):
                checkpoint.truncate("x", bad)
        checkpoint.truncate("x", rows["x"].shape[1])
        checkpoint.commit(state(11), {"x": window(10)["x"]})
    with Checkpoint.open(path, IDENTITY) as checkpoint:
        np.testing.assert_array_equal(checkpoint.load()[1]["x"], window(10)["x"])


class Crash(BaseException):
    """The end of the process, as far as the code under test can tell."""


def fail_at(monkeypatch, moment, error):
    """Raise `error` at the moment-th operation on a file; returns a list of those made."""
    made = []

    def failing(operation):
        def call(*args, **kwargs):
            made.append(operation)
            if len(made) > moment:
                raise error
            return operation(*args, **kwargs)

        return call

    for name in ("replace", "fsync", "unlink", "open"):
        monkeypatch.setattr(os, name, failing(getattr(os, name)))
    return made


FULL_DISK = OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("error", [Crash(), FULL_DISK], ids=["crash", "full disk"])
def test_every_moment_of_a_commit(path, tmp_path, no_waiting, monkeypatch, error):
    """Failing at the first, second, … operation of a commit leaves all of it or none of it.

    The commit takes 29 rows to 35: it fills one chunk, and another.
    """
    run(path, 8)
    results = []
    for moment in itertools.count():
        copy = tmp_path / f"copy{moment}.zarr"
        shutil.copytree(path, copy)
        with Checkpoint.open(copy, IDENTITY) as checkpoint, monkeypatch.context() as patch:
            # Rows are dropped in the same commit: those dropped are needed until it is made.
            checkpoint.truncate("x", checkpoint.rows("x").shape[1])
            made = fail_at(patch, moment, error)
            try:
                checkpoint.commit(state(9), window(8))
            except (Crash, CheckpointError) as failure:
                results.append(failure)
                patch.undo()
                draws = checkpoint.rows("odd").shape[1]
                assert draws == checkpoint.load()[1]["odd"].shape[1]
                assert isinstance(failure, Crash) or f" {draws} draws are safe" in str(failure)
            else:
                results.append(None)
        with Checkpoint.open(copy, IDENTITY) as checkpoint:
            restored, rows = checkpoint.load()
            expected = whole(restored["windows"])
            if restored["windows"] == 9:
                expected["x"] = window(8)["x"]
            for name, values in expected.items():
                np.testing.assert_array_equal(rows[name], values, err_msg=f"{name} at {moment}")
            assert restored["windows"] == checkpoint.commits
            if results[-1] is None:
                assert restored["windows"] == 9
            if len(made) <= moment:
                break
    assert results.count(None) < len(results) and len(results) > 10


def test_a_full_disk_says_what_is_safe_and_the_commit_can_be_made_again(path, monkeypatch):
    run(path, 3)
    safe = whole(3)["x"].shape[1]
    with Checkpoint.open(path, IDENTITY) as checkpoint:
        with monkeypatch.context() as patch:
            fail_at(patch, 1, FULL_DISK)
            with pytest.raises(
                CheckpointError, match=f"{safe} draws are safe in run.zarr"
            ) as caught:
                checkpoint.commit(state(4), window(3))
        assert caught.value.errno == errno.ENOSPC and "make room" in str(caught.value)
        assert checkpoint.load()[0]["windows"] == 3
        checkpoint.commit(state(4), window(3))
    assert check(path) == 4


FILL_UP = """
import sys
sys.path.insert(0, sys.argv[1])
from test_checkpoint import check, run
try:
    run(sys.argv[2], 10**6)
except OSError as error:
    print(type(error).__name__, error)
print(check(sys.argv[2]), "windows")
"""


def test_a_disk_that_is_really_full(tmp_path):
    """A file system of 300 kB, which the run fills."""
    script = [sys.executable, "-W", "ignore", "-c", FILL_UP, os.path.dirname(__file__)]
    mount = f'mount -t tmpfs -o size=300k none {tmp_path} && exec "$@"'
    unshare = ["unshare", "-rm", "sh", "-c", mount, "sh"]
    if shutil.which("unshare") is None or subprocess.run([*unshare, "true"]).returncode:
        pytest.skip("no small file system can be made here")
    done = subprocess.run(
        [*unshare, *script, str(tmp_path / "run.zarr")], capture_output=True, text=True, timeout=120
    )
    assert "CheckpointError" in done.stdout and "draws are safe in run.zarr" in done.stdout, done
    windows = int(done.stdout.splitlines()[-1].split()[0])
    draws = whole(windows)["x"].shape[1]
    assert windows > 10 and f"{draws} draws are safe" in done.stdout


COMMITTING = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("schuss.checkpoint", sys.argv[1])
module = sys.modules["schuss.checkpoint"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
package = sys.modules["schuss"] = type(sys)("schuss")
package.checkpoint = module
sys.path.insert(0, sys.argv[2])
from test_checkpoint import run
print("started", flush=True)
run(sys.argv[3], 10**6)
"""


def killed(path, kills):
    """Kill a process that commits, over and over, on one path; returns the windows after each."""
    rng = np.random.default_rng(0)
    arguments = [module.__file__, os.path.dirname(__file__), str(path)]
    windows = [0]
    for _ in range(kills):
        process = subprocess.Popen(
            [sys.executable, "-c", COMMITTING, *arguments], stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(rng.uniform(0, 0.15))
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        process.stdout.close()
        windows.append(check(path, least=windows[-1]))
    return windows


def test_killed_at_any_moment(path):
    assert killed(path, 5)[-1] > 0


@pytest.mark.slow
def test_killed_at_fifty_moments(path):
    windows = killed(path, 50)
    assert len(set(windows)) > 20


def test_another_identity_is_refused_field_by_field(path):
    run(path, 1)
    other = {"model": "xyz", "settings": {"step_size": 0.2, "chains": 3}, "draws": 5}
    message = refused(path, other)
    for part in (
        'model was "abc" and is now "xyz"',
        "settings.step_size was 0.1 and is now 0.2",
        'version was "1" and is now absent',
        "draws was absent and is now 5",
        "pass another path, or delete it",
    ):
        assert part in message
    assert "chains" not in message
    assert check(path) == 1
    with pytest.raises(TypeError, match="identity must hold what JSON can"):
        Checkpoint.open(path, {"seed": np.int64(3)})


def test_one_process_at_a_time(path):
    with Checkpoint.open(path, IDENTITY):
        assert f"in use by process {os.getpid()}" in refused(path)
    first = Checkpoint.open(path, IDENTITY)
    first.close()
    with pytest.raises(ValueError, match="closed"):
        first.commit({}, {})
    forgotten = Checkpoint.open(path, IDENTITY)
    del forgotten
    Checkpoint.open(path, IDENTITY).close()


def test_what_is_not_a_checkpoint_is_left_alone(tmp_path):
    (tmp_path / "file").write_text("precious")
    for name, inside in {"folder": "thesis.tex", "group": "zarr.json"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / inside).write_text('{"zarr_format": 3, "node_type": "group"}')
    (tmp_path / "mine" / "checkpoint").mkdir(parents=True)
    (tmp_path / "mine" / "checkpoint" / "weights.pt").write_text("precious")
    before = sorted((str(p), p.is_file() and p.read_text()) for p in tmp_path.rglob("*"))
    for name in ("file", "folder", "group", "mine"):
        assert "exists and isn't a checkpoint; pass another, or delete it" in refused(
            tmp_path / name
        )
    assert before == sorted((str(p), p.is_file() and p.read_text()) for p in tmp_path.rglob("*"))
    # Killed while it was made: nothing is in it but our own lock.
    (tmp_path / "begun" / "checkpoint").mkdir(parents=True)
    (tmp_path / "begun" / "checkpoint" / "lock").touch()
    run(tmp_path / "begun", 1)
    assert check(tmp_path / "begun") == 1


def test_another_format_is_refused(path):
    run(path, 1)
    root = json.loads((path / "zarr.json").read_text())
    root["attributes"]["schuss_checkpoint"] = 99
    (path / "zarr.json").write_text(json.dumps(root))
    assert "format 99" in refused(path)


RECORD, BEFORE = "checkpoint/commit.zip", "checkpoint/commit.zip.before"


def flip(file, position=None):
    """Change one bit in a file."""
    data = bytearray(file.read_bytes())
    data[len(data) // 2 if position is None else position] ^= 4
    file.write_bytes(data)


def check_gone_back(path, windows, file):
    """The commit before the last is used, which a warning says, and the run goes on from there."""
    with pytest.warns(UserWarning, match=f"{file} is missing or damaged .* the commit before"):
        assert check(path) == windows
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run(path, 1)
    assert check(path) == windows + 1


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99])
def test_a_truncated_record_is_not_used(path, share):
    run(path, 3)
    for name in (RECORD, BEFORE):
        data = (path / name).read_bytes()
        (path / name).write_bytes(data[: int(share * len(data))])
        if name == RECORD:
            shutil.copytree(path, path.with_name("copy"))
            check_gone_back(path.with_name("copy"), 2, "commit.zip")
    assert "commit.zip is missing or damaged" in refused(path) and "delete" in refused(path)


def test_a_changed_byte_in_the_state_is_not_used(path):
    run(path, 3)
    seek = np.full((3, 2), 3, np.float32).tobytes()
    flip(path / RECORD, (path / RECORD).read_bytes().index(seek))
    check_gone_back(path, 2, "commit.zip")


def test_a_lost_record_is_an_error_beside_rows_and_in_a_kill_between_two_names_is_none(path):
    run(path, 5)
    (path / RECORD).unlink()
    assert check(path) == 4
    (path / BEFORE).unlink()
    (path / "checkpoint" / "partial").touch()
    assert "commit.zip is missing beside its rows" in refused(path)


def test_a_lost_or_damaged_group_is_an_error(path):
    run(path, 3)
    group = path / "zarr.json"
    flip(group, group.read_bytes().index(b"abc"))
    assert "zarr.json is damaged" in refused(path)
    group.unlink()
    assert "zarr.json is missing or damaged" in refused(path)


@pytest.mark.parametrize("damage", ["missing", "truncated", "flipped"])
def test_a_lost_chunk_is_an_error(path, damage):
    run(path, 5)
    chunk = path / "x" / "c.0.1.0"
    data = chunk.read_bytes()
    if damage == "missing":
        chunk.unlink()
    elif damage == "truncated":
        chunk.write_bytes(data[:-1])
    else:
        flip(chunk)
    with Checkpoint.open(path, IDENTITY) as checkpoint:
        with pytest.raises(CheckpointError, match=r"c.0.1.0 is missing or damaged .* restore"):
            checkpoint.load()
        assert checkpoint.rows("x")[:, :5].shape == (3, 5, 2)


def test_a_flipped_bit_in_a_full_chunk_is_seen(path, no_waiting):
    """In chunks of the last commit alone the run goes back, in those before it is refused."""
    run(path, 9)
    newest, older = [], []
    for name, rows in whole(9).items():
        axis = 0 if name == "number" else 1
        before = whole(8)[name].shape[axis] // 5
        for file in sorted((path / name).glob("c.*")):
            index = int(file.name.split(".")[1 + axis])
            (newest if index >= before else older).append(file)
        assert rows.shape[axis] == 5 * len(list((path / name).glob("c.*")))
    assert (len(newest), len(older)) == (6, 15)
    for number, file in enumerate([*newest, *older]):
        copy = path.with_name(f"copy{number}")
        shutil.copytree(path, copy)
        flip(copy / file.relative_to(path), number % 5)
        if file in newest:
            check_gone_back(copy, 8, file.name)
        else:
            with pytest.raises(CheckpointError, match=f"{file.name} is missing or damaged"):
                check(copy)


def forge(path, member, change):
    """Change a part of the record as its author might, its checksums being right."""
    _, _, content = (path / RECORD).read_bytes().partition(b"\n")
    with zipfile.ZipFile(io.BytesIO(content)) as packed:
        parts = {name: packed.read(name) for name in packed.namelist()}
    parts[member] = change(parts[member])
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as packed:
        for name, data in parts.items():
            packed.writestr(name, data)
    (path / RECORD).write_bytes(files.sealed(buffer.getvalue()))


class Payload:
    def __reduce__(self):
        return os.mkdir, ("executed",)


def test_a_pickle_is_neither_written_nor_read(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    trap = np.array([Payload()], object)
    with Checkpoint.open(path, IDENTITY) as checkpoint:
        checkpoint.commit(state(1), {})
        for name, given in {"z": trap, "fields": np.zeros(2, [("a", "f4")])}.items():
            with pytest.raises(TypeError, match=f"state\\['{name}'\\] must be an array of numbers"):
                checkpoint.commit({name: given}, {})
        with pytest.raises(TypeError, match=r"state\['z'\] must hold what JSON can"):
            checkpoint.commit({"z": Payload()}, {})
        with pytest.raises(TypeError, match=r"rows\['x'\] must be of one of bool"):
            checkpoint.commit({}, {"x": trap})
    pickled = io.BytesIO()
    np.lib.format.write_array(pickled, trap, allow_pickle=True)
    forge(path, "state/0.npy", lambda _: pickled.getvalue())
    assert "Object arrays cannot be loaded" in refused(path)
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"x": np.zeros((4, 1, 2))},
            r"rows\['x'\] must be of shape \(3, rows, 2\) and dtype float64",
        ),
        ({"x": np.zeros((3, 1, 2), np.float32)}, r"got \(3, 1, 2\) and float32"),
        ({"x": np.zeros(3)}, r"must be of shape \(3, rows, 2\)"),
        ({"y": np.zeros(())}, r"rows\['y'\] must have an axis of rows"),
        ({"y": np.zeros((0, 4))}, r"rows\['y'\] must not have empty rows"),
        ({"y": np.zeros(3, np.longdouble)}, r"rows\['y'\] must be of one of"),
        ({"../y": np.zeros(3)}, "rows can't be called"),
        ({"/y": np.zeros(3)}, "rows can't be called"),
        ({"checkpoint": np.zeros(3)}, "rows can't be called"),
        ({"x/y": np.zeros(3)}, "rows can't be called 'x/y' beside 'x'"),
    ],
)
def test_bad_rows_are_refused_before_anything_is_written(path, given, message):
    run(path, 2)
    with (
        Checkpoint.open(path, IDENTITY) as checkpoint,
        pytest.raises((TypeError, ValueError), match=message),
    ):
        checkpoint.commit(state(3), window(2) | given)
    assert check(path) == 2


def test_zarr_sees_what_is_committed(path):
    zarr = pytest.importorskip("zarr", minversion="3")
    run(path, 9)
    expected = whole(9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        group = zarr.open_group(path, mode="r")
        assert set(group.array_keys()) == {"x", "odd", "number"}
        for name, values in expected.items():
            assert group[name].dtype == values.dtype
            np.testing.assert_array_equal(group[name][:], values)
    assert group["x"].metadata.dimension_names == ("chain", "draw", "x_dim_0")
    with Checkpoint.open(path, IDENTITY) as checkpoint:
        checkpoint.truncate("x", 7)
        checkpoint.commit(state(10), window(9))
    group = zarr.open_group(path, mode="r")
    first = group["x"].attrs["first_row"]
    assert first == 7
    np.testing.assert_array_equal(group["x"][:, first:], whole(10)["x"][:, first:])


def test_zarr_reads_every_dtype(path):
    zarr = pytest.importorskip("zarr", minversion="3")
    expected = {dtype: some((3, 7, 2), dtype) for dtype in module.DTYPES}
    with Checkpoint.open(path, IDENTITY) as checkpoint:
        checkpoint.commit({}, expected)
    group = zarr.open_group(path, mode="r")
    for name, values in expected.items():
        assert group[name].dtype == values.dtype
        np.testing.assert_array_equal(group[name][:], values)


def test_xarray_opens_each_group(path):
    pytest.importorskip("zarr", minversion="3")
    xarray = pytest.importorskip("xarray")
    x, energy = np.random.default_rng(0).standard_normal((2, 3, 12))
    with Checkpoint.open(path, IDENTITY, along_first=["sizes"]) as checkpoint:
        checkpoint.commit({}, {"warmup/x": x[:, :4], "draws/x": x, "draws/energy": energy})
        checkpoint.commit({}, {"draws/x": x, "draws/energy": energy, "sizes": np.ones((2, 5))})
    draws = xarray.open_zarr(path, group="draws", consolidated=False)
    assert dict(draws.sizes) == {"chain": 3, "draw": 24}
    np.testing.assert_array_equal(draws["energy"], np.tile(energy, 2))
    warmup = xarray.open_zarr(path, group="warmup", consolidated=False)
    np.testing.assert_array_equal(warmup["x"], x[:, :4])
    assert dict(xarray.open_zarr(path, consolidated=False).sizes) == {
        "sizes_row": 2,
        "sizes_dim_0": 5,
    }


ELSEWHERE = ("../victim", "x/../../victim", "/tmp/victim", "", ".", "..", "a//b", "x\\..\\v", "c:v")
RESERVED = ("zarr.json", "x/zarr.json", "X/ZARR.JSON", "checkpoint", "Checkpoint/x", "__x", ".x")
OTHERS = ("x ", "x.", "x\0", "x\n", "a" * 300, "\ud800", "con:", "*", 7, None)


@pytest.mark.parametrize("name", [*ELSEWHERE, *RESERVED, *OTHERS], ids=repr)
def test_a_name_from_a_file_is_checked(path, name, no_waiting):
    """Also where whoever wrote it knew how to write checksums."""
    run(path, 2)
    victim = path.with_name("victim")
    victim.mkdir()
    (victim / "c.9.9.9").write_text("precious")
    (victim / "zarr.json").write_text("precious")
    (path / BEFORE).unlink()

    def change(data):
        listed = json.loads(data)
        return json.dumps(listed | {"rows": {str(name): listed["rows"]["x"]}}).encode()

    before = snapshot(path.parent)
    forge(path, "record.json", change)
    if name not in (7, None):  # which are names like any others, of rows that aren't there
        assert re.search("can't be called|is a link", refused(path))
    assert snapshot(path.parent).items() >= {k: before[k] for k in before if "victim" in k}.items()


def test_names_that_some_file_systems_take_for_the_same_are_refused(path):
    with Checkpoint.open(path, IDENTITY) as checkpoint:
        checkpoint.commit({}, {"x": np.zeros((3, 1))})
        for name in ("X", "x", "X/y", "\uff58"):
            if name != "x":
                with pytest.raises(ValueError, match="beside 'x'"):
                    checkpoint.commit({}, {name: np.zeros((3, 1))})


@pytest.mark.parametrize("name", ["x", "x/c.0.0.0", "checkpoint", "checkpoint/lock", RECORD])
def test_a_link_in_the_folder_is_refused(path, name):
    run(path, 3)
    (path / BEFORE).unlink()
    moved = path.with_name("elsewhere")
    (path / name).rename(moved)
    (path / name).symlink_to(moved)
    before = snapshot(moved)
    with pytest.raises(CheckpointError, match=f"{name} is a link"):
        check(path)
    assert snapshot(moved) == before


@pytest.mark.parametrize(
    "change",
    [
        {"axis": 2},
        {"axis": -1},
        {"start": -1},
        {"start": 100},
        {"end": 2**62},
        {"end": 10.0},
        {"chunk": 0},
        {"chunk": -5},
        {"chunk": 2**40},
        {"row": [3, -2]},
        {"row": [2**40, 2**40]},
        {"row": [3, 0]},
        {"row": [True, 2]},
        {"dtype": "|O"},
        {"dtype": ">f8"},
        {"dtype": "float64"},
        {"dtype": "<f4"},
        {"dtype": "<U8"},
        {"more": 1},
    ],
    ids=str,
)
def test_a_description_from_a_file_is_checked(path, change, no_waiting):
    run(path, 2)
    (path / BEFORE).unlink()

    def changed(data):
        listed = json.loads(data)
        listed["rows"]["x"] |= change
        return json.dumps(listed).encode()

    forge(path, "record.json", changed)
    assert "commit.zip is damaged or isn't a record" in refused(path)


def snapshot(folder):
    return {str(p): p.read_bytes() if p.is_file() else b"" for p in folder.rglob("*")}


# Many damaged and forged checkpoints.

NAMES = (*ELSEWHERE[:6], *RESERVED[:4], "n\0", "X", "ok")
NUMBERS = (
    -1,
    0,
    1,
    3,
    7,
    2**31,
    2**63,
    2**70,
    1e300,
    math.nan,
    True,
    None,
    "9",
    [],
    {},
    "|O",
    "<f4",
)
LISTED = ("commits", "about", "values", "arrays", "rows", "fresh")
FILES = st.integers(0, 10**6)
MUTATIONS = st.one_of(
    st.tuples(st.just("flip"), FILES, st.integers(0, 10**6), st.integers(0, 7)),
    st.tuples(st.just("cut"), FILES, st.floats(0, 1)),
    st.tuples(st.just("grow"), FILES, st.binary(min_size=1, max_size=20)),
    st.tuples(st.just("overwrite"), FILES, st.binary(max_size=60)),
    st.tuples(st.sampled_from(["delete", "link", "folder"]), FILES),
    st.tuples(st.just("swap"), FILES, FILES),
    st.tuples(st.just("remove"), st.sampled_from(["x", "odd", "deep", "deep/y", "checkpoint"])),
    st.tuples(st.just("name"), st.sampled_from(NAMES)),
    st.tuples(st.just("spec"), st.sampled_from(spec.Spec._fields), st.sampled_from(NUMBERS)),
    st.tuples(st.just("listed"), st.sampled_from(LISTED), st.sampled_from(NUMBERS)),
    st.tuples(st.just("member"), st.integers(0, 20), st.binary(max_size=200)),
    st.tuples(st.just("about"), st.sampled_from([*NUMBERS[:3], "9", [], {}, None])),
)
FORGED = ("name", "spec", "listed", "member", "about")


def mutate(path, kind, *given):
    """One kind of damage, or of forgery with right checksums."""
    there = sorted(p for p in path.rglob("*") if p.is_file() and not p.is_symlink())
    if kind in FORGED:
        if not (path / RECORD).is_file():
            return None
        return forge_any(path, kind, *given)
    if kind == "remove":
        return shutil.rmtree(path / given[0], ignore_errors=True)
    file = there[given[0] % len(there)]
    data = file.read_bytes()
    if kind == "flip" and data:
        flipped = bytearray(data)
        flipped[given[1] % len(data)] ^= 1 << given[2]
        file.write_bytes(flipped)
    elif kind == "cut":
        file.write_bytes(data[: int(given[1] * len(data))])
    elif kind in ("grow", "overwrite"):
        file.write_bytes((data if kind == "grow" else b"") + given[1])
    elif kind == "swap":
        other = there[given[1] % len(there)]
        file.write_bytes(other.read_bytes())
        other.write_bytes(data)
    elif kind in ("delete", "link", "folder"):
        file.unlink()
        if kind == "link":
            file.symlink_to(path.with_name("victim") / "zarr.json")
        elif kind == "folder":
            file.mkdir()
    return None


def forge_any(path, kind, *given):
    if kind == "about":
        group = path / "zarr.json"
        text = json.dumps({"attributes": {"schuss_checkpoint": 7, "identity": given[0]}}).encode()
        if group.is_file():
            group.write_bytes(text)
        kind, given = "listed", ("about", zlib.crc32(text))

    def change(data):
        listed = json.loads(data)
        if kind == "name":
            listed["rows"][given[0]] = listed["rows"].pop("x")
        elif kind == "spec":
            listed["rows"]["x"][given[0]] = given[1]
        else:
            listed[given[0]] = given[1]
        return json.dumps(listed).encode()

    # A second change of what the first has already spoilt may be impossible.
    with contextlib.suppress(KeyError, TypeError, ValueError, AttributeError, zipfile.BadZipFile):
        if kind == "member":
            names = [
                "record.json",
                *(f"{k}/{i}.npy" for k in ("state", "tail", "crc") for i in range(4)),
            ]
            return forge(path, names[given[0] % len(names)], lambda _: given[1])
        return forge(path, "record.json", change)


def deep_run(path, windows):
    with Checkpoint.open(path, IDENTITY) as checkpoint:
        found = checkpoint.load()
        first = found[0]["windows"] if found else 0
        for number in range(first, first + windows):
            rows = window(number)
            checkpoint.commit(state(number + 1), rows | {"deep/y": rows["x"]})


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    path = tmp_path_factory.mktemp("base") / "run.zarr"
    before, spec.CHUNK_ROWS = spec.CHUNK_ROWS, 5
    deep_run(path, 9)
    spec.CHUNK_ROWS = before
    (path.with_name("victim")).mkdir()
    (path.with_name("victim") / "zarr.json").write_text("precious")
    (path.with_name("victim") / "c.9.9.9").write_text("precious")
    return path.parent


MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None


def check_mutated(base, mutations):
    """Nothing is written elsewhere; what is read is a commit, or an error names the folder."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as name:
        root = shutil.copytree(base, Path(name) / "root")
        path = root / "run.zarr"
        for mutation in mutations:
            mutate(path, *mutation)
        forged = any(mutation[0] in FORGED for mutation in mutations)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                with Checkpoint.open(path, IDENTITY) as checkpoint:
                    found = checkpoint.load()
                if not forged:
                    check_read(found)
                    deep_run(path, 2)
        except CheckpointError as error:
            assert str(path) in str(error) and "; " in str(error)
        except ValueError as error:
            assert forged and "holds another run" in str(error), error
        except (KeyError, TypeError) as error:
            raise AssertionError(mutations) from error
        outside = {k: v for k, v in snapshot(Path(name)).items() if not k.startswith(str(path))}
        wanted = {str(root): b"", str(root / "victim"): b""}
        wanted |= {str(root / "victim" / n): b"precious" for n in ("zarr.json", "c.9.9.9")}
        assert outside == wanted


def check_read(found):
    assert found is not None
    restored, rows = found
    assert restored["windows"] in (8, 9)
    expected = whole(restored["windows"])
    for key, values in (expected | {"deep/y": expected["x"]}).items():
        np.testing.assert_array_equal(rows[key], values, err_msg=key)


QUICKLY = {"deadline": None, "derandomize": True, "database": None, "phases": [Phase.generate]}
SAME = [HealthCheck.function_scoped_fixture]


@settings(max_examples=50, suppress_health_check=SAME, **QUICKLY)
@given(mutations=st.lists(MUTATIONS, min_size=1, max_size=2))
def test_damaged_checkpoints(base, no_waiting, mutations):
    check_mutated(base, mutations)


@pytest.mark.slow
@settings(max_examples=1000, suppress_health_check=SAME, **QUICKLY)
@given(mutations=st.lists(MUTATIONS, min_size=1, max_size=2))
def test_a_thousand_damaged_checkpoints(base, no_waiting, mutations):
    check_mutated(base, mutations)


def test_the_fingerprint_tells_models_apart():
    energies = np.array([1.25, -3.5e7, 2 / 3])
    mark = fingerprint(energies)
    assert len(mark) == 16 and mark == fingerprint(energies.copy())
    assert mark == fingerprint(energies * (1 + 2e-16))
    assert mark != fingerprint(energies * (1 + 1e-8))
    assert mark != fingerprint(energies.astype(np.float32))
    assert mark != fingerprint(energies, dim=2) != fingerprint(energies, dim=3)
    assert fingerprint(np.array([0.0])) == fingerprint(np.array([-0.0]))
    single = np.array([1.25, 2 / 3], np.float32)
    assert fingerprint(single) == fingerprint(single * np.float32(1 + 2e-7))
