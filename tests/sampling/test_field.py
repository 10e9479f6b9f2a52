"""Energies, gradients and steps in the coordinates of a metric, on every engine."""

import jax
import numpy as np
import pytest

import schuss
from schuss.coordinates import Diagonal, LowRank
from schuss.core import adaptive, persistent, thinned
from schuss.core.kernel import Kernel, Noise
from schuss.problem import pose
from schuss.sampling.archive import Archive
from schuss.sampling.exact import EXACT
from schuss.sampling.field import Field
from schuss.sampling.flow import FLOW

TARGET = schuss.targets.quartic(4)
LINE = schuss.targets.double_well(1)
CHAINS, DIM = 3, 4
_RNG = np.random.default_rng(0)
START = _RNG.standard_normal((CHAINS, DIM))
SCALE = np.array([0.5, 1.0, 2.0, 0.3])
VECTORS = np.linalg.qr(_RNG.standard_normal((DIM, DIM)))[0]
METRICS = {
    "diagonal": Diagonal(SCALE),
    "low rank": LowRank(SCALE, VECTORS, np.array([1.0, -0.5, 0.0, 0.2])),
}
ENGINES = ["numpy", "jax", "torch"]


def field(engine, target=TARGET, start=START, temperature=1.0, dtype=float):
    problem = pose(target, init=start.astype(dtype), engine=engine)
    return Field.over(problem, 3, temperature)


def begin(field, metric, kernel, x=START):
    """Parameters and a state at `x`."""
    rng = np.random.default_rng(1)
    dim = x.shape[1]
    u = rng.standard_normal(x.shape)
    u = u / np.linalg.norm(u, axis=-1, keepdims=True)
    z, nothing = metric.inverse(np, x), np.zeros(len(x))
    energy, g = field.evaluate(x)
    point = (z, u, nothing, energy, metric.pull(np, z, g))
    if kernel is FLOW:
        state = adaptive.State(*point, nothing + 0.3, nothing, nothing)
        return adaptive.Params(0.3, dim - 1.0, 0.5, 0.01, 1.0, 1.0, 1.0, 5.0), state
    params = persistent.Params(*map(np.float64, (0.8, dim - 1.0, dim - 1.0, 0.3, 2.0, 0.4)))
    noise = Noise(u, rng.uniform(size=(len(x), 1)))
    return params, kernel.init(np, z, *point[3:], noise, params)


def run(field, metric, kernel: Kernel, counts, x=START):
    params, state = begin(field, metric, kernel, x)
    source, first, parts = field.source(1, 2), 0, []
    for count in counts:
        state, source, rows = field.advance(kernel, params, metric, state, first, count, source)
        first += count
        parts.append(rows)
    return parts


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("temperature", [1.0, 8.0])
def test_evaluate(engine, temperature):
    energy, g = field(engine, temperature=temperature).evaluate(START)
    assert energy.dtype == g.dtype == np.float64
    np.testing.assert_allclose(energy, TARGET.energy(np, START) / temperature, rtol=1e-13)
    np.testing.assert_allclose(g, TARGET.gradient(np, START) / temperature, rtol=1e-13)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_line_gets_one_more_coordinate(engine):
    x = np.array([[0.3, -1.0], [2.0, 0.5]])
    lifted = field(engine, LINE, x[:, :1])
    assert lifted.dim == 2
    energy, g = lifted.evaluate(x)
    np.testing.assert_allclose(energy, LINE.energy(np, x[:, :1]) + x[:, 1] ** 2 / 2, rtol=1e-13)
    np.testing.assert_allclose(g[:, :1], LINE.gradient(np, x[:, :1]), rtol=1e-13)
    np.testing.assert_allclose(g[:, 1], x[:, 1], rtol=1e-13)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kernel", [FLOW, EXACT], ids=["flow", "exact"])
@pytest.mark.parametrize("name", METRICS)
def test_rows_are_in_the_coordinates_of_the_target(engine, kernel, name):
    """Energies and gradients are those of the target at the positions that are shown."""
    (rows,) = run(field(engine), METRICS[name], kernel, [12])
    x, g = rows.x(), rows.g()
    assert x.shape == g.shape == (12, CHAINS, DIM) and rows.energy.shape == (12, CHAINS)
    flat = x.reshape(-1, DIM)
    np.testing.assert_allclose(
        rows.energy.reshape(-1), TARGET.energy(np, flat), rtol=1e-10, atol=1e-12
    )
    np.testing.assert_allclose(g.reshape(-1, DIM), TARGET.gradient(np, flat), rtol=1e-8, atol=1e-10)
    np.testing.assert_array_equal(rows.x(-1), x[-1])
    np.testing.assert_array_equal(rows.g([1, 3], 2), g[[1, 3], 2])
    assert rows.complete.dtype == bool and rows.complete.any()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kernel", [FLOW, EXACT], ids=["flow", "exact"])
def test_in_pieces_it_is_the_same_path(engine, kernel):
    whole = run(field(engine), METRICS["diagonal"], kernel, [12])[0]
    pieces = run(field(engine), METRICS["diagonal"], kernel, [5, 1, 6])
    for name in ("z", "pull", "energy", "error", "acceptance", "complete"):
        joined = np.concatenate([getattr(rows, name) for rows in pieces])
        np.testing.assert_array_equal(joined, getattr(whole, name), err_msg=name)


def test_noise_is_a_function_of_the_seed_and_the_place():
    one = field("numpy")
    assert one.source(1, 2) == one.source(1, 2)
    places = [one.source(a, b) for a in range(5) for b in range(200)]
    assert len(set(places)) == len(places)
    other = Field.over(pose(TARGET, init=START, engine="numpy"), 4, 1.0)
    assert other.source(1, 2) != one.source(1, 2)
    assert all(0 <= place < 2**63 for place in places)


@pytest.mark.parametrize("engine", ENGINES)
def test_single_precision_stays(engine):
    """And the global switch of JAX is left alone."""
    (rows,) = run(field(engine, dtype=np.float32), METRICS["low rank"], FLOW, [4])
    assert rows.z.dtype == np.float32 and rows.x().dtype == np.float64
    assert not jax.config.jax_enable_x64


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kernel", [FLOW, EXACT], ids=["flow", "exact"])
def test_states_passed_over_within_the_loop_are_those_left_out_afterwards(engine, kernel):
    """Archives of every fifth state, from all steps and from a loop that tells of one in five."""
    ours, metric, every, archives = field(engine), METRICS["diagonal"], 5, []
    for stride in (1, every):
        params, state = begin(ours, metric, kernel)
        archive, source, first = Archive(*START.shape, every), ours.source(1, 2), 0
        for count in (40, 35, 60):
            used = kernel, params, state
            if kernel is EXACT:
                numbers = archive.counts % stride
                around = thinned.beginning(state, numbers, np.zeros(len(START)))
                used = thinned.kernel(kernel), thinned.Params(params, stride, 1000.0), around
            sampler, told, state = used
            state, source, rows = ours.advance(
                sampler, told, metric, state, first, count // stride, source, stride
            )
            if kernel is FLOW:
                rows = rows._replace(complete=np.ones_like(rows.complete, bool))
            state, first = getattr(state, "inner", state), first + count
            archive.add(rows)
        archives.append(archive)
    one, other = archives
    np.testing.assert_array_equal(one.counts, other.counts)
    assert one.size >= 15 and (kernel is FLOW or np.ptp(one.counts) > 0)
    for name in ("x", "g", "energy", "error", "acceptance"):
        for chain in range(len(START)):
            np.testing.assert_array_equal(one.chain(name, chain), other.chain(name, chain))
