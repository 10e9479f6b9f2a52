"""Bad input is refused at the door: the argument, what was wrong with it, and the remedy."""

import pathlib
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from torch import nn

import schuss
from schuss import ESH, HMC, MALA, ULA, NoseHoover, Sampler, Unscaled, engines, targets
from schuss.adapters.question import ask

START = np.zeros((4, 3)) + 0.5
TENSOR = torch.full((4, 3), 0.5)
TARGET = targets.isotropic(3)


def refuse(message, error=ValueError):
    return pytest.raises(error, match="^" + re.escape(message) + "$")


def jax_energy(x):
    return jnp.sum(x * x)


def torch_energy(x):
    return (x * x).sum(-1)


def numpy_energy(x):
    return np.sum(x * x, axis=-1), 2 * x


def follow(*target, **options):
    options = {"steps": 2, "engine": "jax", "init": START} | options
    return schuss.trajectory(*target, **options)


# What is sampled.


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, "none"),
        ({"energy": jax_energy, "logdensity": jax_energy}, "energy and logdensity"),
        ({"target": TARGET, "energy": jax_energy}, "target and energy"),
        (
            {"target": TARGET, "logdensity": jax_energy, "value_and_grad": numpy_energy},
            "target and logdensity and value_and_grad",
        ),
    ],
)
def test_not_exactly_one_target(given, found):
    message = f"pass exactly one of target, energy=, logdensity= or value_and_grad=, got {found}"
    with refuse(message):
        follow(**given)
    with refuse(message):
        Sampler(engine="jax").run(init=START, **given)


def test_function_given_as_target():
    with refuse(
        "target must be a schuss target, got function; pass a function as energy= or logdensity=",
        TypeError,
    ):
        follow(jax_energy)


@pytest.mark.parametrize("kind", ["energy", "logdensity", "value_and_grad"])
def test_not_callable(kind):
    with refuse(f"{kind} must be callable, got float", TypeError):
        follow(**{kind: 3.0})


def test_numpy_has_no_autodiff():
    for kind in ("energy", "logdensity"):
        with refuse(
            "engine='numpy' has no autodiff; pass value_and_grad=, a function that returns "
            "energies and gradients, or use engine='jax' or 'torch'"
        ):
            follow(**{kind: jax_energy}, engine="numpy")


@pytest.mark.parametrize("engine", ["jax", "torch"])
def test_value_and_grad_is_for_numpy(engine):
    with refuse(f"value_and_grad= runs on engine='numpy', not {engine!r}"):
        follow(value_and_grad=numpy_energy, engine=engine)


def test_a_name_instead_of_a_target():
    for call in (
        lambda name: schuss.sample(name),
        lambda name: schuss.trajectory(name),
        lambda name: Sampler().run(target=name),
        lambda name: schuss.evidence(name),
    ):
        with refuse(
            "target must be a schuss target, got the name 'mog'; pass schuss.targets.get('mog')",
            TypeError,
        ):
            call("mog")
        with refuse(
            "target must be a schuss target, got 'mug'; names are for schuss.targets.get, which "
            "knows those of `schuss targets`",
            TypeError,
        ):
            call("mug")
    with refuse(
        "energy must be callable, got the name 'mog'; pass schuss.targets.get('mog')", TypeError
    ):
        Sampler()("mog", START)
    with refuse(
        "name must be a known target, got None; pass one of "
        + str(list(targets.TARGETS | targets.posteriors.POSTERIORS))
    ):
        targets.get(None)


@pytest.mark.parametrize("first", [1, None, jax_energy])
def test_comparing_what_is_no_model(first):
    """Both are looked at before either is run."""
    wanted = "a target, a model or a result of schuss.evidence"
    got = f"got {type(first).__name__}; pass schuss.evidence(energy=…, reference=…)"
    with refuse(f"first must be {wanted}, {got}", TypeError):
        schuss.compare(first, TARGET)
    with refuse(f"second must be {wanted}, {got}", TypeError):
        schuss.compare(TARGET, first)
    with refuse(
        "target is missing; pass a model, a target, or a function as energy= or logdensity="
    ):
        schuss.evidence(reference=schuss.Normal(dim=3))


