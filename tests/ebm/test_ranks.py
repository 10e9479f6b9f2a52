"""Two processes give the weights of one with the doubled batch."""

import datetime
import pathlib

import numpy as np
import pytest
import torch
from torch import distributed, multiprocessing

import schuss
from schuss import ebm
from schuss.ebm import ranks

from .runs import small_net, trainer, weights


def images(streams, batch, folder):
    """Spectral norm, whose power iteration must agree too."""
    torch.manual_seed(0)
    x = torch.rand(40, 1, 8, 8) * 2 - 1
    net, buffer = ebm.ConvEnergy(2, 1, 8), ebm.ReplayBuffer(20, (1, 8, 8))
    options = {"streams": streams, "batch": batch, "folder": folder, "energy_scale": 20.0}
    return trainer(net, x, buffer=buffer, optimiser="sgd", lr=0.1, **options)


def weighted(streams, batch, folder):
    """Jarzynski's weights are normalised over all processes."""
    return trainer(
        streams=streams,
        batch=batch,
        buffer=None,
        start="normal",
        weighting="jarzynski",
        keep="last",
        optimiser="sgd",
        sampler=schuss.ESH(0.3),
        folder=folder,
    )


def rolled_back(streams, batch, folder):
    """A divergence in one process is one in all."""
    run = trainer(streams=streams, batch=batch, folder=folder, optimiser="sgd")
    draw, spoilt = run.batches.draw, []

    def spoil(iteration, attempt):
        made = draw(iteration, attempt)
        if iteration == 6 and ranks.rank() == 0 and not spoilt:
            spoilt.append(True)
            made = made._replace(x=made.x * float("nan"))
        return made

    run.batches.draw = spoil
    return run


def penalised(streams, batch, folder):
    """Second derivatives in the loss, and conditions."""
    torch.manual_seed(0)
    x, y = torch.rand(40, 2) * 2 - 1, torch.arange(40) % 2
    options = {"streams": streams, "batch": batch, "folder": folder, "gradient_penalty": 1.0}
    return trainer(Given(), (x, y), energy_scale=40.0, optimiser="sgd", lr=0.1, **options)


class Given(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self.last = small_net(width=6), torch.nn.Linear(2, 2)

    def forward(self, x, y):
        return self.net(x) + self.last(x).gather(1, y[:, None])


RUNS = {"penalised": penalised, "images": images, "weighted": weighted, "rolled back": rolled_back}


def one_rank(rank, name, folder):
    torch.set_num_threads(1)
    distributed.init_process_group(
        "gloo",
        init_method=f"file://{folder}/meeting",
        rank=rank,
        world_size=2,
        timeout=datetime.timedelta(seconds=120),
    )
    run = RUNS[name](1, 6, f"{folder}/run")
    history = run.fit()
    torch.save(
        {
            "weights": weights(run.net),
            "losses": torch.as_tensor(history.losses),
            "grad_norm": torch.as_tensor(history.grad_norm),
            "max_weight": torch.as_tensor(history.max_weight),
            "rollbacks": len(history.rollbacks),
            "buffer": run.buffer.x if run.buffer else torch.zeros(1),
        },
        f"{folder}/rank{rank}.pt",
    )
    distributed.destroy_process_group()


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_two_processes_are_one_with_the_doubled_batch(name, tmp_path):
    multiprocessing.spawn(one_rank, (name, str(tmp_path)), nprocs=2)
    first, second = (torch.load(tmp_path / f"rank{k}.pt", weights_only=True) for k in range(2))
    alone = RUNS[name](2, 12, None)
    history = alone.fit()
    assert torch.equal(first["weights"], second["weights"])
    torch.testing.assert_close(first["weights"], weights(alone.net), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(first["grad_norm"], history.grad_norm, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(first["losses"], history.losses, rtol=1e-4, atol=1e-5)
    assert first["rollbacks"] == len(history.rollbacks) == (name == "rolled back")
    if alone.buffer:
        for mine, other in zip((first, second), alone.batches.buffers, strict=True):
            torch.testing.assert_close(mine["buffer"], other.x, rtol=1e-3, atol=1e-4)
    # And one process goes on from what two have saved.
    files = {path.name for path in pathlib.Path(tmp_path / "run").rglob("stream-*")}
    assert files == ({"stream-0.safetensors", "stream-1.safetensors"} if alone.buffer else set())
    again = RUNS[name](2, 12, None).resume(tmp_path / "run")
    assert again.iteration == 12 and torch.equal(weights(again.net), first["weights"])


def test_alone():
    assert (ranks.rank(), ranks.world(), ranks.active()) == (0, 1, False)
    logs = torch.tensor([0.0, 1.0, -2.0])
    torch.testing.assert_close(ranks.normalised(logs), torch.softmax(logs, 0))
    assert weights(small_net()).numel() == 33
