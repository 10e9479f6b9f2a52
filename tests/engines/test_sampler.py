"""`Sampler`: what it keeps, in constant memory, and what becomes of chains that break."""

import subprocess
import sys
import tracemalloc

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
import torch
from seeds import shifted

import schuss
from schuss import ESH, HMC, ULA, NoseHoover, Unscaled

from .algorithms import ALGORITHMS, CHAINS, DIM, START, TARGET

ENGINES = ("numpy", "jax", "torch")
LENGTH = 30


def path_of(sampler, **given):
    """The path that the first call of a sampler with the same seed would follow."""
    seed = schuss.Sampler(seed=sampler.seed)._next_seed()
    return schuss.trajectory(
        sampler=sampler.algorithm, steps=sampler.steps, seed=seed, engine=sampler.engine, **given
    )


MOMENTS = ("esh", "esh-speed", "esh-time", "esh-metric", "esh-orbit", "hmc", "esh-persistent")


@pytest.mark.parametrize(
    ("name", "engine"),
    [
        pytest.param(
            name,
            engine,
            marks=[pytest.mark.slow]
            if engine == "jax" and name not in ("esh", "esh-orbit")
            else [],
        )
        for engine in ENGINES
        for name in MOMENTS
    ],
)
def test_moments_are_those_of_the_path(name, engine):
    """Weighted mean, variance, energy, Σw and Σw² of every chain, to 1e-10."""
    sampler = schuss.Sampler(ALGORITHMS[name], steps=LENGTH, keep="moments", seed=2, engine=engine)
    moments = sampler.run(target=TARGET, init=START).moments
    assert moments is not None
    path = path_of(sampler, target=TARGET, init=START)
    windowed = name == "esh-orbit"
    for chain in range(CHAINS):
        logs = path.log_weight[:, chain]
        ends = np.flatnonzero(path.complete[:, chain]) + 1
        weights = np.exp(logs)
        if windowed:
            weights[ends[-1] :] = 0
            for begin, end in zip([0, *ends], ends, strict=False):
                weights[begin:end] /= weights[begin:end].sum()
            totals = (
                len(ends),
                sum(np.sum(weights[b:e] ** 2) for b, e in zip([0, *ends], ends, strict=False)),
            )
        else:
            totals = weights.sum(), np.sum(weights**2)
        x, energy = path.x[1:, chain], path.energy[1:, chain]
        mean = np.average(x, axis=0, weights=weights)
        close = {"rtol": 1e-10, "atol": 1e-10}
        np.testing.assert_allclose(moments.mean[chain], mean, **close)
        np.testing.assert_allclose(
            moments.variance[chain], np.average((x - mean) ** 2, axis=0, weights=weights), **close
        )
        np.testing.assert_allclose(
            moments.energy[chain], np.average(energy, weights=weights), **close
        )
        np.testing.assert_allclose(moments.log_total[chain], np.log(totals[0]), **close)
        np.testing.assert_allclose(moments.log_squares[chain], np.log(totals[1]), **close)


@pytest.mark.parametrize("engine", ENGINES)
def test_reservoir_holds_a_state_of_the_path(engine):
    """Torch draws the reservoir's uniforms from the same stream: there, of a deterministic flow."""
    sampler = schuss.Sampler(
        ALGORITHMS["esh"], steps=LENGTH, keep="reservoir", seed=2, engine=engine
    )
    run = sampler.run(target=TARGET, init=START)
    path = path_of(sampler, target=TARGET, init=START)
    for chain in range(CHAINS):
        gap = np.abs(path.x[1:, chain] - run.x[chain]).max(axis=-1)
        assert gap.min() < 1e-12
    np.testing.assert_allclose(run.last, path.x[-1], rtol=0, atol=1e-12)
    assert not np.array_equal(run.x, run.last)


@pytest.mark.parametrize("engine", ENGINES)
def test_calls_use_different_noise(engine):
    def sampler(seed=0):
        return schuss.Sampler(ULA(0.3), steps=3, seed=seed, engine=engine)

    first, other = sampler(), sampler(1)
    calls = [first.run(target=TARGET, init=START).x for _ in range(3)]
    calls.append(other.run(target=TARGET, init=START).x)
    for i in range(4):
        for j in range(i):
            assert np.all(calls[i] != calls[j])
    again = sampler()
    for want in calls[:3]:
        np.testing.assert_array_equal(again.run(target=TARGET, init=START).x, want)