@pytest.mark.parametrize("name", ["nuts", "NUTS", "mclmc", "auto"])
def test_samplers_by_name(name):
    where = "; NUTS and other libraries' samplers run with schuss compare"
    for argument, call in (
        ("sampler", lambda: follow(TARGET, sampler=name)),
        ("algorithm", lambda: Sampler(name)),
    ):
        with refuse(
            f"{argument} must be an algorithm such as schuss.ESH(0.1), got {name!r}{where}",
            TypeError,
        ):
            call()
    if name != "auto":
        with refuse(
            f'sampler must be an algorithm such as schuss.ESH(0.1) or "auto", got {name!r}{where}',
            TypeError,
        ):
            schuss.sample(TARGET, sampler=name)
    with pytest.raises(TypeError, match=r'or "auto", got \'hmc\'; pass schuss.HMC\(\)$'):
        schuss.sample(TARGET, sampler="hmc")


@pytest.mark.parametrize("checkpoint", [5, True, "", pathlib.Path(), b"run", object()])
def test_checkpoint_that_is_no_path(checkpoint):
    with refuse(
        f"checkpoint must be the path of a folder of its own, got {checkpoint!r}; pass e.g. "
        "'run.zarr'",
        TypeError,
    ):
        schuss.sample(TARGET, checkpoint=checkpoint)


# Where it starts.


def test_init_missing():
    with refuse("init is missing; pass the starting positions, shape (chains, dim)"):
        schuss.trajectory(energy=jax_energy)
    with refuse("init is missing; pass the starting positions, shape (chains, dim)"):
        schuss.trajectory(energy=jax_energy, chains=4)


def test_chains_with_init():
    with refuse("chains counts the starts of a target; leave it out when init= is given"):
        follow(TARGET, chains=4)


@pytest.mark.parametrize("engine", ["numpy", "jax", "torch"])
@pytest.mark.parametrize("shape", [(4, 2), (2,), (4, 3, 1)])
def test_init_does_not_fit_the_target(engine, shape):
    with refuse(
        f"init has shape {shape} but isotropic has dimension 3; pass init of shape (chains, 3)"
    ):
        follow(TARGET, init=np.ones(shape), engine=engine)


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (4, 0)])
@pytest.mark.parametrize("engine", ["jax", "torch"])
def test_no_position(shape, engine):
    with refuse(f"init has shape {shape}, which holds no position; pass some, shape (chains, dim)"):
        follow(energy=jax_energy, init=np.ones(shape), engine=engine)


