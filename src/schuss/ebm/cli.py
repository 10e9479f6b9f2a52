"""`schuss ebm train` and `schuss ebm sample`."""

import contextlib
import json
import logging
import os
import pathlib
import signal
from collections.abc import Iterator
from typing import Annotated, Any

import typer

ebm_app = typer.Typer(
    help="Train neural energies, and sample them (PyTorch).",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

CONFIG = typer.Argument(help="A TOML file, or the name of one that comes with schuss.")
CHECKPOINT = typer.Argument(help="The folder of a training run.")


@ebm_app.command()
def train(
    config: Annotated[str, CONFIG],
    data: Annotated[
        pathlib.Path | None, typer.Option(help="Where the files of the data are.")
    ] = None,
    folder: Annotated[
        pathlib.Path, typer.Option(help="Where checkpoints and pictures go.")
    ] = pathlib.Path("ebm-run"),
    iterations: Annotated[int | None, typer.Option(help="Of the whole run.")] = None,
    minutes: Annotated[float | None, typer.Option(help="Stop after so long; go on later.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of all random numbers.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, …")] = "auto",
) -> None:
    """Train, or go on with what is in the folder; `torchrun` makes it use several GPUs.

    Ctrl-C and SIGTERM save what is there before they end it.
    """
    from schuss.checkpoint import CheckpointError
    from schuss.ebm.checkpoint import exists
    from schuss.ebm.config import build, load
    from schuss.ebm.divergence import DivergenceError

    logging.basicConfig(format="%(message)s")
    more: dict[str, Any] = {"iterations": iterations, "seed": seed}
    more = {name: value for name, value in more.items() if value is not None}
    try:
        with _terminable(), _processes(device) as place:
            trainer = build(
                load(config), data=data, device=place, folder=folder, progress=True, **more
            )
            if exists(folder):
                trainer.resume()
                _say(f"going on from iteration {trainer.iteration} in {folder}")
                if trainer.iteration >= trainer.iterations:
                    _say(f"its {trainer.iterations} iterations are done; ask for more of them")
            history = trainer.fit(minutes=minutes)
    except DivergenceError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt as interrupt:
        _say(f"stopped; the same command goes on from what is in {folder}")
        number = signal.SIGTERM if isinstance(interrupt, Terminated) else signal.SIGINT
        raise typer.Exit(128 + number) from None
    except (ValueError, ImportError, CheckpointError) as error:
        raise typer.BadParameter(str(error)) from None
    _say(f"{history!r}; saved in {folder}")
    verdict = folder / "settings.json"
    if verdict.exists():
        found = json.loads(verdict.read_text(encoding="utf-8"))["verdict"]
        _say(f"{found['headline']}; see {folder / 'report.html'}")
        for reason in found["reasons"]:
            _say(f"  {reason['what']}; {reason['remedy']}")


@ebm_app.command()
def sample(
    folder: Annotated[pathlib.Path, CHECKPOINT],
    source: Annotated[str, typer.Option("--from", help="noise or buffer.")] = "noise",
    out: Annotated[pathlib.Path, typer.Option(help="The picture, a .png.")] = pathlib.Path(
        "samples.png"
    ),
    n: Annotated[int, typer.Option(help="How many.", min=1)] = 100,
    gradients: Annotated[int, typer.Option(help="Steps of each chain from noise.", min=1)] = 2000,
    y: Annotated[
        str, typer.Option(help="Classes for a net that takes (x, y), e.g. 0,1,2: n of each.")
    ] = "",
    seed: Annotated[int, typer.Option(help="Of all random numbers.")] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, …")] = "auto",
) -> None:
    """Samples of a trained energy: a picture, and beside it their numbers as an .npz."""
    import numpy as np

    from schuss.checkpoint import CheckpointError
    from schuss.ebm.pictures import picture
    from schuss.ebm.saved import samples

    if source not in ("noise", "buffer"):
        raise typer.BadParameter(f"--from must be noise or buffer, got {source!r}")
    if out.suffix != ".png":
        raise typer.BadParameter(f"--out must end in .png, got {str(out)!r}")
    try:
        place = _device(device)
        given = np.repeat([int(part) for part in y.split(",")], n) if y else None
        count = n if given is None else len(given)
        images = samples(
            folder, source, count, gradients=gradients, seed=seed, device=place, y=given
        )
        picture(out, images)
        np.savez_compressed(out.with_suffix(".npz"), x=images.float().cpu().numpy())
    except (ValueError, ImportError, CheckpointError) as error:
        raise typer.BadParameter(str(error)) from None
    typer.echo(f"{len(images)} samples from {source} in {out} and {out.with_suffix('.npz')}")


class Terminated(KeyboardInterrupt):
    """SIGTERM, on which a run saves as on Ctrl-C."""


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM raises `Terminated`."""

    def terminate(number, frame):
        raise Terminated

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _say(text: str) -> None:
    """Once, however many processes there are."""
    if os.environ.get("RANK", "0") == "0":
        typer.echo(text)


def _device(name: str) -> str:
    from schuss.ebm.machine import best_device

    return best_device(None if name == "auto" else name)


def _processes(device: str):
    """The device of this process; where `torchrun` started it, it is made one of several."""
    import torch
    from torch import distributed

    @contextlib.contextmanager
    def joined():
        place = _device(device)
        if "RANK" not in os.environ:
            yield place
            return
        if place == "cuda":
            place = f"cuda:{os.environ['LOCAL_RANK']}"
            torch.cuda.set_device(place)
        distributed.init_process_group("nccl" if place.startswith("cuda") else "gloo")
        try:
            yield place
        finally:
            distributed.destroy_process_group()

    return joined()


if __name__ == "__main__":
    ebm_app()
