"""A function is sampled as it is when it is handed over, whatever was compiled for it before."""

import gc
import itertools
import subprocess
import sys
import warnings
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
import torch

import schuss
from schuss.engines.jax import loops
from schuss.engines.traced import MOST, content
from schuss.problem import launch, pose

from .compilations import compilations

DIM, CHAINS = 3, 8
START = np.random.default_rng(0).standard_normal((CHAINS, DIM))
centre = np.zeros(DIM)  # a global that a log-density reads
network = torch.nn.Linear(DIM, 1, dtype=torch.float64)


def logp(x):
    return -0.5 * jnp.sum((x - centre) ** 2)


def truth(x, value):
    return 0.5 * np.sum((np.asarray(x) - value) ** 2, axis=-1)


class Method:
    """An attribute that is another array from then on."""

    def __init__(self):
        self.y, self.logdensity = np.zeros(DIM), self.logp

    def logp(self, x):
        return -0.5 * jnp.sum((x - self.y) ** 2)

    def change(self, value):
        self.y = np.full(DIM, value)


class Global:
    logdensity = staticmethod(logp)

    def change(self, value):
        globals()["centre"] = np.full(DIM, value)


class InPlace:
    def __init__(self):
        y = self.y = np.zeros(DIM)
        self.logdensity = lambda x: -0.5 * jnp.sum((x - y) ** 2)

    def change(self, value):
        self.y[:] = value


class Batch(InPlace):
    """A log-density of a batch of positions."""

    def __init__(self):
        y = self.y = np.zeros(DIM)

        def logdensity(x):
            assert x.ndim == 2
            return -0.5 * jnp.sum((x - y) ** 2, axis=1)

        self.logdensity = logdensity


class Number(Method):
    """An attribute that JAX has no array for."""

    def __init__(self):
        self.y, self.logdensity = 0.0, self.logp

    def change(self, value):
        self.y = float(value)


class FarAway(Method):
    """Data that leave the log-density and its gradient as they were at every start."""

    def logp(self, x):
        beyond = jnp.where(x > 100, x - self.y, 0.0)
        return -0.5 * jnp.sum(x**2) - 0.5 * jnp.sum(beyond**2)


class Rule(Method):
    """A gradient of the user's own, which depends on the data while the value doesn't."""

    def logp(self, x):
        @jax.custom_jvp
        def energy(x):
            return 0.5 * jnp.sum(x**2)

        @energy.defjvp
        def _(primals, tangents):
            return energy(*primals), jnp.sum((primals[0] - self.y) * tangents[0])

        return -energy(x)


class Module:
    """A function of a network that was trained in between."""

    def __init__(self):
        with torch.no_grad():
            network.weight.zero_()

    @staticmethod
    def logdensity(x):
        return -0.5 * ((x - network.weight) ** 2).sum(-1)

    def change(self, value):
        with torch.no_grad():
            network.weight.fill_(value)


def trajectory(logdensity, init, engine):
    path = schuss.trajectory(
        logdensity=logdensity, init=init, sampler=schuss.ESH(0.1), steps=2, engine=engine
    )
    return path.x, path.energy


def inner(logdensity, init, engine):
    sampler = schuss.Sampler(schuss.ESH(0.1), steps=2, engine=engine)
    run = sampler.run(init=init, logdensity=logdensity)
    return np.asarray(run.last), np.asarray(run._state.energy)


def sample(logdensity, init, engine):
    sampler = schuss.ESH(0.1, adjust="endpoint", steps=2)
    given = {"gradients": 100, "sampler": sampler, "progress": False}
    post = schuss.sample(logdensity=logdensity, init=init, engine=engine, **given)
    return post.x, post.stats.energy


def evidence(logdensity, init, engine):
    found = schuss.evidence(
        logdensity=logdensity,
        reference=schuss.Normal(dim=DIM, sd=3.0),
        particles=32,
        max_gradients=1,
        engine=engine,
        progress=False,
    )
    return found.x, found.energy


CALLS = [trajectory, inner, sample, evidence]


