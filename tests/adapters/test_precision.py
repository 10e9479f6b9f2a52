"""64 bits for models and functions, and what other code in the process sees of it."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import schuss
from schuss.adapters.over import gradients
from schuss.adapters.question import ask
from schuss.engines.width import wide

SINGLE = np.zeros(2, np.float32)

WIDE = {
    "numpy": np.zeros(2),
    "batch": np.zeros((4, 2)),
    "list": [0.0, 0.0],
    "whole": np.zeros(2, int),
    "jax": jnp.zeros(2),
    "whole, jax": jnp.zeros(2, int),
    "function": lambda rng, chains: jnp.zeros((chains, 2)),
    "of one": lambda rng: jnp.zeros(2),
    "dict": {"x": np.zeros(2)},
    "dict, jax": {"x": jnp.zeros(2)},
    "nest": ({"x": SINGLE}, [0.0]),
}

NARROW = {
    "numpy": SINGLE,
    "batch": np.zeros((4, 2), np.float32),
    "function": lambda rng, chains: np.zeros((chains, 2), np.float32),
    "dict": {"x": SINGLE},
    "nest": ({"x": SINGLE}, [np.float32(0)]),
}


def widths(init):
    """Of the chains, and of what the function is called with."""
    seen = set()

    def logdensity(p):
        seen.update(leaf.dtype.name for leaf in jax.tree.leaves(p))
        return -sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(p))

    asked = ask(
        None,
        energy=None,
        logdensity=logdensity,
        value_and_grad=None,
        init=init,
        chains=None,
        seed=0,
        engine="auto",
    )
    return {asked.problem.x.dtype.name} | seen


@pytest.mark.parametrize("switch", [False, True])
@pytest.mark.parametrize("name", WIDE)
def test_functions_are_followed_in_64_bits(name, switch):
    with jax.enable_x64(switch):
        assert widths(WIDE[name]) == {"float64"}


@pytest.mark.parametrize("switch", [False, True])
@pytest.mark.parametrize("name", NARROW)
def test_but_for_numpy_arrays_of_float32(name, switch):
    with jax.enable_x64(switch):
        assert "float32" in widths(NARROW[name])


@pytest.mark.parametrize("library", ["pymc", "numpyro"])
@pytest.mark.parametrize("init", [None, SINGLE[:1]], ids=["its own", "float32"])
def test_models_are_followed_in_64_bits(library, init):
    """A third is known to 16 digits in the gradient of the log-density of N(1/3, 1)."""
    module = pytest.importorskip(library)
    if library == "pymc":
        with module.Model() as given:
            module.Normal("x", 1 / 3)
        model = schuss.from_pymc(given)
    else:
        model = schuss.from_numpyro(
            lambda: module.sample("x", module.distributions.Normal(1 / 3, 1.0))
        )
    given = dict.fromkeys(("energy", "logdensity", "value_and_grad"))
    asked = ask(model, **given, init=init, chains=1, seed=0, engine="auto")
    assert asked.problem.x.dtype == np.float64
    with wide():
        _, g = asked.problem.grad_fn(np.zeros((1, 1)))
    assert abs(float(g[0, 0]) + 1 / 3) < 1e-15


def log_density(data, place):
    return lambda x: -jnp.sum((x[place] - data) ** 2) / 2


def test_data_are_shared_with_code_in_32_bits():
    """JAX would hand on the data of whichever of the two came first, and fail in the other."""
    place, data = np.array([0, 1, 1, 2]), np.array([0.1, 0.2, 0.3, 0.4])
    x, exact = np.zeros((1, 3)), -0.5 * np.sum(data**2)
    compiled = jax.jit(log_density(data, place))
    with jax.enable_x64(False):
        narrow = compiled(jnp.zeros(3))
    for function in (compiled, log_density(data, place)):
        value, gradient = gradients(function)(x)
        assert abs(value[0] - exact) < 1e-15
        np.testing.assert_allclose(gradient[0], [0.1, 0.5, 0.4], rtol=1e-15)
        given = dict.fromkeys(("energy", "value_and_grad"))
        asked = ask(None, **given, logdensity=function, init=x, chains=None, seed=0, engine="auto")
        with wide():
            energy, _ = asked.problem.grad_fn(x)
        assert abs(np.asarray(energy)[0] + exact) < 1e-15
    with jax.enable_x64(False):
        assert compiled(jnp.zeros(3)) == narrow and narrow.dtype == np.float32
        assert jax.jit(log_density(data, place))(jnp.zeros(3)) == narrow
        assert jnp.zeros(4)[place].dtype == np.float32


def test_a_constant_is_kept_once_and_not_for_ever():
    """As where JAX keeps arrays: twice in a computation they are one constant of it."""
    data = np.arange(3.0)
    with wide():
        pass
    for switch in (False, True, False):
        with jax.enable_x64(switch):
            closed = jax.make_jaxpr(lambda x: x * data + data)(1.0)
        (constant,) = closed.consts
        assert constant.dtype == (np.float64 if switch else np.float32)
    del closed, constant
    data[:] = 7
    with jax.enable_x64(False):
        np.testing.assert_array_equal(jax.jit(lambda x: x * data)(1.0), [7, 7, 7])


OTHERS = """
import os, sys, warnings
import jax, jax.numpy as jnp, numpy as np
switch = sys.argv[1] == "True"
jax.config.update("jax_enable_x64", switch)
import blackjax, numpyro, numpyro.distributions as dist
import schuss
from numpyro.infer import MCMC, NUTS, Predictive

