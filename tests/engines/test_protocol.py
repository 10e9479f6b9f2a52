"""What holds for every sampler on every engine."""

import functools

import jax
import numpy as np
import pytest

import schuss

from .algorithms import ALGORITHMS, CASES, CHAINS, DIM, SERIES, START, STEPS, TARGET

everywhere = pytest.mark.parametrize(("name", "engine"), CASES)


def follow(name, engine, *, dtype="float64", steps=12, every=1, seed=0):
    return schuss.trajectory(
        TARGET,
        init=START.astype(dtype),
        sampler=ALGORITHMS[name],
        steps=steps,
        every=every,
        seed=seed,
        engine=engine,
    )


whole = functools.cache(follow)


def run(name, engine, *, steps, keep):
    sampler = schuss.Sampler(ALGORITHMS[name], steps=steps, keep=keep, seed=7, engine=engine)
    return sampler.run(target=TARGET, init=START)


def assert_same(first, second, names=SERIES + STEPS):
    for name in names:
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name), err_msg=name)


@everywhere
def test_shapes_and_values(name, engine):
    path = whole(name, engine)
    assert path.x.shape == path.u.shape == (13, CHAINS, DIM)
    assert path.chains == CHAINS and path.dim == DIM
    for field in ("r", "energy", "hamiltonian"):
        assert getattr(path, field).shape == (13, CHAINS), field
        assert np.all(np.isfinite(getattr(path, field))), field
    for field in STEPS:
        assert getattr(path, field).shape == (12, CHAINS), field
    assert np.all(np.isfinite(path.x)) and np.all(np.isfinite(path.u))
    assert np.all(np.isfinite(path.log_weight[path.complete]))
    assert not np.any(np.isnan(path.log_weight))
    decided = path.acceptance[np.isfinite(path.acceptance)]
    assert np.all((decided >= 0) & (decided <= 1))
    assert path.complete.dtype == path.frozen.dtype == np.bool_
    assert path.frozen.shape == (CHAINS,) and not path.frozen.any()
    assert path.weights.shape == (12, CHAINS)
    assert path.weights.sum() == pytest.approx(1)
    assert path.mean().shape == (DIM,)
    np.testing.assert_allclose(path.x[0], START, rtol=1e-15)
    assert np.any(path.x[-1] != START, axis=-1).all()
    assert path.time.shape == (13, CHAINS) and np.all(np.diff(path.time, axis=0) > 0)
    flow = isinstance(ALGORITHMS[name], schuss.ESH | schuss.Unscaled)
    if flow and getattr(ALGORITHMS[name], "adjust", None) is None:
        assert path.ergodic_sample(6, seed=1).shape == (6, DIM)
    np.testing.assert_allclose(
        path.energy, TARGET.energy(np, path.x.reshape(-1, DIM)).reshape(13, -1), rtol=1e-13
    )
    if name.startswith("esh"):
        np.testing.assert_allclose(np.linalg.norm(path.u, axis=-1), 1, rtol=1e-13)


@everywhere
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_dtype_stays(name, engine, dtype):
    """64 bits in JAX don't need its global switch, which stays as it was."""
    assert not jax.config.jax_enable_x64
    path = whole(name, engine, dtype=dtype)
    for field in (*SERIES, *STEPS[:3]):
        assert getattr(path, field).dtype == dtype, field
    assert not jax.config.jax_enable_x64


@everywhere
def test_seed_decides_the_numbers(name, engine):
    path = whole(name, engine)
    assert_same(path, follow(name, engine))
    other = follow(name, engine, seed=1)
    assert np.any(other.x[1:] != path.x[1:], axis=(0, 2)).all()
    np.testing.assert_array_equal(other.x[0], path.x[0])


@everywhere
def test_extended_path_is_the_uninterrupted_one(name, engine):
    half = follow(name, engine, steps=6)
    before = {field: getattr(half, field).copy() for field in SERIES + STEPS}
    once, again = half.extend(6), half.extend(6)
    assert_same(once, whole(name, engine))
    assert_same(again, once)
    assert once.gradients == whole(name, engine).gradients
    for field, kept in before.items():
        np.testing.assert_array_equal(getattr(half, field), kept, err_msg=field)


