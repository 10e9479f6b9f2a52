"""Gradients by hand: wrong ones are refused, and nothing that is merely awkward."""

import numpy as np
import pytest

import schuss
from schuss.adapters import derivative
from schuss.adapters.derivative import LOG_P, PARTS, POINTS, check

SPENT = POINTS * (2 + 2 * len(PARTS))


def gaussian(x):
    return (x * x).sum(-1) / 2, x


def gumbel(x):
    return (np.exp(x) - 0.7 * x).sum(-1), np.exp(x) - 0.7


def student(x):
    return 2 * np.log1p(x * x / 3).sum(-1), 4 * x / (3 + x * x)


def laplace(x):
    return np.abs(x).sum(-1), np.sign(x)


def lopsided(x):
    return np.maximum(x, -0.1 * x).sum(-1), np.where(x >= 0, 1, -0.1)


def walls(x):
    return np.where(np.all(x > -0.5, axis=-1), gaussian(x)[0], np.inf), x


def cliffs(x):
    return gaussian(x)[0] + 1e10 * np.any(x < -0.5, axis=-1), x


def jumps(x):
    return gaussian(x)[0] + 3.0 * (x > 0.3).sum(-1), x


def rippled(x):
    """Slopes of 10³ on ripples of height 10⁻³."""
    return gaussian(x)[0] + 1e-3 * np.sin(1e6 * x).sum(-1), x + 1e3 * np.cos(1e6 * x)


def stairs(height):
    return lambda x: (height * np.floor(gaussian(x)[0] / height), x)


def noisy(size):
    rng = np.random.default_rng(5)
    return lambda x: (gaussian(x)[0] + size * rng.standard_normal(len(x)), x)


def single(constant):
    def energies(x):
        value, g = gumbel(x.astype(np.float32))
        return (value.astype(np.float32) + np.float32(constant)).astype(float), g.astype(float)

    return energies


def shifted(x):
    return gaussian(x)[0] + 1e12, x


AWKWARD = {
    fn.__name__: fn
    for fn in (gaussian, gumbel, student, laplace, lopsided, walls, cliffs, jumps, rippled, shifted)
}
AWKWARD |= {f"stairs of {height}": stairs(height) for height in (1, 0.1, 0.03, 0.01, 1e-3)}
AWKWARD |= {f"noise of {size}": noisy(size) for size in (1e-8, 1e-4, 1e-2, 0.1, 1)}
AWKWARD |= {f"single precision at {size:g}": single(size) for size in (0, 1e3, 1e5, 1e8)}
SMOOTH = ("gaussian", "gumbel", "student", "laplace", "shifted")


def scaled(energies, scale, factor=1.0):
    def function(x):
        value, g = energies(x / scale)
        return value, factor * g / scale

    return function


def places(seed, chains=4):
    """Starts in many dimensions and scales, exactly at zero and around it, near and far."""
    rng = np.random.default_rng(seed)
    for dim in (1, 2, 3, 30, 1000):
        for size in (1e-8, 1e-3, 1.0, 1e4, 1e8, None):
            scale = np.full(dim, size) if size else np.exp(rng.uniform(-18, 18, dim))
            x = rng.uniform(-2, 2, (chains, dim))
            for start in (x, 0.01 * x, 0 * x, 5 * x):
                yield scale, scale * start, rng


@pytest.mark.parametrize("name", AWKWARD)
def test_right_gradients_pass(name):
    """0 of 120 here; of 9000 starts for each of forty such functions on other seeds 0 as well."""
    for scale, x, rng in places(1):
        with np.errstate(over="ignore"):
            check(LOG_P._replace(name=name), scaled(AWKWARD[name], scale), x, rng)


@pytest.mark.parametrize("factor", [-1.0, 2.0, 0.5])
@pytest.mark.parametrize("name", SMOOTH)
def test_wrong_gradients_are_refused(name, factor):
    """At most 8 of 90 starts are missed, far out where the energy bends or overflows."""
    missed = 0
    for scale, x, rng in places(2):
        if not x.any():
            continue
        cause = "opposite sign" if factor == -1 else f"is {factor:.2g} times"
        try:
            with np.errstate(over="ignore"):
                check(LOG_P._replace(name=name), scaled(AWKWARD[name], scale, factor), x, rng)
        except ValueError as error:
            assert name in str(error)
            missed += cause not in str(error)
        else:
            missed += 1
    assert missed <= 9


def test_a_gradient_of_another_function():
    """Coordinates mixed up, or a term left out of one of them."""
    metric = np.array([1.0, 4.0, 9.0])

    def mixed(x):
        return (metric * x**2).sum(-1) / 2, (metric * x)[:, ::-1]

    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(100):
        try:
            check(LOG_P, mixed, rng.uniform(-2, 2, (4, 3)), rng)
        except ValueError as error:
            refused += "isn't that of the log p beside it" in str(error)
    assert refused > 50


def test_the_cost():
    """What is said to be spent is, and a chain that starts nowhere costs no more."""
    calls = []

    def counted(x):
        calls.append(x)
        assert np.isfinite(x).all()
        return np.where(x[:, 0] < -0.9, np.nan, gaussian(x)[0]), x

    rng = np.random.default_rng(0)
    for x in (np.full((4, 3), 0.5), np.full((1, 3), 0.5), np.array([[0.5], [-1], [0]] * 2)):
        calls.clear()
        assert check(LOG_P, counted, x, rng) == sum(map(len, calls)) == SPENT


def test_through_sample():
    def flipped(x):
        return -(x @ x) / 2, x

    told = (
        r"^fn \(flipped\) contradicts itself at 4 of 4 places near the starts: along a random "
        r"direction log p changes by (-?)([0-9.]+) where the gradient says (?!\1\2)-?\2; the "
        r"gradient has the opposite sign: return log p and its own gradient"
    )
    model = schuss.from_value_and_grad(flipped, 3)
    for given in ({}, {"init": np.ones(3)}, {"sampler": schuss.HMC(0.3)}):
        with pytest.raises(ValueError, match=told):
            schuss.sample(model, draws=10, **given)


def test_energies_and_their_gradients_through_sample():
    told = (
        r"^value_and_grad contradicts itself at 4 of 4 .* direction E changes by (-?)([0-9.]+) "
        r"where the gradient says (?!\1\2)-?\2; the gradient has the opposite sign: return energies"
    )
    with pytest.raises(ValueError, match=told):
        schuss.sample(value_and_grad=lambda x: (gaussian(x)[0], -x), init=np.zeros(3))


@pytest.mark.parametrize("sampler", ["auto", schuss.HMC(0.5)])
def test_the_check_is_counted(sampler, monkeypatch):
    def right(x):
        return -(x @ x) / 2, -x

    def spent():
        model = schuss.from_value_and_grad(right, 3)
        with pytest.warns(schuss.NotConverged):
            post = schuss.sample(model, draws=20, sampler=sampler, progress=False)
        return post.stats.gradients.get("start", 0), post.x

    (checked, x) = spent()
    monkeypatch.setattr(derivative, "check", lambda *args: 0)
    (unchecked, same) = spent()
    assert checked - unchecked == SPENT
    np.testing.assert_array_equal(x, same)
