"""The JAX engine: what compiles when, which functions it takes, and many devices."""

import dataclasses
import functools
import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import schuss

from .compilations import compilations

PRECISION = 1 / np.array([0.5, 1.0, 2.0])
START = np.random.default_rng(0).standard_normal((6, 3))


def pointwise(x):
    return 0.5 * jnp.sum(x * x * PRECISION)


def batched(x):
    return 0.5 * jnp.einsum("ni,ni,i->n", x, x, PRECISION)


def follow(energy, sampler=None, **given):
    sampler = schuss.ESH(0.3, refresh=3.0) if sampler is None else sampler
    given = {"init": START, "steps": 8, "seed": 4, "engine": "jax"} | given
    return schuss.trajectory(energy=energy, sampler=sampler, **given)


@pytest.mark.parametrize(
    "kind",
    [
        "flow",
        "endpoint",
        *(pytest.param(k, marks=pytest.mark.slow) for k in ("orbit", "persistent", "hmc")),
    ],
)
def test_nothing_compiles_anew_for_other_numbers(kind):
    """Another step size, κ, L, number of steps in a proposal, seed or start."""

    def sampler(a, n):
        return {
            "flow": schuss.ESH(a, kappa=2 + a, refresh=3 + a),
            "endpoint": schuss.ESH(a, adjust="endpoint", steps=n),
            "orbit": schuss.ESH(a, adjust="orbit", steps=n),
            "persistent": schuss.ESH(a, adjust="persistent", refresh=3 + a),
            "hmc": schuss.HMC(a, steps=n),
        }[kind]

    follow(pointwise, sampler(0.3, 2))
    before = compilations()
    paths = [
        follow(pointwise, sampler(0.2, 3)),
        follow(pointwise, sampler(0.2, 3), seed=5),
        follow(pointwise, sampler(0.2, 3), init=START + 1),
    ]
    assert compilations() == before
    assert not np.array_equal(paths[0].x, paths[1].x)


def test_a_run_of_any_length_is_one_compilation():
    def run(steps, step_size):
        sampler = schuss.Sampler(schuss.ESH(step_size), steps=steps, keep="moments", engine="jax")
        return sampler.run(pointwise, START)

    run(5, 0.3)
    before = compilations()
    run(11, 0.2).extend(3)
    assert compilations() == before


def test_one_function_for_all_calls():
    """Equal energies are one energy: a method compiles once, though each access makes a new one."""

    class Model:
        def energy(self, x):
            return 2 * pointwise(x)

    @dataclasses.dataclass(frozen=True)
    class Scaled:
        scale: float

        def __call__(self, x):
            return self.scale * pointwise(x)

    model = Model()
    follow(model.energy)
    follow(Scaled(2.0))
    before = compilations()
    follow(model.energy)
    follow(Scaled(2.0))
    assert compilations() == before


