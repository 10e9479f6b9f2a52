"""Bad input is refused at the door: the argument, what was wrong with it, and the remedy."""

import re

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from torch import nn

import schuss
from schuss import ESH, HMC, MALA, ULA, NoseHoover, Sampler, Unscaled, engines, targets
from schuss.sampling.question import ask

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
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_number(init, name):
    engine = "torch" if isinstance(init, torch.Tensor) else "jax"
    message = f"init must be floating point, got dtype {name}; convert it, e.g. init * 1.0"
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
    """Of the precision in which their library makes floats."""
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
        assert str(problem.x.dtype) == ("float64" if callable(start) else precision)
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


@pytest.mark.parametrize("shape", [(), (4, 3), (3,)])
def test_numpy_energy_of_the_wrong_shape(shape):
    with refuse(
        f"energy returned shape {shape} for a batch of 4 chains; return one energy per chain, "
        "shape (4,) or (4, 1)"
    ):
        follow(value_and_grad=lambda x: (np.ones(shape), x), engine="numpy")


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


def test_jax_energy_in_numpy():
    """The middle is JAX's own words, which change from one release to the next."""
    with pytest.raises(
        ValueError,
        match=re.escape("energy works neither on one position of shape (3,) (TracerArray")
        + ".*"
        + re.escape(") nor on a batch of shape (4, 3) (TracerArray")
        + ".*"
        + re.escape("); write it with jax.numpy, or pass value_and_grad= with engine='numpy'")
        + "$",
    ):
        follow(energy=lambda x: np.sum(np.asarray(x) ** 2, axis=-1))


def test_jax_energy_that_fails():
    def energy(x):
        raise RuntimeError("no luck\nat all")

    with refuse(
        "energy works neither on one position of shape (3,) (RuntimeError: no luck) nor on a batch "
        "of shape (4, 3) (RuntimeError: no luck); make it take what init holds, or pass an init of "
        "the shape that it takes (a dict for one of a dict)"
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


def test_whole_floats_are_counts():
    assert len(follow(TARGET, steps=4.0, every=2.0, engine="numpy").x) == 3


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


@pytest.mark.parametrize("seed", [1.5, None, "one"])
@pytest.mark.parametrize("engine", ["numpy", "jax", "torch"])
def test_seed_that_is_none(engine, seed):
    with pytest.raises((TypeError, ValueError), match=r"^seed must be "):
        follow(TARGET, seed=seed, engine=engine)
    with pytest.raises((TypeError, ValueError), match=r"^seed must be "):
        Sampler(seed=seed, engine=engine).run(target=TARGET, init=START)


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
    with refuse("n must be at least 1, got 0"):
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


def test_mass():
    with refuse("mass must be positive and finite, got -1.0"):
        NoseHoover(mass=-1.0)


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan")])
def test_q(value):
    with refuse(f"q must be between 0 (Newton) and 1 (ESH), got {value}"):
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
    for given in ({"adjust": "endpoint"}, {"adjust": "persistent", "refresh": 3.0}):
        with refuse("box works with adjust=None only; leave one of them out"):
            ESH(box=(-1.0, 1.0), **given)


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
    with refuse("box must have its lower corner below its upper one everywhere"):
        follow(TARGET, sampler=ESH(box=box), engine="numpy")


@pytest.mark.parametrize("box", [1.0, (-1.0,), (-1.0, [1.0, 1.0]), (-1.0, 0.0, 1.0)])
def test_box_of_the_wrong_shape(box):
    with pytest.raises(ValueError, match=r"^box must be a lower and an upper corner"):
        follow(TARGET, sampler=ESH(box=box), engine="numpy")


def test_start_outside_the_box():
    with pytest.raises(ValueError, match=r"^init must lie inside the box"):
        follow(TARGET, sampler=ESH(box=(-0.1, 0.1)), engine="numpy")