place, data = np.array([0, 1, 1, 2]), np.array([0.1, 0.2, 0.3, 0.4])

def model(place, data=None):
    x = numpyro.sample("x", dist.Normal(0, 1).expand([3]).to_event(1))
    numpyro.sample("y", dist.Normal(x[place], 1.0), obs=data)

def others():
    key = jax.random.key(0)
    run = MCMC(NUTS(model), num_warmup=2, num_samples=2, progress_bar=False)
    run.run(key, place, data)
    draws = run.get_samples()
    drawn = Predictive(model, draws)(key, place)
    log_density = lambda x: -jnp.sum((x[place] - data) ** 2) / 2
    nuts = blackjax.nuts(log_density, step_size=0.1, inverse_mass_matrix=jnp.ones(3))
    moved, _ = jax.jit(nuts.step)(key, nuts.init(jnp.zeros(3)))
    plain = jax.jit(jax.value_and_grad(log_density))(jnp.ones(3))
    return list(map(np.asarray, jax.tree.leaves((draws, drawn, moved, plain))))

before = others()
adapted = schuss.from_numpyro(model, place, data)
schuss.sample(adapted, sampler=schuss.HMC(step_size=0.1), draws=4, chains=2, progress=False)
for one, other in zip(before, others(), strict=True):
    assert one.dtype == other.dtype and one.dtype.itemsize <= (8 if switch else 4)
    np.testing.assert_array_equal(one, other)
assert jax.config.jax_enable_x64 == switch
"""

PYMC = """
import os, sys
flags = os.environ.get("XLA_FLAGS")
import jax, numpy as np, pymc as pm, pytensor, schuss
with pm.Model() as model:
    pm.Censored("y", pm.Normal.dist(pm.Normal("m"), 1.0), lower=-1.0, upper=None, observed=[-1.0])
first = schuss.from_pymc(model).constrain(np.ones((1, 1, 1)))
assert not jax.config.jax_enable_x64 and os.environ.get("XLA_FLAGS") == flags
assert not [name for name in sys.modules if name.startswith("pytensor.link.jax.dispatch")]
assert "pymc.sampling.jax" not in sys.modules
from pymc.sampling.jax import get_jaxified_graph
from pytensor.link.jax.dispatch import jax_funcify
from pytensor.scalar.basic import Log1p
assert jax.config.jax_enable_x64  # as where schuss isn't there
theirs = dict(jax_funcify.registry)
with jax.enable_x64(False):
    again = schuss.from_pymc(model).constrain(np.ones((1, 1, 1)))
np.testing.assert_array_equal(first["m"], again["m"])
assert jax_funcify.dispatch(Log1p) is jax_funcify.dispatch(Log1p.__mro__[1])
(value,) = get_jaxified_graph(model.value_vars, [model.value_vars[0] * 2])(np.ones(()))
assert value == 2 and jax.config.jax_enable_x64
"""


def process(script, *arguments):
    environment = {name: value for name, value in os.environ.items() if name != "JAX_ENABLE_X64"}
    command = [sys.executable, "-W", "ignore", "-c", script, *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("switch", [False, True])
def test_other_libraries_work_on_as_before(switch):
    """NumPyro, BlackJAX and plain JAX give the same numbers before and after, in both widths."""
    pytest.importorskip("numpyro")
    pytest.importorskip("blackjax")
    process(OTHERS, switch)


def test_pymc_finds_jax_as_if_nobody_had_been_there():
    pytest.importorskip("pymc")
    process(PYMC)