@pytest.mark.parametrize(
    ("init", "name"),
    [
        (np.ones((4, 3), bool), "bool"),
        ([[True, False, True]], "bool"),
        (torch.ones((4, 3), dtype=torch.bool), "torch.bool"),
        (np.ones((4, 3), complex), "complex128"),
        (np.asarray([["a"]]), "<U1"),
        (np.ones((4, 3), "M8[D]"), "datetime64[D]"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_number(init, name):
    engine = "torch" if isinstance(init, torch.Tensor) else "jax"
    message = f"init must be floating point, got dtype {name}; convert it, e.g. init * 1.0"
    if "bool" not in name:
        message = (
            f"init must hold real numbers, got dtype {name}; pass an array of floats, shape "
            "(chains, dim)"
        )
    with refuse(message):
        follow(energy=jax_energy, init=init, engine=engine)
    for point in (init, init[0]):
        with refuse(message):
            schuss.sample(energy=jax_energy, init=point, engine=engine)
    with refuse("init must hold real numbers, got dtype bool for a; convert it, e.g. to 0.0"):
        schuss.sample(energy=jax_energy, init={"a": True})


@pytest.mark.parametrize(
    ("init", "precision"),
    [
        (np.ones((4, 3), int), "float64"),
        (np.ones((4, 3), np.uint8), "float64"),
        ([[1, 1, 1]] * 4, "float64"),
        (jnp.ones((4, 3), int), "float32"),
        (torch.ones((4, 3), dtype=torch.int32), "torch.float32"),
    ],
    ids=["numpy", "bytes", "list", "jax", "torch"],
)
def test_whole_numbers_are_floats(init, precision):
    """In the precision of their library's floats; `sample` takes JAX's in 64 bits."""
    tensor = isinstance(init, torch.Tensor)
    given = {"energy": torch_energy if tensor else jax_energy, "engine": "auto"}
    path = follow(init=init, **given)
    assert str(path.x.dtype) == precision.removeprefix("torch.") and np.all(
        np.asarray(path.x[0]) == 1
    )
    for start in (init, init[0], lambda rng, chains: np.ones((chains, 3), int)):
        nothing = {"logdensity": None, "value_and_grad": None, "chains": None, "seed": 0}
        problem = ask(None, init=start, **given, **nothing).problem
        assert problem.x.shape == (4, 3)
        assert str(problem.x.dtype) == (precision if tensor and not callable(start) else "float64")
        assert problem.engine.name == ("torch" if tensor and not callable(start) else "jax")


@pytest.mark.parametrize("engine", ["jax", "numpy"])
def test_tensor_for_another_engine(engine):
    given = {"energy": jax_energy} if engine == "jax" else {"value_and_grad": numpy_energy}
    with refuse(
        f"init is a torch tensor but the engine is {engine!r}; pass a NumPy array or use "
        "engine='torch'"
    ):
        follow(init=TENSOR, engine=engine, **given)


def test_mixed_dtypes():
    net = nn.Linear(3, 1)
    with refuse(
        "init has dtype torch.float64 but the energy's parameter weight has torch.float32; "
        "convert one of them, e.g. init.to(torch.float32)"
    ):
        follow(energy=net, init=TENSOR.double(), engine="torch")
    with refuse(
        "init has dtype torch.float64 but the energy's parameter weight has torch.float32; "
        "convert one of them, e.g. init.to(torch.float32)"
    ):
        Sampler(steps=2)(net, START)


def test_mixed_devices():
    with refuse(
        "init is on cpu but the energy's parameter weight is on meta; move one of them, e.g. "
        "init.to('meta')"
    ):
        follow(energy=nn.Linear(3, 1, device="meta"), init=TENSOR, engine="torch")
    with refuse(
        "init is on meta but the energy's parameter weight is on cpu; move one of them, e.g. "
        "init.to('cpu')"
    ):
        follow(energy=nn.Linear(3, 1), init=TENSOR.to("meta"), engine="torch")


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("engine", ["numpy", "jax", "torch"])
def test_not_finite_at_the_start(engine, bad):
    init = START.copy()
    init[1, 2] = init[3, 0] = bad
    with refuse(
        "energy or gradient is not finite at the start of 2 of 4 chains (the first is chain 1); "
        "move init to where the energy is finite"
    ):
        follow(TARGET, init=init, engine=engine)


def everywhere(init):
    """Every call that takes a start."""
    return (
        lambda: follow(energy=jax_energy, init=init),
        lambda: Sampler(steps=2)(jax_energy, init),
        lambda: schuss.sample(energy=jax_energy, init=init),
        lambda: schuss.sample(TARGET, init=init),
    )


def test_rows_of_several_lengths():
    for call in everywhere([[0.0, 0.0], [1.0]]):
        with refuse(
            "init must have rows of one length, got [[0.0, 0.0], [1.0]]; pass an array of shape "
            "(chains, dim)"
        ):
            call()


@pytest.mark.parametrize("init", [["a", "b"], [["a"]]])
def test_strings_are_no_start(init):
    for call in everywhere(init):
        with pytest.raises(ValueError, match=r"^init must hold real numbers, got dtype <U1; pass"):
            call()


@pytest.mark.parametrize("init", [[], [[]], np.ones((0, 3))])
def test_no_position_anywhere(init):
    for call in everywhere(init):
        with refuse(
            f"init has shape {np.shape(init)}, which holds no position; pass some, shape "
            "(chains, dim)"
        ):
            call()


@pytest.mark.parametrize("init", [{"a": 1.0}, lambda rng, chains: np.ones((chains, 3)), {1, 2}])
def test_starts_that_only_sample_takes(init):
    with refuse(
        f"init must be positions, shape (chains, dim), got {type(init).__name__}; pass an array "
        "(dicts and functions are for schuss.sample)",
        TypeError,
    ):
        follow(energy=jax_energy, init=init)


@pytest.mark.parametrize(
    ("init", "message"),
    [
        (
            lambda rng, n: None,
            "init(rng, chains) must return 4 starts, shape (4, dim), got a NoneType",
        ),
        (
            lambda rng, n: np.ones(n),
            "init(rng, chains) must return 4 starts, shape (4, dim), got shape (4,)",
        ),
        (lambda rng: "a", "init(rng) must return one start, shape (dim,), got a str"),
        (
            lambda rng, n: [[1], [1, 2]],
            "init(rng, chains) must have rows of one length, got [[1], [1, 2]]; pass an array of "
            "shape (chains, dim)",
        ),
    ],
)
def test_functions_that_draw_no_starts(init, message):
    with refuse(message):
        schuss.sample(energy=jax_energy, init=init)


def test_a_start_function_without_arguments():
    with refuse(
        "init must be a function of (rng, chains) or of rng, got one of no arguments; pass what it "
        "returns",
        TypeError,
    ):
        schuss.sample(energy=jax_energy, init=lambda: np.ones(3))


# What the energy returns.


@pytest.mark.parametrize(
    ("energy", "shape"),
    [
        (lambda x: (x * x).sum(), ()),
        (lambda x: x * x, (4, 3)),
        (lambda x: torch_energy(x)[:-1], (3,)),
        (lambda x: torch_energy(x)[None], (1, 4)),
    ],
)
def test_torch_energy_of_the_wrong_shape(energy, shape):
    message = (
        f"energy returned shape {shape} for a batch of 4 chains; return one energy per chain, "
        "shape (4,) or (4, 1)"
    )
    with refuse(message):
        follow(energy=energy, init=TENSOR, engine="torch")
    with refuse(message):
        Sampler(steps=2)(energy, TENSOR)


@pytest.mark.parametrize(
    ("energy", "shape"),
    [
        (lambda x: jnp.sum(x[:, 0] ** 2), ()),
        (lambda x: x[:, :2] ** 2, (4, 2)),
        (lambda x: jnp.sum(x * x, axis=1)[:-1], (3,)),
        (lambda x: x * x, (4, 3)),
    ],
)
def test_jax_energy_of_the_wrong_shape(energy, shape):
    with refuse(
        f"energy returned shape {shape} for a batch of 4 chains; return one energy per chain, "
        "shape (4,) or (4, 1)"
    ):
        follow(energy=energy)


@pytest.mark.parametrize("shape", [(), (4, 3), (3,), (1,)])
def test_numpy_energy_of_the_wrong_shape(shape):
    with refuse(
        f"value_and_grad returned energies of shape {shape} for 4 chains; return one for each, "
        "shape (4,), or pass schuss.from_value_and_grad(fn, dim), whose fn takes one position"
    ):
        follow(value_and_grad=lambda x: (np.ones(shape), x), engine="numpy")


@pytest.mark.parametrize(
    ("found", "got"),
    [
        ((1.0,), "tuple of 1; return value, gradient"),
        ((1.0, 2.0, 3.0), "tuple of 3; return value, gradient"),
        (None, "NoneType; return value, gradient"),
        (1.0, "float; return value, gradient"),
        ({"a": 1.0, "b": 2.0}, "dict; return value, gradient"),
        ((None, np.ones(3)), "the value None; make it real numbers"),
        (("a", np.ones(3)), "the value 'a'; make it real numbers"),
        ((1.0, None), "the gradient None; make it real numbers"),
        ((1.0, [[1.0], [1.0, 2.0]]), "the gradient [[1.0], [1.0, 2.0]]; make it real numbers"),
        ((1j, np.ones(3)), "the value 1j; make it real numbers"),
    ],
)
def test_no_pair_of_value_and_gradient(found, got):
    whole = "two arrays, energies (chains,) and gradients like the positions"
    given = {"value_and_grad": lambda x: found}
    for call in (
        lambda: follow(**given, engine="numpy"),
        lambda: Sampler(steps=2).run(init=START, **given),
        lambda: schuss.sample(init=START, **given),
        lambda: schuss.evidence(reference=schuss.Normal(dim=3), **given),
    ):
        with refuse(f"value_and_grad must return {whole}, got {got}", TypeError):
            call()
    for batched in (False, True):
        with refuse(f"fn must return a pair, log p and its gradient, got {got}", TypeError):
            schuss.sample(schuss.from_value_and_grad(lambda x: found, 3, batched=batched))


@pytest.mark.parametrize("shape", [(4,), (3,), (4, 2), ()])
def test_gradient_of_the_wrong_shape(shape):
    with refuse(
        f"value_and_grad returned a gradient of shape {shape} for positions of shape (4, 3); "
        "return one of the same shape"
    ):
        follow(value_and_grad=lambda x: (np.ones(len(x)), np.ones(shape)), engine="numpy")


@pytest.mark.parametrize(
    "energy",
    [
        lambda x: torch_energy(x.detach()),
        lambda x: torch.tensor(np.sum(x.detach().numpy() ** 2, axis=-1)),
        lambda x: torch.ones(len(x)),
    ],
    ids=["detach", "numpy", "constant"],
)
def test_torch_energy_without_gradient(energy):
    with refuse(
        "energy has no gradient with respect to its argument; compute it with torch operations on "
        "the tensor it is given, without .detach(), .item() or NumPy"
    ):
        follow(energy=energy, init=TENSOR, engine="torch")


def test_jax_energy_that_fails():
    def energy(x):
        raise RuntimeError("no luck\nat all")

    line = energy.__code__.co_firstlineno + 1
    with refuse(
        "energy works neither on one position of shape (3,) nor on a batch of shape (4, 3) "
        "(RuntimeError: no luck, "
        f'test_bad_input.py, line {line}: `raise RuntimeError("no luck\\nat all")`); make it take '
        "what init holds, or pass an init of the shape that it takes (a dict for one of a dict)"
    ):
        follow(energy=energy)


def test_torch_energy_without_a_tensor():
    with pytest.raises(ValueError, match=r"; for PyTorch pass init as a tensor"):
        follow(energy=lambda x: torch.sum(x**2, dim=-1))


# How it is run.


@pytest.mark.parametrize("value", [0, -3])
@pytest.mark.parametrize("name", ["steps", "every"])
def test_counts_of_a_path(name, value):
    with refuse(f"{name} must be a whole number of at least 1, got {value}"):
        follow(TARGET, **{name: value})


@pytest.mark.parametrize("name", ["draws", "gradients", "chains", "thin", "devices"])
@pytest.mark.parametrize("value", [8.0, 8.5, True, "8"])
def test_counts_of_a_run(name, value):
    remedy = "; pass 8, without a point" if value == 8.0 else ""
    least = 4 if name == "draws" else 1
    with refuse(f"{name} must be a whole number of at least {least}, got {value!r}{remedy}"):
        schuss.sample(TARGET, **{name: value})


def test_half_a_step():
    with refuse("steps must be a whole number of at least 1, got 1.5"):
        follow(TARGET, steps=1.5)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), None, "many"])
