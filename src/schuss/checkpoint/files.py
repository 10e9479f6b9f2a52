"""The files of a run's folder: their names, their checksums, and the commit.

A commit consists of a head, which lists other files with their CRC-32, and of these files. It is
made when the head is replaced. The head carries a CRC-32 of its own, and the one before stays
beside it: where a file of the last commit is damaged, the commit before may still be whole.
"""

import os
import re
import stat
import unicodedata
import warnings
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from schuss.checkpoint.disk import sync, write
from schuss.checkpoint.errors import CheckpointError

BEFORE = ".before"
"""Ending of the head's predecessor."""

# Letters, digits and marks that no file system gives a meaning.
PLAIN = re.compile(r"[\w\[\](),.+= -]+")
REMEDY = "restore it from a copy, or delete the folder to begin again"


def plain(name: Any) -> bool:
    """Whether a name, its parts parted by slashes, stays inside any folder on any file system."""
    return isinstance(name, str) and all(map(_plain_part, name.split("/")))


def _plain_part(part: str) -> bool:
    return (
        PLAIN.fullmatch(part) is not None
        and not part.startswith((".", " "))
        and not part.endswith((".", " "))
        and len(part.encode()) < 200
    )


def collision(name: str, others: Iterable[str]) -> str | None:
    """One of `others` that contains `name`, is in it, or that some file systems take for it."""
    mine = _folded(name)
    for other in others:
        theirs = _folded(other)
        if f"{mine}/".startswith(f"{theirs}/") or f"{theirs}/".startswith(f"{mine}/"):
            return other
    return None


def _folded(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold()


def inside(root: Path, name: str) -> Path:
    """The path of a name in the folder `root`; refused where it, or a link, leads out of it."""
    if not plain(name):
        raise CheckpointError(f"{root} names a file {name!r}, which isn't a plain name; {REMEDY}")
    path = root
    for part in name.split("/"):
        path = path / part
        try:
            mode = path.lstat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            continue
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise CheckpointError(f"{path} is a link or no file; replace it by the file itself")
    return path


def put(
    root: Path, name: str, data: bytes | memoryview, *, partial: str, wait: bool = True
) -> None:
    """Replace a file as a whole, written first under the name `partial`."""
    write(inside(root, name), data, inside(root, partial), wait=wait)


def read(root: Path, name: str, checksum: int) -> bytes:
    """The bytes of a file that a commit lists."""
    path = inside(root, name)
    data = _bytes(path)
    _same(path, zlib.crc32(data), checksum)
    return data


def verified(root: Path, name: str, checksum: int) -> Path:
    """The path of a file that a commit lists, when its bytes are those of the commit."""
    path = inside(root, name)
    try:
        found = summed(path)
    except OSError as error:
        raise _damaged(path, error) from None
    _same(path, found, checksum)
    return path


def check_length(root: Path, name: str, length: int) -> None:
    """Refuse a file that isn't `length` bytes long."""
    path = inside(root, name)
    try:
        found = path.stat().st_size
    except OSError as error:
        raise _damaged(path, error) from None
    if found != length:
        raise _damaged(path, f"it has {found} bytes, not {length}")


def summed(path: Path) -> int:
    """CRC-32 of a file, which needn't fit into memory."""
    total = 0
    with open(path, "rb") as file:
        while block := file.read(2**20):
            total = zlib.crc32(block, total)
    return total


def sealed(content: bytes) -> bytes:
    """The bytes of a head: its content behind its own checksum."""
    return b"crc32 %08x\n" % zlib.crc32(content) + content


def replace_head(root: Path, name: str, data: bytes, *, partial: str, keep: bool) -> None:
    """Make a commit of a sealed head. With `keep` the present head becomes the one before."""
    path, before = inside(root, name), inside(root, name + BEFORE) if keep else None
    write(path, data, inside(root, partial), before=before)
    sync(path.parent)


def content(root: Path, name: str) -> bytes:
    """The content of a head, when its bytes are those that were written."""
    path = inside(root, name)
    data = _bytes(path)
    found = data.partition(b"\n")[2]
    _same(path, sealed(found), data)
    return found


def go_back(root: Path, name: str) -> None:
    """Drop the last commit for good, by whoever has the folder's lock."""
    os.replace(inside(root, name + BEFORE), root / name)


def has_head(root: Path, name: str) -> bool:
    """Whether there was a commit."""
    return any((root / head).exists() for head in (name, name + BEFORE))


def newest(root: Path, name: str, parse: Callable[[bytes], Any]) -> tuple[Any, bool]:
    """What `parse` makes of the newest whole commit, and whether a damaged one came after it.

    `parse` takes the content of a head and raises CheckpointError where a file is damaged. A head
    is missing, its predecessor being there, after a kill in the middle of a commit.
    """
    try:
        return parse(content(root, name)), False
    except CheckpointError as error:
        problem = error
    try:
        found = parse(content(root, name + BEFORE))
    except CheckpointError:
        raise problem from None
    damaged = (root / name).exists()
    if damaged:
        what = str(problem).removesuffix(f"; {REMEDY}")
        warnings.warn(f"{what}; the commit before it is whole and is used", stacklevel=2)
    return found, damaged


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise _damaged(path, error) from None


def _same(path: Path, found: Any, wanted: Any) -> None:
    if found != wanted:
        raise _damaged(path, "its bytes aren't those that were written")


def _damaged(path: Path, problem: Any) -> CheckpointError:
    return CheckpointError(f"{path} is missing or damaged ({problem}); {REMEDY}")
