"""The metric with a few directions of its own, against the matrix that it stands for."""

import array_api_strict as strict
import jax
import numpy as np
import pytest
import torch

from schuss import engines
from schuss.coordinates import Dense, Diagonal, LowRank, through
from schuss.tuning import metric

DIM, RANK = 6, 3
_RNG = np.random.default_rng(0)
SCALE = np.exp(_RNG.standard_normal(DIM))
VECTORS = np.linalg.qr(_RNG.standard_normal((DIM, RANK)))[0]
STRETCH = np.array([-0.9, 0.5, 8.0])
Z = _RNG.standard_normal((4, DIM))
PULLED = _RNG.standard_normal((4, DIM))

FRAME = LowRank(SCALE, VECTORS, STRETCH)
PADDED = LowRank(
    SCALE,
    np.concatenate([VECTORS, np.zeros((DIM, 2))], axis=1),
    np.concatenate([STRETCH, np.zeros(2)]),
)
SQUARE = LowRank(
    SCALE,
    np.concatenate([VECTORS, np.zeros((DIM, DIM - RANK))], axis=1),
    np.concatenate([STRETCH, np.zeros(DIM - RANK)]),
)
MATRIX = SCALE[:, None] * (np.eye(DIM) + (VECTORS * STRETCH) @ VECTORS.T)
"""x = MATRIX z."""

ENGINES = pytest.mark.parametrize("name", ["numpy", "jax", "torch"])


def on(engine, frame=FRAME):
    return type(frame)(*map(engine.asarray, frame))


@ENGINES
@pytest.mark.parametrize(
    "frame",
    [FRAME, PADDED, SQUARE, metric.in_loops(SQUARE)],
    ids=["full", "padded", "square", "dense"],
)
def test_maps_are_those_of_the_matrix(name, frame):
    engine = engines.get(name)
    with jax.enable_x64(True):
        ours, z, g = on(engine, frame), engine.asarray(Z), engine.asarray(PULLED)
        x = ours.forward(engine.xp, z)
        np.testing.assert_allclose(engine.to_numpy(x), Z @ MATRIX.T, rtol=1e-12)
        np.testing.assert_allclose(engine.to_numpy(ours.inverse(engine.xp, x)), Z, rtol=1e-12)
        back = ours.inverse(engine.xp, z)
        np.testing.assert_allclose(engine.to_numpy(back), np.linalg.solve(MATRIX, Z.T).T)
        pulled = ours.pull(engine.xp, z, g)
        np.testing.assert_allclose(engine.to_numpy(pulled), PULLED @ MATRIX, rtol=1e-12)
        assert ours.potential(engine.xp, z) == 0


def test_strict_array_api_agrees():
    ours, z, g = (
        LowRank(*(strict.asarray(part.copy()) for part in FRAME)),
        strict.asarray(Z.copy()),
        strict.asarray(PULLED.copy()),
    )
    np.testing.assert_allclose(np.asarray(ours.forward(strict, z)), Z @ MATRIX.T, rtol=1e-12)
    np.testing.assert_allclose(np.asarray(ours.pull(strict, z, g)), PULLED @ MATRIX, rtol=1e-12)
    there = ours.forward(strict, z)
    np.testing.assert_allclose(np.asarray(ours.inverse(strict, there)), Z, rtol=1e-12)


@ENGINES
def test_pull_is_the_gradient_in_z(name):
    """Against autodiff through x(z): JAX's for NumPy too."""
    engine = engines.get(name)

    def energy(x):
        return (x**4).sum(-1) / 4 + x[..., 0] * x[..., 1]

    with jax.enable_x64(True):
        if name == "torch":
            z = torch.tensor(Z, requires_grad=True)
            frame = LowRank(*map(torch.tensor, FRAME))
            energy(frame.forward(engine.xp, z)).sum().backward()
            want = z.grad.numpy()
        else:
            want = jax.grad(lambda z: energy(FRAME.forward(jax.numpy, z)).sum())(jax.numpy.array(Z))

        def by_hand(x):
            g = engine.xp.stack([x[:, 1], x[:, 0]] + [0 * x[:, 0]] * (DIM - 2), -1)
            return energy(x), x**3 + g

        value, g = through(engine.xp, by_hand, (on(engine),))(engine.asarray(Z))
    np.testing.assert_allclose(engine.to_numpy(value), energy(Z @ MATRIX.T), rtol=1e-12)
    np.testing.assert_allclose(engine.to_numpy(g), np.asarray(want), rtol=1e-10)


@ENGINES
def test_precision_stays(name):
    engine = engines.get(name)
    frame = LowRank(*(engine.asarray(part.astype(np.float32)) for part in FRAME))
    z = engine.asarray(Z.astype(np.float32))
    for moved in (
        frame.forward(engine.xp, z),
        frame.inverse(engine.xp, z),
        frame.pull(engine.xp, z, z),
    ):
        assert engine.to_numpy(moved).dtype == np.float32


@pytest.mark.parametrize("frame", [FRAME, PADDED])
def test_log_scale_is_that_of_the_volume(frame):
    assert metric.log_scale(frame) == pytest.approx(np.linalg.slogdet(MATRIX)[1] / DIM)
    assert metric.rank(frame) == RANK
    assert metric.log_scale(Diagonal(SCALE)) == pytest.approx(np.log(SCALE).mean())
    assert metric.rank(Diagonal(SCALE)) == 0


def test_loops_have_a_matrix_where_it_has_fewer_numbers():
    for frame in (SQUARE, PADDED, FRAME):
        assert isinstance(metric.in_loops(frame), Dense)
    thin = LowRank(SCALE, VECTORS[:, :2], STRETCH[:2])
    for frame in (thin, Diagonal(SCALE)):
        assert metric.in_loops(frame) is frame
