"""The hierarchical map against its formula written out."""

import jax
import jax.numpy as jnp
import numpy as np

from schuss.coordinates import Hierarchical

DIM, ORDER = 6, (4, 0, 3)


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


def test_formula():
    frame, z = random_frame(), np.random.default_rng(1).standard_normal((7, DIM))
    with jax.enable_x64(True):
        x, log_det = jax.vmap(lambda one: written_out(frame, one))(z)
    np.testing.assert_allclose(frame.forward(np, z), x, rtol=1e-12, atol=1e-12)
    found = np.sum(frame.log_scale) - frame.potential(np, z)
    np.testing.assert_allclose(found, log_det, rtol=1e-10, atol=1e-10)