@pytest.mark.parametrize("engine", ENGINES)
def test_calls_use_different_noise_with_a_numpy_integer_as_seed(engine):
    sampler = schuss.Sampler(ULA(0.3), steps=3, seed=np.int64(3), engine=engine)
    first, second = (sampler.run(target=TARGET, init=START).x for _ in range(2))
    assert np.all(first != second)


@pytest.mark.parametrize("engine", ENGINES)
def test_reservoir_takes_every_state_by_its_weight(engine):
    """How often each step is chosen, against the weights of every chain's own path.

    Twelve counts of 4000 chains, each within 5 sigma: p = 7e-6 in all.
    """
    init = np.random.default_rng(shifted(1)).standard_normal((4000, DIM)) * 2
    sampler = schuss.Sampler(ESH(0.8), steps=12, keep="reservoir", seed=shifted(5), engine=engine)
    chosen = sampler.run(target=TARGET, init=init).x
    path = path_of(sampler, target=TARGET, init=init)
    gaps = np.abs(path.x[1:] - chosen).max(axis=-1)
    assert np.all(gaps.min(axis=0) < 1e-10)
    counts = np.bincount(gaps.argmin(axis=0), minlength=12)
    weights = np.exp(path.log_weight)
    p = weights / weights.sum(axis=0)
    sigma = np.sqrt(np.sum(p * (1 - p), axis=1))
    assert np.all(np.abs(counts - p.sum(axis=1)) < 5 * sigma)
    # The test would see a reservoir that forgets the weights.
    assert np.max(np.abs(len(init) / 12 - p.sum(axis=1)) / sigma) > 8


def test_reservoir_samples_a_normal_variable():
    """In one dimension, where κ = d = 2 visits variance 2. Chi-square on 20 bins: p = 3e-7."""
    init = np.random.default_rng(shifted(2)).standard_normal((20_000, 1))
    sampler = schuss.Sampler(
        ESH(0.15, refresh=2.0), steps=200, keep="reservoir", seed=shifted(5), engine="numpy"
    )
    target = schuss.targets.isotropic(1)
    run = sampler.run(target=target, init=init)
    edges = scipy.stats.norm.ppf(np.arange(1, 20) / 20)
    limit = scipy.stats.chi2.isf(3e-7, 19)

    def chi_square(x):
        counts = np.bincount(np.searchsorted(edges, x[:, 0]), minlength=20)
        return np.sum((counts - 1000) ** 2) / 1000

    assert run.x.shape == init.shape
    assert chi_square(run.x) < limit
    assert chi_square(run.last) > 10 * limit


def run_for(engine, steps):
    sampler = schuss.Sampler(
        ESH(0.3, refresh=4.0), steps=steps, keep="reservoir", seed=1, engine=engine
    )
    return sampler.run(target=TARGET, init=START)


def test_numpy_memory_does_not_grow_with_steps():
    """A path of the additional states would take 400 kB."""
    run_for("numpy", 10)
    peaks = []
    for steps in (500, 3_000):
        tracemalloc.start()
        run_for("numpy", steps)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 50_000


MEMORY = """
import resource, sys
import numpy as np
import schuss
engine, few, many, limit = sys.argv[1], *map(int, sys.argv[2:])
target = schuss.targets.isotropic(128)
start = np.random.default_rng(0).standard_normal((32, 128))
def peak(steps):
    sampler = schuss.Sampler(schuss.ESH(.3), steps=steps, keep="reservoir", engine=engine)
    assert np.isfinite(sampler.run(target=target, init=start).x).all()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
peak(few)
growth = -peak(few) + peak(many)
print(growth)
assert growth < limit, growth
"""


@pytest.mark.parametrize(
    ("engine", "few", "many"),
    [
        ("torch", 300, 3_000),
        pytest.param("jax", 1_000, 1_000_000, marks=pytest.mark.slow),
    ],
)
def test_memory_does_not_grow_with_steps(engine, few, many):
    """A path of the additional states would take 88 MB in torch, 33 GB in JAX."""
    subprocess.run(
        [sys.executable, "-c", MEMORY, engine, str(few), str(many), str(12_000_000)],
        check=True,
        timeout=500,
    )