def test_steps_that_are_no_count(value):
    message = f"steps must be a whole number of at least 1, got {value!r}"
    with refuse(message):
        follow(TARGET, steps=value)
    with refuse(message):
        Sampler(steps=value)


def test_every_does_not_divide_steps():
    with refuse("steps must be a multiple of every, got 10 and 3"):
        follow(TARGET, steps=10, every=3)
    with refuse("steps must be a multiple of every, got 3 and 2"):
        follow(TARGET, steps=4, every=2, engine="numpy").extend(3)


def test_extend_by_nothing():
    with refuse("steps must be a whole number of at least 1, got 0"):
        follow(TARGET, engine="numpy").extend(0)
    with refuse("steps must be a whole number of at least 1, got 0"):
        Sampler(steps=2, engine="numpy").run(target=TARGET, init=START).extend(0)


def test_unknown_engine():
    with refuse("engine must be 'auto', 'numpy', 'jax' or 'torch', got 'cupy'"):
        follow(TARGET, engine="cupy")


@pytest.mark.parametrize("engine", ["jax", "numpy"])
def test_options_of_torch(engine):
    with refuse(f"compile only works with engine='torch', not {engine!r}"):
        follow(TARGET, engine=engine, compile=True)
    with refuse(f"gradient_dtype only works with engine='torch', not {engine!r}"):
        follow(TARGET, engine=engine, gradient_dtype=torch.bfloat16)
    with refuse(f"compile, gradient_dtype only works with engine='torch', not {engine!r}"):
        follow(TARGET, engine=engine, compile=True, gradient_dtype=torch.bfloat16)
    with refuse(f"compile only works with engine='torch', not {engine!r}"):
        Sampler(engine=engine, compile=True).run(target=TARGET, init=START)


