"""Checkpoints of plain tensors (safetensors) with JSON beside them: nothing that can run.

    folder/latest                                   the checkpoint to go on from, and checksums
    folder/latest.before                            the one before it, which is kept as well
    folder/checkpoint-0000500/state.safetensors     weights, optimiser, average, history
    folder/checkpoint-0000500/stream-0.safetensors  the buffer of each stream
    folder/weights-0000500.safetensors              weights alone, of the last few checkpoints
    folder/lock                                     locked by the process that trains

A run that is killed while it writes, or whose last checkpoint is damaged, goes on from the one
before.
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

from schuss.checkpoint import files
from schuss.checkpoint.disk import lock, sync
from schuss.checkpoint.errors import CheckpointError, understood
from schuss.whole_file import replacing

FORMAT = 1
HEAD, HEADS = "latest", ("latest", "latest" + files.BEFORE)
STATE = "state.safetensors"
PLACE = re.compile(r"checkpoint-\d{7,}(-again|-anew)?")
WEIGHTS = re.compile(r"weights-\d{7,}\.safetensors")
KEPT_WEIGHTS = 10
LENGTH = ("iterations", "every", "save_every")


class Commit(NamedTuple):
    """What a head says: the folder of its checkpoint, and files with their checksums."""

    place: str
    checksums: dict[str, int]


def begin(folder: pathlib.Path, iteration: int) -> pathlib.Path:
    """The folder of a new checkpoint, which is none that is kept."""
    kept = {commit.place for commit in _commits(folder)}
    names = (f"checkpoint-{iteration:07d}{ending}" for ending in ("", "-again", "-anew"))
    return files.inside(folder, next(name for name in names if name not in kept))


def clear(place: pathlib.Path) -> None:
    """An empty folder, whatever a save that was killed left in it."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)


def finish(
    folder: pathlib.Path, place: pathlib.Path, weights: pathlib.Path | None, known: set[int]
) -> None:
    """Commit a checkpoint and the weights written with it, and forget all but the one before.

    The head's mark is added to `known`.
    """
    before = {} if (last := next(_commits(folder), None)) is None else last.checksums
    checksums = {name: before[name] for name in _weights(folder) if name in before}
    for path in (*sorted(place.iterdir()), *([] if weights is None else [weights])):
        sync(path)
        checksums[path.relative_to(folder).as_posix()] = files.summed(path)
    sync(place)
    listed = {"format": FORMAT, "place": place.name, "checksums": checksums}
    data = files.sealed(json.dumps(listed, indent=1).encode())
    known.add(zlib.crc32(data))
    files.replace_head(folder, HEAD, data, partial=f"{HEAD}.part", keep=True)
    kept = {commit.place for commit in _commits(folder)}
    for other in folder.glob("checkpoint-*"):
        if PLACE.fullmatch(other.name) and other.name not in kept and not other.is_symlink():
            shutil.rmtree(other)
    for name in _weights(folder)[:-KEPT_WEIGHTS]:
        (folder / name).unlink()


@contextlib.contextmanager
def alone(folder: pathlib.Path, known: set[int], damaged: int | None) -> Iterator[None]:
    """Only this process trains in the folder, and goes on from a commit that it knows.

    The commit with the mark `damaged` is dropped for the one before it.
    """
    handle = lock(folder, files.inside(folder, "lock"))
    try:
        check_known(folder, known)
        if damaged is not None and mark(folder) == damaged:
            files.go_back(folder, HEAD)
        yield
    finally:
        os.close(handle)


def check_known(folder: pathlib.Path, known: set[int]) -> None:
    """Refuse a folder with a checkpoint that this run neither wrote nor resumed."""
    if exists(folder) and mark(folder) not in known:
        commit = next(_commits(folder), None)
        raise ValueError(
            f"folder {str(folder)!r} holds {'a checkpoint' if commit is None else commit.place} of "
            "a run that this one doesn't go on from; call resume() to go on from it, or pass a new "
            "folder"
        )


def mark(folder: pathlib.Path) -> int | None:
    """A number that tells the last commit of a folder from others; None where there is none."""
    for name in HEADS:
        with contextlib.suppress(FileNotFoundError):
            return zlib.crc32(files.inside(folder, name).read_bytes())
    return None


def newest(folder: pathlib.Path) -> tuple[pathlib.Path, bool]:
    """The newest whole checkpoint of a folder, and whether a damaged one came after it."""
    if not exists(folder):
        raise ValueError(
            f"folder {str(folder)!r} holds no checkpoint; pass the folder= of a training run that "
            "has saved one"
        )

    def whole(content):
        commit = _commit(folder, content)
        _verify(folder, commit, commit.place)
        return commit.place

    place, damaged = files.newest(folder, HEAD, whole)
    return folder / place, damaged


