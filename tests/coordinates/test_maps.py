"""Maps that are learnt: inverse, determinant and gradients against autodiff of x(z)."""

import array_api_compat.torch as torch_xp
import array_api_strict
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from schuss.coordinates import through

from .test_conditional import random_frame as conditional
from .test_curved import random_frame as curved
from .test_hierarchical import random_frame as hierarchical

# torch.func warns of what it imports itself.
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning")
DIM = 6
FRAMES = {"conditional": conditional(), "curved": curved(), "hierarchical": hierarchical()}
MAPS = pytest.mark.parametrize("frame", FRAMES.values(), ids=list(FRAMES))


@pytest.fixture(autouse=True)
def x64():
    with jax.enable_x64(True):
        yield


def quartic(xp, x):
    """Σ x⁴/4 + x_0 x_5, and its gradient."""
    g = x**3 + xp.stack([x[:, 5], *[0 * x[:, 0]] * 4, x[:, 0]], axis=-1)
    return xp.sum(x**4, axis=-1) / 4 + x[:, 0] * x[:, 5], g


def points(chains=7):
    return np.random.default_rng(1).standard_normal((chains, DIM))


def log_determinant(frame, one):
    """log|dx/dz| at one point, by autodiff: PyTorch's, which compiles nothing."""
    jacobian = torch.func.jacfwd(lambda z: frame.forward(torch_xp, z[None])[0])(one)
    return torch.linalg.slogdet(jacobian)[1]


def in_torch(frame):
    return type(frame)(*map(torch.asarray, frame))


@MAPS
def test_inverse(frame):
    z = points()
    x = frame.forward(np, z)
    np.testing.assert_allclose(frame.inverse(np, x), z, rtol=1e-9, atol=1e-9)


@MAPS
def test_log_determinant(frame):
    """Of the Jacobian by autodiff, up to a constant."""
    z = points()
    theirs = in_torch(frame)
    each = [log_determinant(theirs, one) for one in torch.asarray(z)]
    gained = np.asarray(each) + frame.potential(np, z)
    np.testing.assert_allclose(gained, gained[0], rtol=1e-10, atol=1e-10)


@MAPS
def test_pull_and_push(frame):
    """The gradient in z by autodiff of E(x(z)) − log|dx/dz|, and the way back."""
    z, theirs = points(), in_torch(frame)

    def energy(one):
        value, _ = quartic(torch_xp, theirs.forward(torch_xp, one[None]))
        return value[0] - log_determinant(theirs, one)

    slope = np.stack([torch.func.grad(energy)(one) for one in torch.asarray(z)])
    _, g = through(np, lambda x: quartic(np, x), (frame,))(z)
    scale = np.abs(slope).max()
    np.testing.assert_allclose(g, slope, rtol=1e-9, atol=1e-11 * scale)
    back = quartic(np, frame.forward(np, z))[1]
    np.testing.assert_allclose(frame.push(np, z, g), back, rtol=1e-8, atol=1e-11 * scale)


@MAPS
def test_time_first(frame):
    """Rows of (n, chains, dim) are taken as they are."""
    z = points(6)
    stacked = z.reshape(3, 2, DIM)
    np.testing.assert_array_equal(
        frame.forward(np, stacked), frame.forward(np, z).reshape(3, 2, DIM)
    )
    g = frame.pull(np, stacked, stacked)
    np.testing.assert_allclose(frame.push(np, stacked, g), stacked, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", ["torch", "strict", "jax"])
@MAPS
def test_same_numbers_everywhere(frame, name):
    z = points()
    xp = {"torch": torch_xp, "strict": array_api_strict, "jax": jnp}[name]
    make = torch.asarray if name == "torch" else xp.asarray
    theirs, there = type(frame)(*map(make, frame)), make(z)
    for method in ("forward", "inverse", "potential"):
        ours = getattr(frame, method)(np, z)
        np.testing.assert_allclose(
            np.asarray(getattr(theirs, method)(xp, there)), ours, rtol=1e-10, atol=1e-10
        )
    for method in ("pull", "push"):
        ours = getattr(frame, method)(np, z, z)
        np.testing.assert_allclose(
            np.asarray(getattr(theirs, method)(xp, there, there)), ours, rtol=1e-9, atol=1e-9
        )


@MAPS
def test_single_precision_stays(frame):
    frame = type(frame)(*(part.astype(np.float32) for part in frame))
    z = points().astype(np.float32)
    assert frame.pull(np, z, frame.forward(np, z)).dtype == np.float32