def test_options_of_torch_with_an_engine():
    with pytest.raises(ValueError, match=r"^compile "):
        follow(TARGET, engine=engines.get("jax"), compile=True)


def seeded(seed):
    """The noise of every call that takes a seed."""
    given = {"engine": "numpy", "progress": False}
    small = {"method": "jarzynski", "steps": 2, "particles": 32, "groups": 2}
    return (
        follow(TARGET, seed=seed, engine="numpy").x[-1],
        Sampler(steps=2, seed=seed, engine="numpy").run(target=TARGET, init=START).x,
        schuss.sample(TARGET, sampler=ULA(0.5), draws=4, seed=seed, init=START, **given).x,
        schuss.evidence(TARGET, reference=schuss.Normal(dim=3), seed=seed, **small, **given).x,
        follow(TARGET, engine="numpy").ergodic_sample(3, seed=seed),
    )


@pytest.mark.parametrize(
    "seed",
    [
        1.5,
        True,
        None,
        "one",
        -1,
        [1, 2],
        np.random.RandomState(0),
        np.random,
        jax.random.split(jax.random.key(0)),
        np.array([1, 2]),
    ],
    ids=lambda seed: type(seed).__name__,
)
def test_seed_that_is_none(seed):
    calls = (
        lambda: follow(TARGET, seed=seed, engine="numpy"),
        lambda: Sampler(seed=seed),
        lambda: schuss.sample(TARGET, seed=seed),
        lambda: schuss.evidence(TARGET, reference=schuss.Normal(dim=3), seed=seed),
        lambda: follow(TARGET, engine="numpy").ergodic_sample(3, seed=seed),
    )
    for call in calls:
        with pytest.raises(
            ValueError,
            match=r"^seed must be a whole number of at least 0, a NumPy Generator or SeedSequence, "
            r"or one JAX key, got .*; pass e.g. seed=0$",
        ):
            call()


