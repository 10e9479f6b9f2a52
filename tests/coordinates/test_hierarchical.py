"""The hierarchical map against its formula written out, and against autodiff."""

import array_api_compat.torch
import array_api_strict
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from schuss.coordinates import through
from schuss.coordinates.hierarchical import Hierarchical

DIM, ORDER = 6, (4, 0, 3)


@pytest.fixture
def x64():
    with jax.enable_x64(True):
        yield


def random_frame(order=ORDER, blanks=1):
    """Parents in an order that isn't theirs, and rows of zeros at the end."""
    rng = np.random.default_rng(0)
    parents = np.zeros((len(order) + blanks, DIM))
    follow, spread = 0.7 * rng.standard_normal((2, DIM, len(order) + blanks))
    for i, k in enumerate(order):
        parents[i, k] = 1
        follow[k, i:] = spread[k, i:] = 0
    follow[:, len(order) :] = spread[:, len(order) :] = 0
    centre, log_scale, anchor = rng.standard_normal((3, DIM))
    weight = np.asarray([0.0, 0.3, 2.0, 0.0, 0.7, 0.0])
    origin = rng.standard_normal(len(parents))
    return Hierarchical(centre, log_scale, follow, spread, anchor, weight, origin, parents)


def written_out(frame, z, order=ORDER):
    """The formula for one point, coordinate by coordinate, and its log-determinant."""
    x, log_det = {}, 0.0
    for j in [*order, *(j for j in range(DIM) if j not in order)]:
        before = order[: order.index(j)] if j in order else order
        place, width = frame.centre[j], frame.log_scale[j]
        for i, k in enumerate(before):
            place = place + frame.follow[j, i] * (x[k] - frame.origin[i])
            width = width + frame.spread[j, i] * z[k]
        prior = jnp.exp(-2 * width)
        precision = prior + frame.weight[j]
        mean = (prior * place + frame.weight[j] * frame.anchor[j]) / precision
        x[j] = mean + z[j] / jnp.sqrt(precision)
        log_det = log_det - jnp.log(precision) / 2
    return jnp.stack([x[j] for j in range(DIM)]), log_det


def quartic(xp, x):
    """Σ x⁴/4 + x_0 x_5, and its gradient."""
    g = x**3 + xp.stack([x[:, 5], *[0 * x[:, 0]] * 4, x[:, 0]], axis=-1)
    return xp.sum(x**4, axis=-1) / 4 + x[:, 0] * x[:, 5], g


def points(chains=7):
    return np.random.default_rng(1).standard_normal((chains, DIM))


def test_formula_and_inverse(x64):
    frame, z = random_frame(), points()
    x = frame.forward(np, z)
    np.testing.assert_allclose(
        x, jax.vmap(lambda one: written_out(frame, one)[0])(z), rtol=1e-12, atol=1e-12
    )
    np.testing.assert_allclose(frame.inverse(np, x), z, rtol=1e-10, atol=1e-10)


def test_log_determinant(x64):
    """Of the Jacobian by autodiff, up to a constant."""
    frame, z = random_frame(), points()
    jacobian = jax.vmap(jax.jacfwd(lambda one: frame.forward(jnp, one[None])[0]))(z)
    log_det = np.linalg.slogdet(jacobian)[1]
    np.testing.assert_allclose(
        -frame.potential(np, z), log_det - np.sum(frame.log_scale), rtol=1e-10, atol=1e-10
    )


def test_pull_and_push(x64):
    """The gradient in z by autodiff of E(x(z)) − log|dx/dz|, and the way back."""
    frame, z = random_frame(), points()

    def energy(one):
        x, log_det = written_out(frame, one)
        return quartic(jnp, x[None])[0][0] - log_det

    value, slope = jax.vmap(jax.value_and_grad(energy))(z)
    moved, g = through(np, lambda x: quartic(np, x), (frame,))(z)
    np.testing.assert_allclose(g, slope, rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(moved - np.sum(frame.log_scale), value, rtol=1e-10, atol=1e-9)
    back = quartic(np, frame.forward(np, z))[1]
    np.testing.assert_allclose(frame.push(np, z, g), back, rtol=1e-8, atol=1e-8)


def test_time_first():
    """Rows of (n, chains, dim) are taken as they are."""
    frame, z = random_frame(), points(6)
    stacked = z.reshape(3, 2, DIM)
    np.testing.assert_array_equal(
        frame.forward(np, stacked), frame.forward(np, z).reshape(3, 2, DIM)
    )
    g = frame.pull(np, stacked, stacked)
    np.testing.assert_allclose(frame.push(np, stacked, g), stacked, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["torch", "strict", "jax"])
def test_same_numbers_everywhere(x64, name):
    frame, z = random_frame(), points()
    xp = {"torch": array_api_compat.torch, "strict": array_api_strict, "jax": jnp}[name]
    make = torch.asarray if name == "torch" else xp.asarray
    theirs, there = Hierarchical(*map(make, frame)), make(z)
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


def test_single_precision_stays(x64):
    frame = Hierarchical(*(part.astype(np.float32) for part in random_frame()))
    z = points().astype(np.float32)
    assert frame.pull(np, z, frame.forward(np, z)).dtype == np.float32