RADIUS = 6.0


def beyond(x):
    """Outside a ball, which a chain may leave at any time."""
    return (x * x).sum(-1) >= RADIUS**2


def wall(x):
    """Between the lost chain and the others, who all go downhill."""
    return (x[..., 0] > 4) & (x[..., 0] < 5)


def broken(engine, kind, where=wall):
    """½|x|², not finite somewhere; with kind=None it is."""

    def energy(xp, x):
        whole = 0.5 * (x * x).sum(-1)
        if kind is None:
            return whole
        return xp.where(where(x), xp.full_like(whole, float(kind)), whole)

    if engine == "numpy":
        return {"value_and_grad": lambda x: (energy(np, x), x)}
    if engine == "torch":
        return {"energy": lambda x: energy(torch, x)}
    return {"energy": lambda x: energy(jnp, x)}


ABOVE = np.concatenate([0.5 * START, [[5.3, 0.1, 0.0, 0.0, 0.0]]])
DOWN = np.concatenate([np.random.default_rng(8).standard_normal((4, 5)), [[-1.0, 0, 0, 0, 0]]])
EDGE = np.concatenate([0.5 * START, [[RADIUS - 0.05, 0.1, 0.0, 0.0, 0.0]]])
OTHERS, LOST = slice(0, 4), 4
FLOWS = {
    "esh": ESH(0.1),
    "esh-refresh": ESH(0.1, refresh=4.0),
    "esh-minimal-norm": ESH(0.1, integrator="minimal-norm"),
    "esh-time": ESH(0.1, weight="time"),
    "ula": ULA(0.1),
    "nose-hoover": NoseHoover(0.05),
    "unscaled": Unscaled(0.05, q=0.0),
}
EXACT = {
    "endpoint": ESH(0.1, adjust="endpoint", steps=3),
    "orbit": ESH(0.1, adjust="orbit", steps=4),
    "persistent": ESH(0.1, adjust="persistent", refresh=2.0),
    "hmc": HMC(0.1, steps=3),
}
BREAKS = [
    pytest.param(
        name,
        engine,
        kind,
        marks=[pytest.mark.slow] if engine == "jax" and (name, kind) != ("esh", "nan") else [],
    )
    for engine in ENGINES
    for kind in ("nan", "inf")
    for name in FLOWS
]


@pytest.mark.parametrize(("name", "engine", "kind"), BREAKS)
def test_a_broken_chain_is_frozen_and_counted(name, engine, kind):
    """Bit for bit; XLA fuses the two energies differently, so to 1e-12 there."""

    def follow(kind):
        return schuss.trajectory(
            **broken(engine, kind),
            init=ABOVE,
            velocity=DOWN,
            sampler=FLOWS[name],
            steps=40,
            seed=3,
            engine=engine,
        )

    path, sound = follow(kind), follow(None)
    assert not sound.frozen.any()
    np.testing.assert_array_equal(path.frozen, [False] * 4 + [True])
    atol = 1e-12 if engine == "jax" else 0
    for field in ("x", "u", "r", "energy", "hamiltonian", "log_weight", "energy_error"):
        got, want = getattr(path, field)[:, OTHERS], getattr(sound, field)[:, OTHERS]
        np.testing.assert_allclose(got, want, rtol=0, atol=atol, err_msg=field)
        if field != "log_weight":
            assert np.all(np.isfinite(getattr(path, field))), field

    end = int(wall(sound.x[:, LOST]).argmax())
    assert 1 < end < 40
    np.testing.assert_allclose(path.x[:end, LOST], sound.x[:end, LOST], rtol=0, atol=atol)
    np.testing.assert_array_equal(
        path.x[end:, LOST], np.broadcast_to(path.x[end - 1, LOST], (41 - end, DIM))
    )
    assert np.all(path.log_weight[end - 1 :, LOST] == -np.inf)
    assert np.all(path.weights[end - 1 :, LOST] == 0)
    assert np.all(np.isfinite(path.weights)) and path.weights.sum() == pytest.approx(1)
    assert np.all(np.isfinite(path.mean()))


