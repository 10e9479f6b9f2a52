"""Particles on a GPU, where there is one.

Five standard errors with seven degrees of freedom: one false alarm in 600.
"""

import math

import numpy as np
import pytest
import torch

import schuss

SCALE = np.logspace(-1, 1, 10)
TRUTH = float(np.log(SCALE).sum()) + 5 * math.log(2 * math.pi)


def found(energy, like):
    reference = schuss.Normal(dim=10, sd=5.0)
    return schuss.evidence(energy=energy, reference=reference, like=like, progress=False)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch has no GPU")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_log_z_on_a_gpu_with_pytorch(dtype):
    like = torch.zeros(1, dtype=dtype, device="cuda")
    scale = torch.as_tensor(SCALE).to(like)
    run = found(lambda x: 0.5 * ((x / scale) ** 2).sum(-1), like)
    assert abs(run.log_z - TRUTH) < 5 * run.error


@pytest.fixture
def jax_on_a_gpu():
    jax = pytest.importorskip("jax")
    try:
        platforms = {device.platform for device in jax.devices()}
    except (RuntimeError, AssertionError):  # what JAX raises where JAX_PLATFORMS names none
        pytest.skip("JAX has no device")
    if "gpu" not in platforms:
        pytest.skip("JAX has no GPU")
    return jax


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_log_z_on_a_gpu_with_jax(jax_on_a_gpu, dtype):
    seen = []

    def energy(x):
        return 0.5 * jax_on_a_gpu.numpy.sum((x / SCALE.astype(dtype)) ** 2)

    def told(x):
        seen.append(x.dtype)
        return energy(x)

    run = found(told, np.zeros(1, dtype))
    assert run.engine == "jax"
    assert set(seen) == {np.dtype(dtype)}
    assert abs(run.log_z - TRUTH) < 5 * run.error