def latest(folder: str | pathlib.Path) -> pathlib.Path:
    """The newest whole checkpoint of a folder, or the folder itself if it is one."""
    folder = pathlib.Path(folder)
    if (folder / STATE).exists():
        check_listed(folder)
        return folder
    return newest(folder)[0]


def exists(folder: str | pathlib.Path) -> bool:
    """Whether there is a checkpoint to go on from."""
    return files.has_head(pathlib.Path(folder), HEAD)


def check_listed(path: pathlib.Path) -> None:
    """Refuse a file, or a checkpoint, that a commit lists and whose bytes are others."""
    path = path.absolute()
    for commit in _commits(path.parent):
        _verify(path.parent, commit, path.name)


def _verify(folder, commit, name):
    for listed, checksum in commit.checksums.items():
        if f"{listed}/".startswith(f"{name}/"):
            files.verified(folder, listed, checksum)


def _commit(folder, content):
    try:
        listed = json.loads(content)
        place, checksums = listed["place"], listed["checksums"]
        if not PLACE.fullmatch(place) or type(checksums[f"{place}/{STATE}"]) is not int:
            raise ValueError(f"it names {place!r}")
        for name in checksums:
            files.inside(folder, name)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise CheckpointError(
            f"{folder / HEAD} names no checkpoint ({error!r}); {files.REMEDY}"
        ) from error
    return Commit(place, checksums)


def _commits(folder: pathlib.Path) -> Iterator[Commit]:
    """The last commit and the one before, as far as they can be read; files not verified."""
    for name in HEADS:
        with contextlib.suppress(CheckpointError):
            yield _commit(folder, files.content(folder, name))


def _weights(folder: pathlib.Path) -> list[str]:
    return sorted(p.name for p in folder.glob("weights-*") if WEIGHTS.fullmatch(p.name))


def write(path: pathlib.Path, tensors: dict[str, torch.Tensor], meta: Any = None) -> None:
    """Tensors and something that JSON can hold, in one file; copies what shares memory."""
    from safetensors.torch import save_file

    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    places = {tensor.untyped_storage().data_ptr() for tensor in plain.values()}
    if len(places) < len(plain):
        plain = {name: tensor.clone() for name, tensor in plain.items()}
    text = json.dumps({"format": FORMAT, "content": meta})
    with replacing(path) as draft:
        save_file(plain, draft, metadata={"schuss": text})


def read(path: pathlib.Path, device: Any = "cpu") -> tuple[dict[str, torch.Tensor], Any]:
    """The tensors and the rest."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt", device=str(device)) as held:
            text = (held.metadata() or {}).get("schuss")
            tensors = {name: held.get_tensor(name) for name in held.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise CheckpointError(
            f"{str(path)!r} isn't a checkpoint that can be read ({error}); pass another file, or "
            "restore it from a copy"
        ) from None
    if text is None:
        return tensors, None
    with understood(path):
        held = json.loads(text)
        version, content = held["format"], held["content"]
    if version != FORMAT:
        raise ValueError(
            f"{str(path)!r} has the format {version} but this version reads {FORMAT}; use the "
            "version of schuss that wrote it"
        )
    return tensors, content


def identity(config: Any, seed: Any) -> dict[str, Any]:
    """What makes two described runs the same run: all but how long they are and how closely told.

    A generator is no seed that could be told from another.
    """
    told = dict(config) if isinstance(config, dict) else {"config": config}
    if isinstance(told.get("train"), dict):
        told["train"] = {k: v for k, v in told["train"].items() if k not in (*LENGTH, "seed")}
    return {**told, "seed": seed if isinstance(seed, int) else None}


def check_architecture(saved: dict[str, torch.Tensor], here: dict[str, torch.Tensor]) -> None:
    """Refuse weights of another network, and name the first that differs."""
    for name in sorted({*saved, *here}):
        there = tuple(saved[name].shape) if name in saved else "missing"
        mine = tuple(here[name].shape) if name in here else "missing"
        if there != mine:
            raise ValueError(
                f"the checkpoint is of another architecture: {name} is {there} there and {mine} "
                "here; build net as it was when it was saved"
            )


def load_weights(net: torch.nn.Module, path: str | pathlib.Path) -> torch.nn.Module:
    """Put saved weights (a weights-….safetensors, or the average of a run's folder) into a net."""
    path = pathlib.Path(path)
    if path.is_dir():
        tensors, _ = read(latest(path) / STATE)
        prefix = "ema." if "ema.steps" in tensors else "net."
        tensors = {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
        tensors.pop("steps", None)
    else:
        check_listed(path)
        tensors, _ = read(path)
    check_architecture(tensors, net.state_dict())
    net.load_state_dict(tensors)
    return net
