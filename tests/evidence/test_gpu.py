"""Particles on a GPU, where there is one."""

import math

import pytest
import torch

import schuss

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_log_z_on_a_gpu(dtype):
    """Five standard errors with seven degrees of freedom: one false alarm in 600."""
    like = torch.zeros(1, dtype=dtype, device="cuda")
    scale = torch.logspace(-1, 1, 10, dtype=dtype, device="cuda")
    run = schuss.evidence(
        energy=lambda x: 0.5 * ((x / scale) ** 2).sum(-1),
        reference=schuss.Normal(dim=10, sd=5.0),
        like=like,
        progress=False,
    )
    truth = float(torch.log(scale).sum()) + 5 * math.log(2 * math.pi)
    assert abs(run.log_z - truth) < 5 * run.error
