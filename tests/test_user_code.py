"""What a user's function did that can't be traced: in which line, and what to write instead."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import schuss

X = np.full(2, 0.5)


def turned(x):
    return -float(jnp.sum(x**2))


def item(x):
    return -jnp.sum(x**2).item()


def module(x):
    return -math.exp(x[0])


def numpy(x):
    return -np.sum(np.exp(x))


def asarray(x):
    return -jnp.sum(jnp.asarray(np.asarray(x)))


def library(x):
    return scipy.stats.norm.logpdf(x).sum()


def choice(x):
    return -jnp.sum(x**2) if x[0] > 0 else -jnp.sum(x**4)


def whole_choice(x):
    return -jnp.sum(x**2) if (x > 0) else -jnp.sum(x**4)


def index(x):
    return -[1.0, 2.0][x.astype(int)[0]] * x[0]


def mask(x):
    return -jnp.sum(x[x > 0])


def assignment(x):
    x[0] = 1.0
    return -jnp.sum(x**2)


DEEDS = {
    turned: ("turns an array into a plain number", "jnp.exp for math.exp"),
    item: ("turns an array into a plain number", "jnp.exp for math.exp"),
    module: ("turns an array into a plain number", "jnp.exp for math.exp"),
    numpy: ("hands an array to NumPy", "jnp.exp for np.exp"),
    asarray: ("hands an array to NumPy", "jnp.exp for np.exp"),
    library: ("hands an array to NumPy or to another library", "jax.numpy"),
    choice: ("decides by the value of an array", "jnp.where(condition, a, b) or jax.lax.cond"),
    whole_choice: ("decides by the value of an array", "jnp.where"),
    index: ("takes an array for a plain integer", "jnp.asarray"),
    mask: ("picks entries by a mask", "jnp.where(mask, values, 0.0)"),
    assignment: ("assigns to entries of an array", "x.at[index].set(value)"),
}


def calls(function):
    """Every call that takes a function, and what it calls it."""
    normal = schuss.Normal(dim=2)
    return {
        "sample": (lambda: schuss.sample(logdensity=function, init=X), "logdensity"),
        "nest": (
            lambda: schuss.sample(logdensity=lambda p: function(p["a"]), init={"a": X}),
            "logdensity",
        ),
        "from_pytree": (lambda: schuss.from_pytree(energy=function, init=X), "energy"),
        "trajectory": (lambda: schuss.trajectory(energy=function, init=X), "energy"),
        "Sampler": (lambda: schuss.Sampler()(function, X[None]), "energy"),
        "evidence": (lambda: schuss.evidence(energy=function, reference=normal), "energy"),
    }


NAMES = tuple(calls(turned))


@pytest.mark.parametrize(
    ("function", "call"),
    [*zip(DEEDS, itertools.cycle(NAMES)), *((choice, name) for name in NAMES)],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_the_line_and_the_remedy(function, call):
    """A sentence with the line of this file, and JAX's own error as its cause."""
    run, name = calls(function)[call]
    with pytest.raises(ValueError) as error:
        run()
    text, (deed, instead) = str(error.value), DEEDS[function]
    assert text.startswith(f"{name} {deed}") and instead in text
    assert f"test_user_code.py, line {function.__code__.co_firstlineno + 1}: `" in text
    assert "\n" not in text and "Tracer" not in text
    cause = error.value.__cause__
    assert isinstance(cause, jax.errors.JAXTypeError | IndexError | TypeError | ValueError)


def test_a_numpyro_model():
    numpyro = pytest.importorskip("numpyro")
    from numpyro import distributions

    def model():
        x = numpyro.sample("x", distributions.Normal(0.0, 1.0))
        if x > 0:
            numpyro.sample("y", distributions.Normal(0.0, 1.0))

    with pytest.raises(ValueError, match=r"^model decides by .*, line \d+: `if x > 0:`.*jnp.where"):
        schuss.from_numpyro(model)
    with pytest.raises(TypeError, match=r"^model can't be called .* pass them after it, as in "):
        schuss.from_numpyro(lambda y: None)


@pytest.mark.parametrize(
    ("value", "got"),
    [
        (None, "None; let it end in a return"),
        ((0.0, 1.0), "a tuple; a function of value and gradient goes into value_and_grad="),
        ("a", "a str; return an array or a float"),
        ([0.0], "a list; return an array or a float"),
    ],
)
@pytest.mark.parametrize("call", NAMES)
def test_what_is_no_energy(call, value, got):
    run, name = calls(lambda x: value)[call]
    with pytest.raises(ValueError) as error:
        run()
    assert str(error.value) == f"{name} must return one number for each position, got {got}"
    assert type(error.value) is ValueError


def test_a_function_of_another_nest():
    with pytest.raises(
        ValueError, match=r"^logdensity fails on one position like init.*KeyError"
    ) as e:
        schuss.sample(logdensity=lambda p: -jnp.sum(p["b"] ** 2), init={"a": X})
    assert isinstance(e.value.__cause__, KeyError)
