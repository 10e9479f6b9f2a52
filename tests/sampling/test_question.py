"""What `sample` may be given, and from where it starts."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import schuss
from schuss.adapters.question import CHAINS, JITTER, ask, starts

NOTHING = {
    "energy": None,
    "logdensity": None,
    "value_and_grad": None,
    "init": None,
    "chains": None,
    "seed": 0,
    "engine": "auto",
}


def question(target=None, **given):
    return ask(target, **(NOTHING | given))


def gaussian(x):
    return (x * x).sum(-1) / 2


def numpy_gaussian(x):
    return (x * x).sum(-1) / 2, x


def rng(seed=0):
    return np.random.default_rng(seed)


@pytest.mark.parametrize(
    "point",
    [
        [1.0, 2.0, 3.0],
        [1, 2, 3],
        np.array([1.0, 2.0, 3.0]),
        np.array([1.0, 2.0, 3.0], np.float32),
        jnp.array([1.0, 2.0, 3.0]),
        torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64),
    ],
)
def test_chains_start_around_a_point(point):
    """Each elsewhere, by N(0, 0.1²), in the point's own precision but for JAX's."""
    found = starts(point, None, rng())
    assert found.shape == (CHAINS, 3)
    own = "float64" if isinstance(point, jax.Array) else getattr(point, "dtype", "float64")
    dtype = str(own).removeprefix("torch.")
    assert str(found.dtype).removeprefix("torch.") == dtype
    away = (np.asarray(found, float) - [1, 2, 3]) / JITTER
    assert len(np.unique(away.round(6))) == away.size and np.abs(away).max() < 5
    assert starts(point, 7, rng()).shape == (7, 3)
    assert isinstance(found, torch.Tensor) == isinstance(point, torch.Tensor)


def test_the_spread_around_a_point():
    """4000 numbers: the deviation is known to 1.1 %; 5 sigma."""
    away = starts(np.zeros(40), 100, rng())
    assert away.std() == pytest.approx(0.1, rel=5 / np.sqrt(2 * away.size))


def test_a_batch_is_taken_as_it_is():
    batch = rng().standard_normal((6, 3))
    assert starts(batch, None, rng()) is batch
    assert starts(batch, 6, rng()) is batch
    images = rng().standard_normal((5, 3, 8, 8))
    assert starts(images, None, rng()) is images
    with pytest.raises(ValueError, match=r"^init holds 6 starts but chains=4; leave chains out"):
        starts(batch, 4, rng())


def test_functions_draw_starts():
    def many(rng, chains):
        return rng.uniform(size=(chains, 2))

    def one(rng):
        return rng.uniform(size=2)

    assert starts(many, 5, rng()).shape == starts(one, 5, rng()).shape == (5, 2)
    assert starts(one, None, rng()).shape == (CHAINS, 2)
    np.testing.assert_array_equal(starts(one, 3, rng(1)), starts(one, 3, rng(1)))


@pytest.mark.parametrize("init", [0.0, np.float64(1.0), "here", None, {"a": 1.0}, object()])
@pytest.mark.parametrize("chains", [None, 4])
def test_what_is_no_position_is_refused(init, chains):
    with pytest.raises(ValueError, match=r"^init must be a point \(dim,\), a batch"):
        starts(init, chains, rng())


@pytest.mark.parametrize("chains", [0, -1, 2.5, "four"])
def test_chains_are_counted(chains):
    with pytest.raises(ValueError, match=r"^chains must be a whole number of at least 1, got"):
        starts(np.zeros(2), chains, rng())


@pytest.mark.parametrize(
    ("given", "engine"),
    [
        ({"energy": gaussian, "init": np.zeros(3)}, "jax"),
        ({"logdensity": gaussian, "init": jnp.zeros(3)}, "jax"),
        ({"energy": gaussian, "init": torch.zeros(3)}, "torch"),
        ({"energy": torch.nn.Linear(3, 1), "init": np.zeros(3, np.float32)}, "torch"),
        ({"value_and_grad": numpy_gaussian, "init": np.zeros(3)}, "numpy"),
        ({"energy": gaussian, "init": np.zeros(3), "engine": "torch"}, "torch"),
    ],
)
def test_the_engine_that_suits(given, engine):
    found = question(**given).problem
    assert found.engine.name == engine and found.dim == 3 and len(found.x) == CHAINS


def test_targets_have_their_own_starts():
    target = schuss.targets.funnel()
    found = question(target)
    assert found.problem.dim == target.dim and len(found.problem.x) == CHAINS
    assert found.name == "funnel"
    assert len(question(target, chains=9).problem.x) == 9
    moved = question(target, init=np.full(target.dim, 2.0)).problem
    assert np.abs(np.asarray(moved.x) - 2).max() < 1
    with pytest.raises(ValueError, match=f"but funnel has dimension {target.dim}"):
        question(target, init=np.zeros(target.dim + 1))


def test_nests_are_models():
    init = {"mu": 0.0, "rest": [np.zeros(2), np.ones((2, 2))]}

    def logdensity(p):
        return -(p["mu"] ** 2) - (p["rest"][0] ** 2).sum() - (p["rest"][1] ** 2).sum()

    found = question(logdensity=logdensity, init=init)
    assert found.problem.dim == 7 and found.name == "logdensity"
    named = found.restore(np.arange(2 * 3 * 7.0).reshape(2, 3, 7))
    assert {name: values.shape for name, values in named.items()} == {
        "mu": (2, 3),
        "rest.0": (2, 3, 2),
        "rest.1": (2, 3, 2, 2),
    }
    with pytest.raises(ValueError, match=r"^value_and_grad= takes flat positions"):
        question(value_and_grad=numpy_gaussian, init=init)


def test_draws_get_the_shape_of_a_position_back():
    found = question(energy=lambda x: (x**2).sum(), init=np.zeros((5, 2, 3)))
    x = np.arange(5 * 4 * 6.0).reshape(5, 4, 6)
    np.testing.assert_array_equal(found.restore(x), x.reshape(5, 4, 2, 3))


def test_models_refuse_starts_of_another_shape():
    model = schuss.from_value_and_grad(lambda x: (-(x**2).sum() / 2, -x), 3)
    assert question(model).problem.dim == 3
    assert question(model, init=np.zeros(3), chains=2).problem.x.shape == (2, 3)
    with pytest.raises(ValueError, match=r"^init has shape \(2,\) but .* has 3 flat coordinates"):
        question(model, init=np.zeros(2))


def test_a_model_and_a_function_are_one_too_many():
    model = schuss.from_pytree(logdensity=lambda p: -(p["a"] ** 2), init={"a": 0.0})
    for name in ("energy", "logdensity", "value_and_grad"):
        with pytest.raises(ValueError, match=rf"^pass exactly one of a model .* both: {name}="):
            question(model, **{name: gaussian})


def test_a_nest_is_a_start_of_a_model_of_nests():
    first = {"a": 0.0, "b": np.zeros(2)}
    model = schuss.from_pytree(logdensity=lambda p: -(p["a"] ** 2) - p["b"].sum() ** 2, init=first)
    asked = question(model, init={"b": np.array([7.0, 9.0]), "a": 5.0}, chains=50)
    mean = np.asarray(asked.problem.x).mean(axis=0)
    np.testing.assert_allclose(mean, [5, 7, 9], atol=6 * JITTER / 7)
    for other in ({"a": 0.0}, {"a": 0.0, "c": np.zeros(2)}, {"a": 0.0, "b": np.zeros(3)}):
        with pytest.raises(ValueError, match=r"^init must have the names and shapes of"):
            question(model, init=other)


def test_functions_return_as_many_starts_as_there_are_chains():
    for shape in ((3,), (7, 3), ()):
        with pytest.raises(ValueError, match=r"must return 4 starts, shape \(4, dim\), got shape"):
            question(energy=gaussian, init=lambda rng, chains, s=shape: rng.normal(size=s))
    with pytest.raises(ValueError, match="got a dict"):
        question(energy=gaussian, init=lambda rng, chains: {"a": rng.normal(size=chains)})


def test_a_pymc_model_is_told_its_way():
    pymc = pytest.importorskip("pymc")
    with pytest.raises(TypeError, match=r"pass schuss.from_pymc\(model\)"):
        question(pymc.Model())


def test_a_model_without_parameters_is_refused():
    numpyro = pytest.importorskip("numpyro")

    def observed():
        numpyro.sample("y", numpyro.distributions.Normal(0, 1), obs=1.0)

    with pytest.raises(ValueError, match=r"no .*(parameters|latent)|nothing to sample"):
        question(schuss.from_numpyro(observed))


def test_without_anything():
    with pytest.raises(ValueError, match=r"^init is missing; pass a point \(dim,\)"):
        question(energy=gaussian)
    with pytest.raises(ValueError, match=r"^pass exactly one of target, energy="):
        question(init=np.zeros(3))
    with pytest.raises(ValueError, match=r"^pass exactly one of .* got energy and logdensity"):
        question(energy=gaussian, logdensity=gaussian, init=np.zeros(3))
    with pytest.raises(TypeError, match=r"^target must be a schuss target, got function"):
        question(gaussian, init=np.zeros(3))


def test_the_seed_decides_where_chains_start():
    first, same, other = (
        np.asarray(question(energy=gaussian, init=np.zeros(3), seed=seed).problem.x)
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, same)
    assert np.all(first != other)


def test_runs_are_named_after_their_function():
    x = np.zeros(3)
    assert question(value_and_grad=numpy_gaussian, init=x).name == "numpy_gaussian"
    assert question(energy=gaussian, init=x).name == "gaussian"
    assert question(energy=lambda x: gaussian(x), init=x).name == ""
