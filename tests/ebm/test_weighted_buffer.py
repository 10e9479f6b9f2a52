"""Jarzynski's weights with a buffer: Eq. 9 as printed, and its runs in small."""

import numpy as np
import pytest
import torch

import schuss
from schuss.ebm import weighted_buffer
from schuss.ebm.buffer import ReplayBuffer
from schuss.ebm.trainer import Trainer

from .images import stripes


class Square(torch.nn.Module):
    """E = a|x|²/2."""

    def __init__(self, a):
        super().__init__()
        self.a = torch.nn.Parameter(torch.tensor(a))

    def forward(self, x):
        return self.a * x.square().sum(-1) / 2


def test_weights_of_a_buffer_are_equation_9():
    """Against r_t from a path of the library, and E(x₀) by hand; the ends go back to the buffer."""
    buffer = ReplayBuffer(64, 3, reinit=0.0, seed=1)
    trainer = Trainer(
        Square(4.0),
        torch.linspace(-1, 1, 150).reshape(50, 3),
        sampler=schuss.ESH(step_size=0.4),
        steps=10,
        keep="last",
        buffer=buffer,
        weighting="jarzynski",
        batch=64,
        energy_scale=1.0,
        seed=2,
    )
    before = buffer.x.clone()
    batch = trainer.batches.draw(0, 0)
    moved = buffer.x
    start = torch.stack([before[int(k)] for k in _slots(moved, batch.negatives)])
    first, last = 2 * start.square().sum(-1), 2 * batch.negatives.square().sum(-1)
    # E + dr is known from the error of H alone: dr = error − ΔE.
    r = (batch.energy_error - (last - first)) / 3
    np.testing.assert_allclose(batch.log_weights, -first + r, rtol=1e-4, atol=1e-4)
    assert float(batch.energy_error.abs().max()) > 0.01  # the exact form would differ


def _slots(moved, negatives):
    """Which slot each negative was written to."""
    return torch.cdist(negatives, moved).argmin(dim=1)


@pytest.mark.parametrize("sampler", weighted_buffer.SAMPLERS)
def test_small_runs_are_kept(tmp_path, sampler):
    given = {"size": weighted_buffer.SMALL, "samplers": (sampler,), "images": stripes()}
    runs = weighted_buffer.run_buffered(None, tmp_path, device="cpu", **given)
    run = runs[f"{sampler}-0"]
    assert len(run["max_weight"]) == weighted_buffer.SMALL.iterations or run["stopped"]
    even = 1 / weighted_buffer.SMALL.batch
    largest = max(run["max_weight"])
    assert largest > even * 1.0001 if sampler == "ESH" else largest == pytest.approx(even)
    assert run["colours"]["test"] < run["colours"]["noise"]
    assert weighted_buffer.run_buffered(None, tmp_path, device="cpu", **given) == runs
    assert weighted_buffer.kept_runs(tmp_path) == runs