@pytest.mark.filterwarnings("ignore::schuss.NotConverged")
@pytest.mark.parametrize(
    "seed",
    [
        lambda n: np.int64(n),
        np.random.SeedSequence,
        np.random.default_rng,
        jax.random.key,
        jax.random.PRNGKey,
        lambda n: jax.random.key(n, impl="rbg"),
    ],
    ids=["integer", "sequence", "generator", "key", "old key", "wide key"],
)
def test_seeds_of_every_kind(seed):
    """Equal seeds give equal numbers, and others others."""
    first, same, other = seeded(seed(1)), seeded(seed(1)), seeded(seed(2))
    for one, again, apart in zip(first, same, other, strict=True):
        np.testing.assert_array_equal(one, again)
        assert not np.array_equal(one, apart)


def test_which_seeds_move_on():
    rng, sequence = np.random.default_rng(0), np.random.SeedSequence(0)
    paths = [follow(TARGET, seed=seed, engine="numpy").x for seed in (rng, rng, sequence, sequence)]
    assert not np.array_equal(paths[0], paths[1])
    np.testing.assert_array_equal(paths[2], paths[3])
    drawn = int(np.random.default_rng(0).integers(2**62))
    np.testing.assert_array_equal(paths[0], follow(TARGET, seed=drawn, engine="numpy").x)


