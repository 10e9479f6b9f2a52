"""One energy, four array libraries."""

import os
import subprocess
import sys

import array_api_compat.torch as torch_xp
import array_api_strict
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from schuss.targets import Target, get


def points(target: Target, n: int = 40) -> np.ndarray:
    rng = np.random.default_rng(1)
    assert target.sample is not None
    return np.concatenate([target.start(rng, n), target.sample(rng, n)])


def close(a, b) -> None:
    a, b = np.asarray(a), np.asarray(b)
    np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12 * (1 + np.abs(b).max()))


def test_gradient_is_that_of_the_energy(target):
    """Against autodiff in float64."""
    x = points(target)
    with jax.enable_x64(True):
        want = jax.jit(jax.grad(lambda y: jnp.sum(target.energy(jnp, y))))(jnp.asarray(x))
        got = target.gradient(np, x)
        assert got.shape == x.shape
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9 * np.abs(want).max())


def test_libraries_agree(target):
    x = points(target)
    energy, gradient = target.energy(np, x), target.gradient(np, x)
    assert energy.shape == (len(x),)
    assert energy.dtype == gradient.dtype == np.float64
    for xp in (torch_xp, array_api_strict):
        close(target.energy(xp, xp.asarray(x)), energy)
        close(target.gradient(xp, xp.asarray(x)), gradient)
    with jax.enable_x64(True):
        close(jax.jit(lambda y: target.energy(jnp, y))(jnp.asarray(x)), energy)
        close(jax.jit(lambda y: target.gradient(jnp, y))(jnp.asarray(x)), gradient)


@pytest.mark.parametrize("xp", [np, jnp, torch_xp, array_api_strict])
@pytest.mark.parametrize("x64", [False, True])
def test_float32_stays(target, xp, x64):
    with jax.enable_x64(x64):
        x = xp.asarray(points(target).astype(np.float32))
        assert target.energy(xp, x).dtype == xp.float32
        assert target.gradient(xp, x).dtype == xp.float32


def test_torch_gradient_is_finite_at_the_origin(target):
    x = torch.zeros((1, target.dim), dtype=torch.float64, requires_grad=True)
    (got,) = torch.autograd.grad(target.energy(torch_xp, x).sum(), x)
    close(got, target.gradient(np, np.zeros((1, target.dim))))


@pytest.mark.parametrize("name", ["mog", "icg", "icg-rotated", "funnel", "rings"])
def test_torch_compiles_and_maps(name):
    """`vmap` of `grad` of one point, traced whole, as a compiled engine does it."""
    target = get(name)
    x = points(target, 5)

    def one(y):
        return target.energy(torch_xp, y[None, :])[0]

    each = torch.func.vmap(torch.func.grad(one))
    y = torch.asarray(x)
    close(each(y), target.gradient(np, x))
    close(torch.compile(each, fullgraph=True, backend="aot_eager")(y), target.gradient(np, x))


SHARDED = """
import jax, numpy as np
import jax.numpy as jnp
from schuss.targets import get
target = get("icg")
mesh = jax.sharding.Mesh(np.asarray(jax.devices()), ("chains",))
sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("chains", None))
x = target.start(np.random.default_rng(0), 4).astype(np.float32)
got = target.energy(jnp, jax.device_put(jnp.asarray(x), sharding))
assert len(got.sharding.device_set) == 2
np.testing.assert_allclose(got, target.energy(np, x), rtol=1e-4)
"""


def test_jax_shards():
    """A constant must not take the sharding of x; two devices need a process of their own."""
    flags = "--xla_force_host_platform_device_count=2"
    environment = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    subprocess.run([sys.executable, "-c", SHARDED], env=environment, check=True)