@pytest.mark.parametrize("engine", ["numpy", "torch", pytest.param("jax", marks=pytest.mark.slow)])
def test_what_is_collected_ignores_the_time_after_the_break(engine):
    def collect(keep, kind):
        sampler = schuss.Sampler(ESH(0.1), steps=60, keep=keep, seed=4, engine=engine)
        run = sampler.run(init=ABOVE, **broken(engine, kind))
        return run, path_of(sampler, init=ABOVE, **broken(engine, kind))

    run, path = collect("moments", "nan")
    np.testing.assert_array_equal(run.frozen, [False] * 4 + [True])
    alive = path.log_weight[:, LOST] > -np.inf
    assert 2 < alive.sum() < 60
    weights, x = np.exp(path.log_weight[alive, LOST]), path.x[1:][alive, LOST]
    mean = np.average(x, axis=0, weights=weights)
    np.testing.assert_allclose(run.moments.mean[LOST], mean, rtol=0, atol=1e-10)
    sound, _ = collect("moments", None)
    for part, want in zip(run.moments, sound.moments, strict=True):
        np.testing.assert_allclose(part[OTHERS], want[OTHERS], rtol=0, atol=1e-12)
        assert np.all(np.isfinite(part))

    run, path = collect("reservoir", "nan")
    alive = np.flatnonzero(path.log_weight[:, LOST] > -np.inf)
    gaps = np.abs(path.x[1:, LOST] - run.x[LOST]).max(axis=-1)
    assert gaps[alive].min() < 1e-10
    assert np.all(np.isfinite(run.x)) and np.all(np.isfinite(run.last))


@pytest.mark.parametrize("engine", ["numpy", "torch"])
def test_a_chain_that_breaks_at_once_has_no_weight(engine):
    """Its moments are empty and its reservoir holds the start: nothing is invented."""
    init = EDGE.copy()
    init[LOST] = [RADIUS - 1e-9, 0, 0, 0, 0]
    init = np.repeat(init, 8, axis=0)
    for keep in ("moments", "reservoir"):
        sampler = schuss.Sampler(ESH(0.5), steps=1, keep=keep, seed=4, engine=engine)
        run = sampler.run(init=init, **broken(engine, "nan", beyond))
        lost = np.asarray(run.frozen)
        assert 1 <= lost.sum() <= 8 and not lost[:32].any()
        np.testing.assert_array_equal(run.last[lost], init[lost])
        np.testing.assert_array_equal(run.x[lost], init[lost])
        if keep == "moments":
            assert np.all(run.moments.log_total[lost] == -np.inf)
            assert np.all(np.isfinite(run.moments.mean))


def test_a_gradient_that_breaks_freezes_too():
    def value_and_grad(x):
        return 0.5 * np.sum(x * x, axis=-1), np.where(wall(x)[:, None], np.nan, x)

    path = schuss.trajectory(
        value_and_grad=value_and_grad, init=ABOVE, velocity=DOWN, sampler=ESH(0.1), steps=40
    )
    np.testing.assert_array_equal(path.frozen, [False] * 4 + [True])
    assert np.all(np.isfinite(path.x))


@pytest.mark.parametrize("kind", ["nan", "inf"])
@pytest.mark.parametrize("engine", ["numpy", "torch"])
@pytest.mark.parametrize("name", EXACT)
def test_exact_samplers_refuse_instead(name, engine, kind):
    """A non-finite proposal is refused: the chain stays inside, lives on, and disturbs nobody."""

    def follow(kind):
        return schuss.trajectory(
            **broken(engine, kind, beyond),
            init=EDGE,
            velocity=3 * np.sign(EDGE),
            sampler=EXACT[name],
            steps=60,
            seed=3,
            engine=engine,
        )

    path, sound = follow(kind), follow(None)
    assert not path.frozen.any()
    assert np.all(np.linalg.norm(path.x, axis=-1) < RADIUS)
    assert np.linalg.norm(sound.x[:, LOST], axis=-1).max() >= RADIUS
    assert np.any(path.x[-1, LOST] != path.x[0, LOST])
    np.testing.assert_array_equal(path.x[:, OTHERS], sound.x[:, OTHERS])
    assert np.all(np.isfinite(path.weights)) and np.all(np.isfinite(path.energy))