def test_sampler():
    with refuse("steps must be a whole number of at least 1, got 0"):
        Sampler(steps=0)
    with refuse("keep must be one of 'last', 'reservoir', 'moments', got 'all'"):
        Sampler(keep="all")
    with refuse(
        "keep='last' isn't a sample with adjust='persistent', whose transitions take longer in "
        "some places than in others; use keep='reservoir' or keep='moments'"
    ):
        Sampler(ESH(adjust="persistent", refresh=3.0))


@pytest.mark.parametrize("shape", [(4, 2), (3,), (5, 3), (4, 3, 1)])
@pytest.mark.parametrize("engine", ["numpy", "torch"])
def test_velocity_of_the_wrong_shape(engine, shape):
    with pytest.raises(ValueError, match=r"^velocity must have shape \(4, 3\), got "):
        follow(TARGET, velocity=np.ones(shape), engine=engine)


@pytest.mark.parametrize(
    "noise",
    [
        schuss.Noise(None, None),
        schuss.Noise(np.ones((3, 4, 2)), None),
        schuss.Noise(np.ones((2, 4, 3)), None),
    ],
    ids=["none", "another dimension", "too short"],
)
def test_noise_that_does_not_fit(noise):
    with pytest.raises(ValueError, match=r"^noise\.normal must "):
        follow(TARGET, sampler=ULA(), noise=noise, engine="numpy")


def test_ergodic_sample_of_nothing():
    with refuse("n must be a whole number of at least 1, got 0"):
        follow(TARGET, engine="numpy").ergodic_sample(0)


def test_jarzynski():
    path = follow(TARGET, engine="numpy")
    with refuse("reference_energy must have shape (4,), got (3,)"):
        path.jarzynski(np.zeros(3))
    with refuse("Jarzynski weights belong to the un-adjusted ESH flow"):
        follow(TARGET, sampler=ULA(), engine="numpy").jarzynski(np.zeros(4))


# What the samplers are.


@pytest.mark.parametrize("sampler", [ESH, Unscaled, ULA, MALA, HMC, NoseHoover])
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf"), "small", None])
def test_step_size(sampler, value):
    with refuse(f"step_size must be positive and finite, got {value!r}"):
        sampler(step_size=value)


def test_step_size_of_each_chain():
    with refuse("step_size must be positive and finite, got [0.1, -0.1]"):
        ESH([0.1, -0.1])
    with refuse("step_size must be one number or one for each of the 4 chains, got shape (3,)"):
        follow(TARGET, sampler=ESH([0.1, 0.2, 0.3]), engine="numpy")
    with refuse("step_size must be one number or one for each of the 4 chains, got shape (4, 1)"):
        follow(TARGET, sampler=ULA([[0.1]] * 4), engine="numpy")


@pytest.mark.parametrize("name", ["kappa", "refresh", "metric"])
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_positive_numbers_of_esh(name, value):
    with refuse(f"{name} must be positive and finite, got {value!r}"):
        ESH(**{name: value})


def test_several_numbers_where_there_is_one():
    for name in ("kappa", "refresh"):
        with refuse(f"{name} must be one number, got [1.0, 2.0]"):
            ESH(**{name: [1.0, 2.0]})
    with refuse("step_size must be positive and finite, got True"):
        ESH(True)
    with refuse(
        "integrator must be one of 'leapfrog', 'minimal-norm', 'long-step', "
        "'fourth-order', got ['leapfrog']"
    ):
        ESH(integrator=["leapfrog"])


