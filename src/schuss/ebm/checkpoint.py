"""Checkpoints of plain tensors (safetensors) with JSON beside them: nothing that can run.

    folder/latest                                   the name of the checkpoint to go on from
    folder/checkpoint-0000500/state.safetensors     weights, optimiser, average, history
    folder/checkpoint-0000500/stream-0.safetensors  the buffer of each stream
    folder/weights-0000500.safetensors              weights alone, of the last few checkpoints

A run that is killed while it writes goes on from the checkpoint before.
"""

import json
import pathlib
import shutil
from typing import Any

import torch

from schuss.whole_file import replacing

FORMAT = 1
STATE = "state.safetensors"
KEPT_WEIGHTS = 10
LENGTH = ("iterations", "every", "save_every")


def begin(folder: pathlib.Path, iteration: int) -> pathlib.Path:
    """A place for the files of a checkpoint."""
    place = folder / f"checkpoint-{iteration:07d}"
    place.mkdir(parents=True, exist_ok=True)
    return place


def finish(folder: pathlib.Path, place: pathlib.Path) -> None:
    """Say that a checkpoint is complete, and forget the others."""
    with replacing(folder / "latest") as draft:
        draft.write_text(place.name + "\n")
    for other in folder.glob("checkpoint-*"):
        if other != place:
            shutil.rmtree(other)
    for other in sorted(folder.glob("weights-*.safetensors"))[:-KEPT_WEIGHTS]:
        other.unlink()


def latest(folder: str | pathlib.Path) -> pathlib.Path:
    """The newest complete checkpoint of a folder, or the folder itself if it is one."""
    folder = pathlib.Path(folder)
    if (folder / STATE).exists():
        return folder
    try:
        return folder / (folder / "latest").read_text().strip()
    except OSError:
        raise ValueError(
            f"folder {str(folder)!r} holds no checkpoint; pass the folder= of a training run that "
            "has saved one"
        ) from None


def exists(folder: str | pathlib.Path) -> bool:
    """Whether there is a checkpoint to go on from."""
    return (pathlib.Path(folder) / "latest").exists()


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
        raise ValueError(f"{str(path)!r} isn't a checkpoint that can be read: {error}") from None
    if text is None:
        return tensors, None
    held = json.loads(text)
    if held["format"] != FORMAT:
        raise ValueError(
            f"{str(path)!r} has the format {held['format']} but this version reads {FORMAT}; "
            "use the version of schuss that wrote it"
        )
    return tensors, held["content"]


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
        tensors, _ = read(path)
    check_architecture(tensors, net.state_dict())
    net.load_state_dict(tensors)
    return net
