"""Plain JAX functions of dicts and nests."""

import collections

import jax.numpy as jnp
import numpy as np
import pytest
from seeds import shifted

import schuss
from schuss.adapters.over import gradients, over

Pair = collections.namedtuple("Pair", "left right")


def logdensity(q):
    return -jnp.sum((q["theta"] - q["mu"]) ** 2) - 2 * q["mu"] ** 2


def test_a_dict():
    init = {"theta": np.full((2, 3), 2.0), "mu": 1.0}
    model = schuss.from_pytree(logdensity=logdensity, init=init)
    assert (model.name, model.dim) == ("logdensity", 7)
    x = np.random.default_rng(0).normal(size=(4, 5, 7))
    values = model.constrain(x)
    assert values["theta"].shape == (4, 5, 2, 3) and values["mu"].shape == (4, 5)
    theta, mu = values["theta"], values["mu"]
    expected = -np.sum((theta - mu[..., None, None]) ** 2, axis=(-1, -2)) - 2 * mu**2
    value, gradient = gradients(model.logdensity)(x)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    assert value.dtype == np.float64 and gradient.shape == x.shape


def test_energy_is_minus_log_density():
    init = {"theta": np.zeros((2, 3)), "mu": 0.0}
    x = np.random.default_rng(0).normal(size=(4, 7))
    up = schuss.from_pytree(logdensity=logdensity, init=init)
    down = schuss.from_pytree(energy=lambda q: -logdensity(q), init=init)
    np.testing.assert_array_equal(over(up.logdensity)(x), over(down.logdensity)(x))
    assert down.name == "energy"


def test_nests_are_named_by_their_keys():
    init = {"a": [np.zeros(2), {"b": np.zeros(())}], "p": Pair(jnp.zeros(1), np.float32(3.0))}

    def energy(q):
        assert isinstance(q["p"], Pair)
        return jnp.sum(q["a"][0]) + q["a"][1]["b"] + 10 * q["p"].left[0] * q["p"].right

    model = schuss.from_pytree(energy=energy, init=init)
    values = model.constrain(np.arange(5.0)[None, None])
    assert list(values) == ["a.0", "a.1.b", "p.left", "p.right"]
    np.testing.assert_array_equal(values["a.0"], [[[0.0, 1.0]]])
    assert over(model.logdensity)(np.arange(5.0)) == -(0 + 1 + 2 + 10 * 3 * 4)


def test_an_array_is_a_nest_too():
    model = schuss.from_pytree(energy=lambda x: jnp.sum(x**2, keepdims=True), init=np.zeros((2, 2)))
    assert model.constrain(np.zeros((1, 3, 4)))["x"].shape == (1, 3, 2, 2)
    assert over(model.logdensity)(np.ones(4)) == -4


def test_whole_numbers_are_floats():
    whole = {"theta": np.full((2, 3), 2, np.uint8), "mu": 1}
    floats = {"theta": np.full((2, 3), 2.0), "mu": 1.0}
    one, same = (schuss.from_pytree(logdensity=logdensity, init=init) for init in (whole, floats))
    starts = [model.start(np.random.default_rng(0), 5) for model in (one, same)]
    np.testing.assert_array_equal(*starts)
    assert starts[0].dtype == np.float64


def test_starts_lie_around_init():
    init = {"theta": np.full((2, 3), 2.0), "mu": 1.0}
    x = schuss.from_pytree(logdensity=logdensity, init=init).start(
        np.random.default_rng(shifted(0)), 200
    )
    off = x - [1.0] + np.array([0.0] + [-1.0] * 6)
    # 5 sigma of the mean and of the deviation of 1400 numbers.
    assert abs(off.mean()) < 5 * 0.1 / 1400**0.5
    assert abs(off.std() - 0.1) < 5 * 0.1 / 2800**0.5
    edge = schuss.from_pytree(
        logdensity=lambda x: jnp.log(x).sum() - x.sum(), init=np.full(2, 0.05)
    )
    assert np.all(edge.start(np.random.default_rng(shifted(0)), 100) > 0)


def test_bad_input_is_refused():
    def build(**given):
        return schuss.from_pytree(**given)

    with pytest.raises(ValueError, match="exactly one of logdensity= and energy=, got none"):
        build(init={"a": 0.0})
    with pytest.raises(ValueError, match="got logdensity and energy"):
        build(init={"a": 0.0}, logdensity=logdensity, energy=logdensity)
    with pytest.raises(TypeError, match="energy must be callable"):
        build(init={"a": 0.0}, energy=3)
    for wrong in (np.array([True]), True, 1j, "one"):
        with pytest.raises(ValueError, match=r"init must hold real numbers, got dtype .* for a;"):
            build(init={"a": wrong}, energy=logdensity)
    with pytest.raises(ValueError, match="init holds no numbers"):
        build(init={}, energy=logdensity)
    with pytest.raises(ValueError, match=r"two entries named a\.b"):
        build(init={"a": {"b": 0.0}, "a.b": 0.0}, energy=logdensity)
    with pytest.raises(ValueError, match=r"energy must return one number .* got shape \(2,\)"):
        over(build(init=np.zeros(2), energy=lambda x: x).logdensity)(np.zeros(2))
    nowhere = build(init=np.zeros(2), logdensity=lambda x: jnp.log(-jnp.sum(x**2)))
    with pytest.raises(ValueError, match="move init to where logdensity and its gradient are"):
        nowhere.start(np.random.default_rng(0), 3)