@pytest.mark.parametrize(
    "energy",
    [
        pytest.param(batched, id="batched"),
        pytest.param(lambda x: batched(x)[:, None], id="batched (n, 1)"),
        pytest.param(lambda x: pointwise(x)[None], id="pointwise (1,)", marks=pytest.mark.slow),
        pytest.param(
            lambda x: 0.5 * jnp.sum(x * x * PRECISION, axis=-1, keepdims=True),
            id="last axis (n, 1)",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            functools.partial(lambda scale, x: scale * pointwise(x), 1.0),
            id="partial",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_energies_of_points_and_of_batches(energy):
    want = follow(pointwise)
    np.testing.assert_allclose(follow(energy).x, want.x, rtol=0, atol=1e-12)


def test_logdensity_is_minus_the_energy():
    want = follow(pointwise)
    path = schuss.trajectory(
        logdensity=lambda x: -pointwise(x),
        sampler=want.algorithm,
        init=START,
        steps=8,
        seed=4,
        engine="jax",
    )
    np.testing.assert_allclose(path.x, want.x, rtol=0, atol=1e-13)


def test_positions_of_any_shape():
    """Matrices are flat inside and matrices again outside, with the numbers of the vectors."""
    start = np.random.default_rng(1).standard_normal((4, 2, 3))

    def energy(x):
        assert x.shape == (2, 3)
        return jnp.sum(x**2 * jnp.arange(1.0, 7.0).reshape(2, 3))

    path = follow(energy, init=start)
    assert path.x.shape == (9, 4, 2, 3) and path.dim == 6
    flat = follow(lambda x: jnp.sum(x**2 * jnp.arange(1.0, 7.0)), init=start.reshape(4, 6))
    np.testing.assert_allclose(path.x.reshape(9, 4, 6), flat.x, rtol=0, atol=1e-13)


def test_a_single_position_is_one_chain():
    path = follow(pointwise, init=START[0])
    assert path.x.shape == (9, 1, 3)
    sample = schuss.Sampler(steps=3, engine="jax")(pointwise, START[0])
    assert sample.shape == (3,)


def test_arrays_come_back_as_they_came():
    sampler = schuss.Sampler(steps=3, engine="jax")
    assert isinstance(sampler(pointwise, START), np.ndarray)
    sample = sampler(lambda x: 0.5 * jnp.sum(x * x), jnp.asarray(START, jnp.float32))
    assert isinstance(sample, jax.Array) and sample.dtype == jnp.float32


def test_unhashable_callables():
    @dataclasses.dataclass
    class Model:
        precision: np.ndarray

        def __call__(self, x):
            return 0.5 * jnp.sum(x * x * self.precision)

    model = Model(PRECISION)
    with pytest.raises(TypeError):
        hash(model)
    np.testing.assert_allclose(follow(model).x, follow(pointwise).x, rtol=0, atol=1e-13)
    np.testing.assert_allclose(follow(Model(2 * PRECISION)).x[0], START)
    assert not np.allclose(follow(Model(2 * PRECISION)).x[-1], follow(pointwise).x[-1])


def test_float32_under_the_global_switch():
    """NumPy's float64 constants in an energy don't turn float32 positions into float64."""
    weights = np.array([2.0, 1.0, 0.5])
    with jax.enable_x64(True):
        path = follow(lambda x: jnp.sum(x * x * weights), init=START.astype(np.float32))
    for field in ("x", "u", "r", "energy", "log_weight"):
        assert getattr(path, field).dtype == np.float32, field


def test_one_energy_in_both_precisions():
    """A NumPy constant takes the precision of the positions."""
    weights = np.array([2.0, 1.0, 0.5])

    def energy(x):
        return jnp.sum(x * x * weights)

    assert follow(energy).x.dtype == np.float64
    assert follow(energy, init=START.astype(np.float32)).x.dtype == np.float32


def mesh_energy(x):
    return 0.5 * jnp.sum(x * x * PRECISION)


def on_all_devices(devices):
    """Paths and reservoirs of 16 chains, which 8 devices share, and of 5, which they can't."""
    assert len(jax.devices()) == devices
    start = np.random.default_rng(0).standard_normal((16, 3))
    kept = {}
    for name, sampler in {
        "refresh": schuss.ESH(0.3, refresh=3.0),
        "endpoint": schuss.ESH(0.8, adjust="endpoint", steps=3),
    }.items():
        path = follow(mesh_energy, sampler, init=start, steps=40)
        assert len(path._state.x.sharding.device_set) == devices
        kept[name] = path.x
    sampler = schuss.Sampler(schuss.ESH(0.3), steps=40, keep="reservoir", engine="jax")
    run = sampler.run(mesh_energy, start)
    assert len(run._state.x.sharding.device_set) == devices
    return kept | {"reservoir": run.x, "odd": follow(mesh_energy, init=start[:5]).x}


IN_ANOTHER_PROCESS = """
import sys
import numpy as np
sys.path.insert(0, sys.argv[1])
from engines.test_jax import on_all_devices
np.savez(sys.argv[2], **on_all_devices(8))
"""


def test_eight_devices_give_the_numbers_of_one(tmp_path):
    folder, out = Path(__file__).parents[1], tmp_path / "eight.npz"
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}
    subprocess.run(
        [sys.executable, "-c", IN_ANOTHER_PROCESS, str(folder), str(out)],
        env=os.environ | flags,
        check=True,
        timeout=300,
    )
    one, eight = on_all_devices(1), np.load(out)
    assert set(one) == set(eight)
    for name in one:
        np.testing.assert_allclose(eight[name], one[name], rtol=0, atol=1e-12, err_msg=name)
