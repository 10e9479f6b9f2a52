"""Names, checksums and the commit, which both formats of checkpoints have in common."""

import os
import zlib

import pytest

from schuss.checkpoint import CheckpointError, files

PLAIN = ("x", "warmup/x", "c.0.7.0", "β[1, 2]", "checkpoint-0000010/state.safetensors", "a b", "_x")
OTHER = ("", ".", "..", "/x", "x/", "a//b", "../x", "a/../b", "a\\b", "C:x", ".x", "x.", " x", "x ")
MORE = ("a\0", "a\n", "a*", "a?", '"', "<", "|", "\ud800", "x" * 200, 3, None, b"x")


@pytest.mark.parametrize("name", PLAIN)
def test_plain_names(tmp_path, name):
    assert files.plain(name) and files.inside(tmp_path, name) == tmp_path.joinpath(name)


@pytest.mark.parametrize("name", OTHER + MORE, ids=repr)
def test_names_that_are_refused(tmp_path, name):
    assert not files.plain(name)
    with pytest.raises(CheckpointError, match=r"isn't a plain name; restore it"):
        files.inside(tmp_path, name)


def test_links_and_devices_are_refused(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    os.mkfifo(tmp_path / "real" / "pipe")
    for name in ("link", "link/x", "real/pipe"):
        with pytest.raises(CheckpointError, match="is a link or no file"):
            files.inside(tmp_path, name)


def test_a_folder_that_is_a_link_may_be_used(tmp_path):
    (tmp_path / "scratch").mkdir()
    (tmp_path / "run").symlink_to("scratch")
    files.put(tmp_path / "run", "x", b"1", partial="partial")
    assert (tmp_path / "scratch" / "x").read_bytes() == b"1"


def test_what_is_half_written_is_no_other_file(tmp_path):
    (tmp_path / "precious").write_bytes(b"precious")
    os.link(tmp_path / "precious", tmp_path / "partial")
    files.put(tmp_path, "x", b"1", partial="partial")
    assert (tmp_path / "precious").read_bytes() == b"precious"


@pytest.mark.parametrize(
    ("one", "other"), [("x", "X"), ("x", "x/y"), ("a/b", "A"), ("é", "e\u0301"), ("ß", "SS")]
)
def test_collisions(one, other):
    assert files.collision(one, ["z", other]) == other
    assert files.collision(other, ["z", one]) == one
    assert files.collision(one, ["xy", "yx", "a/c", "x.y"]) is None


def test_every_changed_bit_is_seen(tmp_path):
    data = bytes(range(40))
    (tmp_path / "x").write_bytes(data)
    total = zlib.crc32(data)
    assert files.read(tmp_path, "x", total) == data
    assert files.verified(tmp_path, "x", total) == tmp_path / "x"
    for bit in range(8 * len(data)):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        (tmp_path / "x").write_bytes(changed)
        for use in (files.read, files.verified):
            with pytest.raises(CheckpointError, match="x is missing or damaged"):
                use(tmp_path, "x", total)
    (tmp_path / "x").unlink()
    for use in (files.read, files.verified):
        with pytest.raises(CheckpointError, match=r"x is missing or damaged .*No such file"):
            use(tmp_path, "x", total)


def commit(root, content, keep=True):
    data = files.sealed(content)
    files.replace_head(root, "head", data, partial="partial", keep=keep)
    return data


def newest(root):
    return files.newest(root, "head", lambda content: content)


def test_the_commit_before_is_used_where_the_last_is_damaged(tmp_path):
    assert not files.has_head(tmp_path, "head")
    with pytest.raises(CheckpointError, match="head is missing or damaged"):
        newest(tmp_path)
    for content in (b"one", b"two", b""):
        data = commit(tmp_path, content)
        assert (tmp_path / "head").read_bytes() == data
        assert newest(tmp_path) == (content, False)
    commit(tmp_path, b"three")
    for position in range(len((tmp_path / "head").read_bytes())):
        before = (tmp_path / "head").read_bytes()
        changed = bytearray(before)
        changed[position] ^= 1
        (tmp_path / "head").write_bytes(changed)
        with pytest.warns(UserWarning, match="head is missing or damaged .*; the commit before"):
            assert newest(tmp_path) == (b"", True)
        (tmp_path / "head").write_bytes(before)
    (tmp_path / "head").unlink()  # a kill between two names
    assert newest(tmp_path) == (b"", False) and files.has_head(tmp_path, "head")
    commit(tmp_path, b"four")
    assert newest(tmp_path) == (b"four", False)
    (tmp_path / "head").write_bytes(b"x")
    files.go_back(tmp_path, "head")
    assert newest(tmp_path) == (b"", False)


def test_the_damaged_file_is_named_where_nothing_is_whole(tmp_path):
    commit(tmp_path, b"one")
    commit(tmp_path, b"two")

    def parse(content):
        raise CheckpointError(f"{content.decode()} is damaged")

    with pytest.raises(CheckpointError, match="two is damaged"):
        files.newest(tmp_path, "head", parse)