def follow(call, logdensity, init=START, engine="jax"):
    """Positions of a short run, and the energies there that it says it moved in."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", schuss.NotConverged)
        if engine == "torch":
            init = torch.as_tensor(init)
        return call(logdensity, init, engine)


@pytest.mark.parametrize(
    ("kind", "call"),
    [
        *itertools.product([Method, Global, InPlace, Module], CALLS),
        (Batch, trajectory),
        (Number, trajectory),
    ],
)
def test_what_has_changed_since(kind, call):
    case, engine = kind(), "torch" if kind is Module else "jax"
    for value in (0.0, 3.0):
        case.change(value)
        x, energy = follow(call, case.logdensity, engine=engine)
        np.testing.assert_allclose(energy, truth(x, value), rtol=1e-9, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("call", [trajectory, inner])
def test_a_network_trained_since_it_was_compiled(call):
    """By torch.compile."""
    case = Module()
    for value in (0.0, 3.0):
        case.change(value)
        engine = schuss.engines.get("torch", compile=True)
        x, energy = call(case.logdensity, torch.as_tensor(START), engine)
        np.testing.assert_allclose(energy, truth(x, value), rtol=1e-9, atol=1e-9)


def test_what_shows_at_no_start():
    """What is compared is the computation, not some of its values."""
    case, far = FarAway(), START + 200
    paths = []
    for value in (0.0, 100.0):
        case.change(value)
        trajectory(case.logdensity, START, "jax")
        paths.append(trajectory(case.logdensity, far, "jax")[1])
    assert not np.allclose(paths[0], paths[1])
    assert case.logp(START[0]) == FarAway().logp(START[0])


def test_a_gradient_of_its_own():
    case = Rule()
    steps = []
    for value in (0.0, 3.0):
        case.change(value)
        x, energy = trajectory(case.logdensity, START, "jax")
        np.testing.assert_allclose(energy, truth(x, 0.0), rtol=1e-9)
        steps.append(x)
    assert not np.allclose(steps[0], steps[1])


@pytest.mark.parametrize(
    ("nest", "position"),
    [
        ({"a": np.zeros(()), "b": np.zeros(2)}, lambda x: jnp.append(x["b"], x["a"])),
        ([np.zeros(1), {"b": [np.zeros(2)]}], lambda x: jnp.append(x[0], x[1]["b"][0])),
    ],
    ids=["dict", "nest"],
)
def test_dicts_and_nests(nest, position):
    case = Method()

    def logdensity(x):
        return case.logp(position(x))

    for value in (0.0, 3.0):
        case.change(value)
        x, energy = follow(sample, logdensity, nest)
        np.testing.assert_allclose(energy, truth(x, value), rtol=1e-9, atol=1e-9)


shift = 0.0


def model(y):
    m = numpyro.sample("m", dist.Normal(shift, 1.0).expand([DIM]).to_event(1))
    numpyro.deterministic("above", m - shift)
    numpyro.sample("y", dist.Normal(m, 1.0), obs=y)


def test_a_global_of_a_numpyro_model(monkeypatch):
    """In its density, its deterministic values and its prior; and its data, in place."""
    y = np.zeros(DIM)
    ours = schuss.from_numpyro(model, y)
    for value in (0.0, 3.0):
        monkeypatch.setitem(globals(), "shift", value)
        y[:] = 2 * value
        given = {"gradients": 100, "sampler": schuss.MALA(0.1), "progress": False}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", schuss.NotConverged)
            post = schuss.sample(ours, **given)
            found = schuss.evidence(ours, particles=32, max_gradients=1, progress=False)
        for x, energy in ((post.x, post.stats.energy), (found.x, found.energy)):
            right = truth(x, value) + truth(x, 2 * value) + DIM * np.log(2 * np.pi)
            np.testing.assert_allclose(energy, right, rtol=1e-9)
        np.testing.assert_allclose(post.draws["above"], post.x - value, atol=1e-12)
        # 32 draws of 3 coordinates: a standard error of .1.
        assert abs(found.x.mean() - value) < 0.5


def test_what_the_user_jits_stays_as_it_is():
    case = Method()
    jitted = jax.jit(case.logp)
    for value in (0.0, 3.0):
        case.change(value)
        x, energy = trajectory(jitted, START, "jax")
        np.testing.assert_allclose(energy, truth(x, 0.0), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("call", CALLS)
def test_the_same_computation_compiles_once(call):
    """Unchanged, changed back, or written anew: in a loop, or for equal data."""
    case = Method()
    for value in (0.0, 3.0):
        case.change(value)
        follow(call, case.logdensity)
    before = compilations()
    for value in (0.0, 3.0, 3.0):
        case.change(value)
        follow(call, case.logdensity)
        y = np.full(DIM, value)
        follow(call, lambda x, y=y: -0.5 * jnp.sum((x - y) ** 2))
    assert compilations() == before


def test_dicts_compile_once():
    def once():
        follow(sample, lambda x: logp(x["m"]), {"m": np.zeros(DIM)})

    once()
    before = compilations()
    once()
    assert compilations() == before


def test_rules_for_gradients_compile_once():
    """JAX wraps them anew whenever it traces them."""

    @jax.custom_vjp
    def square(x):
        return jnp.sum(x**2) + 0 * jnp.logaddexp(x[0], x[1])

    square.defvjp(lambda x: (square(x), x), lambda x, g: (jnp.clip(2 * x, -1, 1) * g,))

    def energy(x):
        return jax.lax.cond(x[0] > 0, square, lambda x: square(x), x)

    def value_and_grad(x):
        return np.sum(x**2, axis=1), np.clip(2 * x, -1, 1)

    given = {"init": START, "velocity": START, "sampler": schuss.ESH(0.1), "steps": 2}
    schuss.trajectory(energy=energy, **given)
    before = compilations()
    path = schuss.trajectory(energy=energy, **given)
    assert compilations() == before
    right = schuss.trajectory(value_and_grad=value_and_grad, **given)
    np.testing.assert_allclose(path.x, right.x, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "functions",
    [
        (lambda x: x * 2.0, lambda x: x * np.float32(2.0000002)),
        (lambda x: x + 0.0, lambda x: x + -0.0),
        (lambda x: x[0] + x[1], lambda x: x[1] + x[0]),
        (lambda x: jnp.sum(x * np.arange(3.0)), lambda x: jnp.sum(x * np.arange(3.0)[::-1])),
        (lambda x: jnp.where(x > 0, x, np.nan), lambda x: jnp.where(x > 0, x, np.inf)),
        (jnp.cumsum, lambda x: jnp.cumsum(x[::-1])),
        (
            lambda x: jax.lax.fori_loop(0, 3, lambda i, s: s + x[i], 0.0),
            lambda x: jax.lax.fori_loop(0, 3, lambda i, s: s - x[i], 0.0),
        ),
    ],
)
def test_other_computations_have_other_contents(functions):
    """To the last bit of their constants. Twice the same has the same content, nan included."""
    one, again, other = (
        content(jax.make_jaxpr(lambda x, f=f: f(x))(np.zeros(3)))
        for f in (functions[0], *functions)
    )
    assert one == again and hash(one) == hash(again)
    assert one != other


def test_compiled_code_goes_with_functions_that_are_out_of_use():
    """Whether they are new ones or one whose data changed."""
    case, compiled = Method(), []
    for value in range(MOST + 2):
        case.change(value)
        function = case.logdensity if value % 2 else (lambda x, y=case.y: -jnp.sum((x - y) ** 2))
        problem = pose(logdensity=function, init=START)
        launch(problem, schuss.ESH(0.1), 0)
        compiled.append(weakref.ref(loops(problem.grad_fn).start))
    del problem
    gc.collect()
    assert [one() is None for one in compiled] == [True] * 2 + [False] * MOST


MEMORY = """
import sys, warnings
import jax.numpy as jnp, numpy as np, schuss

warnings.simplefilter("ignore")
y, start = np.zeros(5), np.zeros(5)

def logdensity(x):
    return -0.5 * jnp.sum((x - y) ** 2)

def megabytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / 1e6

for i in range(101):
    y[:] = i
    function = logdensity if sys.argv[1] == "changed" else lambda x, y=y.copy(): logdensity(x)
    post = schuss.sample(logdensity=function, init=start, draws=50, seed=0, progress=False)
    assert abs(post.draws.mean() - i) < 0.5
    if i == 0:
        before = megabytes()
print(megabytes() - before)
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["changed", "new"])
def test_a_hundred_data_sets_fit_in_memory(kind):
    ran = subprocess.run(
        [sys.executable, "-c", MEMORY, kind], capture_output=True, text=True, check=True
    )
    assert float(ran.stdout) < 200
