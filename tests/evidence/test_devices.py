"""Particles on several devices, in a process that sees eight."""

import os
import subprocess
import sys

import numpy as np
import pytest

import schuss

SCRIPT = """
import sys
import jax
import numpy as np
sys.path.insert(0, sys.argv[1])
from tests.evidence.test_devices import found
assert len(jax.devices()) == 8
made = found(None if sys.argv[3] == "all" else int(sys.argv[3]))
np.savez(sys.argv[2], log_z=made.log_z, x=made.x, gradients=made.stats["gradients"])
"""


def found(devices=None):
    import jax.numpy as jnp

    scale = jnp.asarray([0.5, 1.0, 2.0])
    return schuss.evidence(
        energy=lambda x: 0.5 * jnp.sum((x / scale) ** 2),
        reference=schuss.Normal(dim=3, sd=2.0),
        particles=64,
        engine="jax",
        devices=devices,
        progress=False,
    )


@pytest.mark.parametrize("devices", ["all", "4"])
def test_eight_devices_give_the_numbers_of_one(tmp_path, devices):
    """To the rounding of float32, in which normals are made for as many as a device has."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
    out = tmp_path / "eight.npz"
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}
    script = [sys.executable, "-c", SCRIPT, root, str(out), devices]
    subprocess.run(script, check=True, env=os.environ | flags, timeout=300)
    eight, one = np.load(out), found()
    assert eight["gradients"] == one.stats["gradients"]
    np.testing.assert_allclose(eight["x"], one.x, rtol=0, atol=1e-5)
    np.testing.assert_allclose(eight["log_z"], one.log_z, rtol=0, atol=1e-5)


def test_devices_belong_to_jax():
    def value_and_grad(x):
        return 0.5 * (x**2).sum(-1), x

    with pytest.raises(ValueError, match=r"^devices is for engine='jax', got engine='numpy'"):
        schuss.evidence(
            value_and_grad=value_and_grad, reference=schuss.Normal(dim=2), devices=2, progress=False
        )