def test_mass():
    with refuse("mass must be positive and finite, got -1.0"):
        NoseHoover(mass=-1.0)


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), "a", None, True, [0.5]])
def test_q(value):
    with refuse(f"q must be between 0 (Newton) and 1 (ESH), got {value!r}"):
        Unscaled(q=value)


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("integrator", "'leapfrog', 'minimal-norm', 'long-step', 'fourth-order'"),
        ("adjust", "None, 'endpoint', 'orbit', 'persistent'"),
        ("weight", "'energy', 'speed', 'time'"),
    ],
)
def test_names(name, allowed):
    with refuse(f"{name} must be one of {allowed}, got 'best'"):
        ESH(**{name: "best"})


def test_steps_of_proposals():
    with refuse("steps must be a whole number of at least 1, got 0"):
        ESH(adjust="endpoint", steps=0)
    with refuse("steps must be a whole number of at least 2, got 1"):
        ESH(adjust="orbit", steps=1)
    with refuse("steps must be a whole number of at least 1, got 0"):
        HMC(steps=0)
    with refuse("steps must be a whole number of at least 1, got 2.5"):
        HMC(steps=2.5)


def test_what_does_not_go_together():
    with refuse("adjust='persistent' needs a refresh length; pass e.g. refresh=3.0"):
        ESH(adjust="persistent")
    for adjust in ("endpoint", "orbit"):
        with refuse(f"adjust={adjust!r} draws a new velocity each time; leave refresh=None"):
            ESH(adjust=adjust, refresh=3.0)
    for given in ({"refresh": 3.0}, {"adjust": "endpoint"}):
        with refuse(
            "weight='time' is the clock of the deterministic flow; use weight='energy' with "
            "refresh or adjust"
        ):
            ESH(weight="time", **given)
    for given in ({"adjust": "orbit"}, {"adjust": "persistent", "refresh": 3.0}):
        with refuse("box works with adjust=None and adjust='endpoint' only; leave one of them out"):
            ESH(box=(-1.0, 1.0), **given)


def test_boundary_and_clip():
    for make in (schuss.HMC, schuss.MALA):
        with refuse(
            "boundary='clamp' can't be undone, which a Metropolis test needs; use "
            "boundary='reflect'"
        ):
            make(0.1, box=(-1.0, 1.0), boundary="clamp")
    with refuse("boundary must be one of 'reflect', 'clamp', got 'wrap'"):
        schuss.ULA(0.1, boundary="wrap")
    with refuse("gradient_clip must be positive and finite, got -1.0"):
        schuss.NoseHoover(0.1, gradient_clip=-1.0)


def test_weight_by_time_needs_the_kappa_of_the_paper():
    with refuse("weight='time' needs kappa equal to the dimension 3, got 2.0"):
        follow(TARGET, sampler=ESH(weight="time", kappa=2.0), engine="numpy")


def test_metric_of_the_wrong_shape():
    with refuse("metric must have shape (3,), got (2,)"):
        follow(TARGET, sampler=ESH(metric=[1.0, 2.0]), engine="numpy")
    with refuse("metric must have shape (3,), got ()"):
        follow(TARGET, sampler=ESH(metric=2.0), engine="numpy")


@pytest.mark.parametrize("box", [(1.0, -1.0), (0.0, 0.0), (-1.0, [1.0, 1.0, -2.0]), (np.nan, 1.0)])
def test_box_upside_down(box):
    message = r"^box must have its lower corner below its upper one everywhere, got .*; pass box="
    with pytest.raises(ValueError, match=message):
        follow(TARGET, sampler=ESH(box=box), engine="numpy")


@pytest.mark.parametrize("box", [1.0, (-1.0,), (-1.0, [1.0, 1.0]), (-1.0, 0.0, 1.0)])
def test_box_of_the_wrong_shape(box):
    with pytest.raises(ValueError, match=r"^box must be a lower and an upper corner"):
        follow(TARGET, sampler=ESH(box=box), engine="numpy")


def test_start_outside_the_box():
    with pytest.raises(ValueError, match=r"^init must lie inside the box"):
        follow(TARGET, sampler=ESH(box=(-0.1, 0.1)), engine="numpy")
