"""Changes of variables: gradients by autodiff, and paths that don't depend on them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from seeds import shifted

import schuss
from schuss.coordinates import Auxiliary, Diagonal, potential, through, to_x, to_z

from .energies import bowl

SCALE = np.asarray([0.5, 2.0, 7.0])


def frames(chains):
    rng = np.random.default_rng(0)
    return Diagonal(SCALE), Auxiliary(rng.standard_normal((chains, 1)))


@pytest.mark.parametrize("chosen", [slice(0, 0), slice(0, 1), slice(1, 2), slice(0, 2)])
def test_there_and_back(chosen):
    x = np.random.default_rng(1).standard_normal((5, 3))
    used = frames(5)[chosen]
    z = to_z(np, used, x)
    assert z.shape == (5, 3 + sum(isinstance(frame, Auxiliary) for frame in used))
    np.testing.assert_allclose(to_x(np, used, z), x, rtol=1e-15)


@pytest.mark.parametrize("chosen", [slice(0, 1), slice(1, 2), slice(0, 2)])
def test_energy_and_gradient(x64, chosen):
    """E(x(z)) plus what the frames add, and its gradient by autodiff."""
    used = frames(4)[chosen]
    dim = 3 + sum(isinstance(frame, Auxiliary) for frame in used)
    z = np.random.default_rng(2).standard_normal((4, dim))
    energy, gradient = through(np, lambda x: bowl(np, x), used)(z)

    def written_out(z):
        x, extra = z[:3], z[3:]
        x = x * SCALE if isinstance(used[0], Diagonal) else x
        return bowl(jnp, x[None])[0][0] + jnp.sum(extra * extra) / 2

    values, slopes = jax.vmap(jax.value_and_grad(written_out))(z)
    np.testing.assert_allclose(energy, values, rtol=1e-13)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-12, atol=1e-12)
    added = np.sum(z[:, 3:] ** 2, axis=1) / 2
    np.testing.assert_allclose(np.broadcast_to(potential(np, used, z), 4), added, atol=1e-15)


@pytest.mark.parametrize("adjust", [None, "orbit"])
def test_a_metric_is_a_change_of_variables(adjust):
    """The path with metric s is s times the path of E(s z)."""
    x, normal = np.random.default_rng(3).standard_normal((2, 4, 3))
    rng = np.random.default_rng(4)
    noise = schuss.Noise(
        np.concatenate([normal[None], rng.standard_normal((20, 4, 3))]), rng.random((21, 4, 3))
    )

    def stretched(z):
        energy, g = bowl(np, SCALE * z)
        return energy, SCALE * g

    options = {"step_size": 0.1, "adjust": adjust, "steps": 4}
    common = {"steps": 20, "noise": noise}
    ours = schuss.trajectory(
        value_and_grad=lambda x: bowl(np, x),
        init=SCALE * x,
        sampler=schuss.ESH(**options, metric=SCALE),
        **common,
    )
    theirs = schuss.trajectory(
        value_and_grad=stretched, init=x, sampler=schuss.ESH(**options), **common
    )
    np.testing.assert_allclose(ours.x, SCALE * theirs.x, atol=1e-11)
    for name in ("u", "r", "energy", "hamiltonian", "log_weight", "energy_error"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), atol=1e-11)


def double_well(x):
    """(x² − 1)² + x/2, one coordinate."""
    square = x * x - 1
    return square[:, 0] ** 2 + x[:, 0] / 2, 4 * x * square + 0.5


def test_one_coordinate_gets_a_second_one():
    """The path is that of E(x) + ½a² in the plane, with a left out of x and of the energy."""
    x = np.linspace(-1, 1, 5)[:, None]
    velocity = np.random.default_rng(5).standard_normal((5, 2))
    sampler = schuss.ESH(0.1)
    path = schuss.trajectory(
        value_and_grad=double_well, init=x, velocity=velocity, sampler=sampler, steps=30
    )
    assert path.x.shape == (31, 5, 1) and path.u.shape == (31, 5, 2)
    assert path.time.shape == (31, 5) and path.ergodic_sample(7).shape == (7, 1)
    np.testing.assert_array_equal(path.x[0], x)

    def in_the_plane(z):
        energy, g = double_well(z[:, :1])
        return energy + z[:, 1] ** 2 / 2, np.concatenate([g, z[:, 1:]], axis=1)

    # The second coordinate stays hidden: H − E gives ½a² at the start, and one of its signs fits.
    hidden = np.sqrt(2 * (path.hamiltonian[0] - path.energy[0]))[:, None]
    fits = []
    for a in (hidden, -hidden):
        plane = schuss.trajectory(
            value_and_grad=in_the_plane,
            init=np.concatenate([x, a], axis=1),
            velocity=velocity,
            sampler=sampler,
            steps=30,
        )
        fits.append(np.abs(plane.x[..., :1] - path.x).max(axis=(0, 2)) < 1e-10)
        np.testing.assert_allclose(plane.hamiltonian[0], path.hamiltonian[0])
    assert (fits[0] != fits[1]).all()
    energies = double_well(path.x.reshape(-1, 1))[0].reshape(31, 5)
    np.testing.assert_allclose(path.energy, energies, atol=1e-12)


def test_the_start_of_the_second_coordinate_is_standard_normal():
    """Its mean square over 4000 chains, from H − E at the start, to 5 sigma."""
    path = schuss.trajectory(value_and_grad=double_well, init=np.ones((4000, 1)), steps=1)
    square = 2 * (path.hamiltonian[0] - path.energy[0])
    assert square.mean() == pytest.approx(1, abs=5 * (2 / 4000) ** 0.5)


@pytest.mark.slow
@pytest.mark.parametrize("adjust", [None, "orbit"])
def test_mean_of_a_double_well(adjust):
    """Weighted states of 1000 chains on a line, against quadrature, to 5 standard errors."""
    grid = np.linspace(-4, 4, 4001)
    density = np.exp(-double_well(grid[:, None])[0])
    truth = (grid @ density) / density.sum()
    if adjust == "orbit":
        sampler = schuss.ESH(0.4, adjust="orbit", steps=12)
    else:
        sampler = schuss.ESH(0.05, refresh=4.0)
    path = schuss.trajectory(
        value_and_grad=double_well,
        init=np.random.default_rng(shifted(6)).standard_normal((1000, 1)),
        sampler=sampler,
        steps=4400,
    )
    skip = 400
    weights = path.weights[skip:]
    top = np.sum(weights * path.x[1 + skip :, :, 0], axis=0)
    bottom = np.sum(weights, axis=0)
    mean = top.sum() / bottom.sum()
    error = np.std(top - mean * bottom) / bottom.mean() / 1000**0.5
    assert error < 0.01
    assert mean == pytest.approx(truth, abs=5 * error)