@everywhere
def test_every_third_state(name, engine):
    """XLA fuses another loop in another way: there, the last digit may differ."""
    if name == "esh-orbit":
        with pytest.raises(ValueError, match=r"^every must be 1 with adjust='orbit'"):
            follow(name, engine, every=3)
        return
    path, thinned = whole(name, engine), follow(name, engine, every=3)
    assert thinned.gradients == path.gradients
    rtol, atol = (1e-11, 1e-12) if engine == "jax" else (0, 0)
    for field in SERIES:
        want = getattr(path, field)[::3]
        np.testing.assert_allclose(
            getattr(thinned, field), want, rtol=rtol, atol=atol, err_msg=field
        )
    for field in STEPS:
        want = getattr(path, field)[2::3]
        np.testing.assert_allclose(
            getattr(thinned, field), want, rtol=rtol, atol=atol, err_msg=field
        )


@everywhere
def test_sampler_ends_where_the_path_ends(name, engine):
    """Save for the orbit kernel, whose path shows draws and whose chain is at an origin."""
    seed = schuss.Sampler(seed=7)._next_seed()
    last = run(name, engine, steps=12, keep="moments" if name == "esh-persistent" else "last")
    path = follow(name, engine, seed=seed)
    assert isinstance(last.x, np.ndarray) and last.x.dtype == np.float64
    assert last.frozen.shape == (CHAINS,) and not last.frozen.any()
    assert last.gradients == path.gradients
    if name != "esh-orbit":
        np.testing.assert_allclose(last.x, path.x[-1], rtol=1e-11, atol=1e-12)


@everywhere
@pytest.mark.parametrize(
    "keep", ["moments", pytest.param("reservoir", marks=pytest.mark.slow), "last"]
)
def test_extended_run_is_the_uninterrupted_one(name, engine, keep):
    if (name, keep) == ("esh-persistent", "last"):
        pytest.skip("the last state is no sample there, and refused")
    first = run(name, engine, steps=5, keep=keep)
    once, again = first.extend(7), first.extend(7)
    want = run(name, engine, steps=12, keep=keep)
    assert once.gradients == want.gradients
    for got in (once, again):
        np.testing.assert_array_equal(got.x, want.x)
        np.testing.assert_array_equal(got.last, want.last)
        if keep == "moments":
            for part, kept in zip(got.moments, want.moments, strict=True):
                np.testing.assert_array_equal(part, kept)


@pytest.mark.parametrize("engine", ["numpy", "torch"])
def test_box_is_that_of_the_target_under_a_metric(engine):
    """The walls are where the user put them, in whatever coordinates the kernel moves."""
    box, metric = (-1.0, [0.8, 0.9, 1.0, 1.1, 1.2]), [0.5, 1.0, 2.0, 3.0, 0.1]
    path = schuss.trajectory(
        TARGET,
        init=np.clip(START, -0.7, 0.7),
        sampler=schuss.ESH(0.3, metric=metric, box=box),
        steps=300,
        engine=engine,
    )
    lower, upper = np.broadcast_to(box[0], DIM), np.asarray(box[1])
    slack = 1e-12
    assert np.all((path.x >= lower - slack) & (path.x <= upper + slack))
    span = path.x.max(axis=(0, 1)) - path.x.min(axis=(0, 1))
    assert np.all(span[:4] > 0.9 * (upper - lower)[:4])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("engine", ["numpy", "jax", "torch"])
def test_samples_from_a_box_are_starts_in_it(engine, dtype):
    """1.1 in float32 lies above 1.1; long steps without a force end at walls again and again."""
    flat = {
        "numpy": lambda x: (np.zeros(len(x), x.dtype), np.zeros_like(x)),
        "jax": lambda x: 0.0 * x.sum(),
        "torch": lambda x: 0.0 * x.sum(-1),
    }
    box, metric = (-1.1, [1.1, 2.3, 0.7]), [0.3, 1.7, 7.0]
    x = np.asarray([box[1], [-1.1, -1.1, -1.1]]).repeat(200, axis=0).astype(dtype)
    sampler = schuss.Sampler(
        schuss.ESH(1.0, box=box, metric=metric), steps=3, engine=engine, seed=1
    )
    name = "value_and_grad" if engine == "numpy" else "energy"
    for _ in range(3):
        x = sampler(init=x, **{name: flat[engine]})
        assert x.dtype == dtype
    beyond = np.maximum(box[0] - x, x - box[1]).max()
    assert beyond < 1e-6
    outside = np.full((1, 3), 0.7 + 1e-4, dtype)
    with pytest.raises(ValueError, match="init must lie inside the box"):
        sampler(init=outside, **{name: flat[engine]})


@pytest.mark.parametrize("name", ["esh", "esh-endpoint", "hmc"])
def test_weights_of_a_thinned_path(name):
    """A state counts what it counts in the whole path, also where thinning skips a window's end."""
    want = whole(name, "numpy").weights[1::2]
    path = follow(name, "numpy", every=2)
    np.testing.assert_allclose(path.weights, want / want.sum(), rtol=1e-12)
