"""What is sampled, and from where: the user's energy and start, checked and made flat."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from schuss import engines
from schuss.algorithms import Algorithm
from schuss.arguments import (
    arrayed,
    corners,
    entropy,
    filled,
    floating,
    held,
    numbers,
    overhang,
    seed_or_generator,
    whole,
)
from schuss.coordinates import Auxiliary, Diagonal, to_z
from schuss.core.kernel import Noise
from schuss.engines.engine import Engine, Job, check_weights, number
from schuss.model import Model
from schuss.targets import TARGETS
from schuss.targets.posteriors import POSTERIORS
from schuss.targets.target import Target


@dataclasses.dataclass(frozen=True)
class Problem:
    """An energy and gradient of flat positions, and the way back to the user's arrays."""

    engine: Engine
    grad_fn: Callable
    x: Any  # the start, (chains, dim)
    shape: tuple[int, ...]  # of one position
    export: Callable  # to the user's kind of array
    unflatten: Callable  # from flat positions to the user's shape
    restore: Callable  # from flat positions to the user's kind and shape of array
    free: np.ndarray | None = None  # columns that move, where others are fixed

    @property
    def dim(self) -> int:
        """Coordinates of one position."""
        return self.x.shape[1]


@dataclasses.dataclass(frozen=True)
class Negative:
    """The energy of a log-density."""

    logdensity: Callable
    argument = "logdensity"  # what errors call it

    def __call__(self, x):
        """−log p(x)."""
        return -number("logdensity", self.logdensity(x))


@dataclasses.dataclass(frozen=True)
class OfTarget:
    """A target's energy for one array library."""

    function: Callable
    xp: Any

    def __call__(self, x):
        """E(x)."""
        return self.function(self.xp, x)


@dataclasses.dataclass(frozen=True, eq=False)
class Conditional:
    """E(· | y): an energy of (x, y) with a condition for each chain, which may be overwritten."""

    function: Callable
    y: Any

    def __call__(self, x):
        """Energies as the function shapes them."""
        return self.function(x, self.y)


@dataclasses.dataclass(frozen=True)
class Scaled:
    """A multiple of energies and gradients."""

    grad_fn: Callable
    scale: float

    @property
    def energy(self):
        """The energy that it is a multiple of."""
        return self.grad_fn.energy  # pyright: ignore[reportFunctionMemberAccess]

    def __call__(self, x):
        """Energies and gradients at x."""
        energy, g = self.grad_fn(x)
        return self.scale * energy, self.scale * g


@dataclasses.dataclass(frozen=True, eq=False)
class Free:
    """An energy of some of the coordinates, the others fixed at values of each chain."""

    grad_fn: Callable
    fixed: Any  # (chains, dim − free), may be overwritten
    kept: Any  # their columns among all coordinates
    free: Any  # columns of the others
    order: Any  # columns of all coordinates among the free ones and the fixed ones, in this order
    xp: Any

    @property
    def energy(self):
        """The energy of all coordinates."""
        return self.grad_fn.energy  # pyright: ignore[reportFunctionMemberAccess]

    def whole(self, x):
        """Positions with the fixed coordinates in their places."""
        return self.xp.take(self.xp.concat([x, self.fixed], axis=1), self.order, axis=1)

    def __call__(self, x):
        """Energies, and gradients with respect to the free coordinates."""
        energy, g = self.grad_fn(self.whole(x))
        return energy, self.xp.take(g, self.free, axis=1)


def clamped(problem: Problem, fixed: Any) -> Problem:
    """The problem with the coordinates of a mask fixed where chains start."""
    given = np.asarray(fixed.cpu() if hasattr(fixed, "cpu") else fixed)
    if given.dtype != bool or given.shape not in (problem.shape, (problem.dim,)):
        raise ValueError(
            f"fixed must be a mask, True where a coordinate stays as it is in init, of shape "
            f"{problem.shape}, got dtype {given.dtype} and shape {given.shape}"
        )
    mask = _in_order(problem, given.astype(float)) > 0
    if mask.all():
        raise ValueError("fixed must leave a coordinate free, got True everywhere")
    engine, columns = problem.engine, np.argsort(mask, kind="stable")
    free, kept = np.split(columns, [int((~mask).sum())])

    def index(values):
        found = engine.asarray(values)
        return found.to(problem.x.device) if engine.name == "torch" else found

    def taken(values):
        return engine.xp.take(problem.x, index(values), axis=1)

    order = index(np.argsort(columns))
    grad_fn = Free(problem.grad_fn, taken(kept), index(kept), index(free), order, engine.xp)
    return dataclasses.replace(
        problem,
        grad_fn=grad_fn,
        x=taken(free),
        free=free,
        restore=lambda x: problem.restore(grad_fn.whole(x)),
    )


@dataclasses.dataclass(frozen=True)
class Clipped:
    """Energies with gradients whose components are no larger than a limit."""

    grad_fn: Callable
    limit: float
    xp: Any

    @property
    def energy(self):
        """The energy that it is of."""
        return self.grad_fn.energy  # pyright: ignore[reportFunctionMemberAccess]

    def __call__(self, x):
        """Energies and gradients at x."""
        energy, g = self.grad_fn(x)
        return energy, self.xp.clip(g, -self.limit, self.limit)


def pose(
    target: Target | None = None,
    *,
    energy: Callable | None = None,
    logdensity: Callable | None = None,
    value_and_grad: Callable | None = None,
    init=None,
    chains: int | None = None,
    seed: Any = 0,
    engine: str | Engine = "auto",
    compile: bool = False,
    gradient_dtype: Any = None,
) -> Problem:
    """Take what the user gave, refuse what can't work, and make one problem of it."""
    seed = seed_or_generator(seed)
    given = {
        "target": target,
        "energy": energy,
        "logdensity": logdensity,
        "value_and_grad": value_and_grad,
    }
    named = [name for name, value in given.items() if value is not None]
    if len(named) != 1:
        raise ValueError(
            "pass exactly one of target, energy=, logdensity= or value_and_grad=, got "
            + (" and ".join(named) or "none")
        )
    (kind,) = named
    if kind == "target" and isinstance(target, Model):
        function = "logdensity" if target.logdensity is not None else "value_and_grad"
        raise TypeError(
            "target is a model, which schuss.sample and schuss.evidence take; here pass "
            f"{function}=model.{function} and init=model.start(rng, chains)"
        )
    if kind == "target":
        check_target("target", target)
    elif not callable(given[kind]):
        raise TypeError(f"{kind} must be callable, got {_described(given[kind])}")
    if init is None:
        init = _start(target, chains, seed)
    elif chains is not None:
        raise ValueError("chains counts the starts of a target; leave it out when init= is given")

    options = {"compile": compile, "gradient_dtype": gradient_dtype}
    chosen = _engine(engine, kind, given[kind], init, options)
    if not isinstance(seed, int) and chosen.name != "torch":
        raise ValueError(
            f"seed must be a whole number with engine={chosen.name!r}; a torch.Generator is for "
            "engine='torch'"
        )
    x, flat, export, unflatten, restore = _positions(chosen, init)
    if target is not None and x.shape[1:] != (target.dim,):
        raise ValueError(
            f"init has shape {tuple(np.shape(init))} but {target.name} has dimension {target.dim}; "
            f"pass init of shape (chains, {target.dim})"
        )
    grad_fn = chosen.value_and_grad(_function(chosen, kind, given[kind]), x)
    return Problem(chosen, grad_fn, flat, tuple(x.shape[1:]), export, unflatten, restore)


def check_target(
    name: str,
    value: Any,
    wanted: str = "a schuss target",
    remedy: str = "pass a function as energy= or logdensity=",
) -> None:
    """Refuse what is neither a target nor a model, and say how to pass what it seems to be."""
    if isinstance(value, Target | Model):
        return
    if type(value).__module__.startswith("pymc."):
        raise TypeError(f"{name} is a PyMC model; pass schuss.from_pymc(model)")
    raise TypeError(f"{name} must be {wanted}, got {_described(value, remedy)}")


def _described(value: Any, remedy: str = "") -> str:
    """What was given instead, and how to get the target that it is the name of."""
    if not isinstance(value, str):
        return type(value).__name__ + (f"; {remedy}" if remedy else "")
    if value.replace("_", "-") in TARGETS | POSTERIORS:
        return f"the name {value!r}; pass schuss.targets.get({value!r})"
    return f"{value!r}; names are for schuss.targets.get, which knows those of `schuss targets`"


def over_devices(problem: Problem, devices: int | None) -> Problem:
    """The problem with its chains spread over so many devices, or as it is."""
    if devices is None:
        return problem
    count = whole("devices", devices, 1)
    if problem.engine.name != "jax":
        raise ValueError(
            f"devices is for engine='jax', got engine={problem.engine.name!r}; leave it out"
        )
    import jax

    present = len(jax.local_devices())
    if count > present:
        raise ValueError(
            f"devices={count} are more than the {present} that JAX has here; pass fewer, or leave "
            "it out for all of them"
        )
    return dataclasses.replace(problem, engine=engines.get("jax", devices=count))


def frames(problem: Problem, algorithm: Algorithm, seed) -> tuple:
    """The coordinates that an algorithm moves in: its metric, and one more where there is one."""
    metric = getattr(algorithm, "metric", None)
    built = []
    if metric is not None:
        scale = numbers("metric", metric)
        if scale.shape not in ((problem.dim,), problem.shape):
            raise ValueError(f"metric must have shape ({problem.dim},), got {scale.shape}")
        scale = _in_order(problem, scale)
        built.append(Diagonal(problem.engine.asarray(scale, problem.x)))
    if problem.dim == 1 and hasattr(algorithm, "kappa"):
        start = np.random.default_rng([entropy(seed), 1]).standard_normal((len(problem.x), 1))
        built.append(Auxiliary(problem.engine.asarray(start, problem.x)))
    return tuple(built)


def launch(
    problem: Problem,
    algorithm: Algorithm,
    seed,
    *,
    speed=True,
    weighted=True,
    velocity=None,
    noise=None,
):
    """The job, its first state and what that shows. A start that isn't finite is refused."""
    engine, x, seed = problem.engine, problem.x, held(seed_or_generator(seed))
    coordinates = frames(problem, algorithm, seed)
    extra = sum(isinstance(frame, Auxiliary) for frame in coordinates)
    kernel, params = algorithm.build(problem.dim + extra, speed=speed, weighted=weighted)
    if getattr(algorithm, "box", None) is not None:
        lower, upper = _corners(problem, algorithm, extra)
        params = params._replace(lower=lower, upper=upper)
    params = type(params)(*(engine.asarray(value, x) for value in params))
    if params.step_size.ndim and params.step_size.shape != (len(x),):
        raise ValueError(
            f"step_size must be one number or one for each of the {len(x)} chains, got shape "
            f"{tuple(params.step_size.shape)}"
        )
    if not isinstance(noise, Noise | None):
        raise TypeError(
            f"noise must be a schuss.Noise of stacked arrays, got {type(noise).__name__}; pass "
            "schuss.Noise(normal, uniform)"
        )
    if noise is None:
        source = engine.source(seed, x)
    else:
        source = Noise(*(None if part is None else engine.asarray(part, x) for part in noise))
    clip, grad_fn = getattr(algorithm, "gradient_clip", None), problem.grad_fn
    if clip is not None:
        grad_fn = Clipped(grad_fn, float(clip), engine.xp)
    job = Job(kernel, grad_fn, params, source, coordinates)
    if velocity is not None:
        velocity = floating("velocity", arrayed("velocity", velocity))
        shape = (len(x), problem.dim + extra)
        if np.shape(velocity) != shape:
            raise ValueError(f"velocity must have shape {shape}, got {np.shape(velocity)}")
        velocity = engine.asarray(velocity, x)
    z = to_z(engine.xp, coordinates, x)
    check_noise(job, z, 0, starting=velocity is None)
    state, seen = engine.start(job, z, velocity)
    _check_start(engine, problem.grad_fn, state)
    return job, state, seen


def check_noise(job: Job, x, last: int, *, starting: bool = False) -> None:
    """Refuse injected noise that is missing, of another shape, or ends before the step `last`."""
    if not isinstance(job.source, Noise):
        return
    normals = x.shape[1] if job.kernel.normal or starting else 0
    for name, width in (("normal", normals), ("uniform", job.kernel.uniforms)):
        part = getattr(job.source, name)
        given = (0, 0, 0) if part is None else (*part.shape, 0, 0, 0)[:3]
        fits = given[0] > last and given[1] == len(x) and given[2] >= width
        if width and not (fits and (name == "uniform" or given[2] == width)):
            raise ValueError(
                f"noise.{name} must have shape (at least {last + 1}, {len(x)}, {width}), an entry "
                f"for each step and one for the start, got {None if part is None else part.shape}"
            )


def _corners(problem: Problem, algorithm, extra: int):
    """The box where the kernel moves: in its metric, and open along what was added."""
    lower, upper = (_in_order(problem, corner) for corner in corners(algorithm.box, problem.shape))
    start = problem.engine.to_numpy(problem.x)
    slack = overhang(lower, upper, float(np.finfo(start.dtype).eps))
    if not np.all((lower - slack <= start) & (start <= upper + slack)):
        raise ValueError("init must lie inside the box; move it there or widen the box")
    scale = 1.0
    if getattr(algorithm, "metric", None) is not None:
        scale = _in_order(problem, np.asarray(algorithm.metric, float))
    return (
        np.append(lower / scale, [-np.inf] * extra),
        np.append(upper / scale, [np.inf] * extra),
    )


def _in_order(problem: Problem, values: np.ndarray) -> np.ndarray:
    """Values for one position, as the user sees it, in the order in which it lies flat."""
    dim = math.prod(problem.shape)
    order = problem.unflatten(np.arange(dim)[None])[0].reshape(-1)
    flat = np.empty(dim)
    flat[order] = values.reshape(-1)
    return flat if problem.free is None else flat[problem.free]


def _start(target, chains, seed):
    if target is None:
        raise ValueError("init is missing; pass the starting positions, shape (chains, dim)")
    count = 500 if chains is None else whole("chains", chains, 1)
    return target.start(np.random.default_rng(entropy(seed)), count)


def _engine(engine, kind, function, init, options) -> Engine:
    options = {name: value for name, value in options.items() if value}
    if not isinstance(engine, str):
        if not hasattr(engine, "value_and_grad"):
            raise TypeError(
                "engine must be 'auto', 'numpy', 'jax', 'torch' or one of schuss.engines, got "
                f"{engine!r}"
            )
        if options:
            raise ValueError(
                f"{', '.join(options)} belongs to the engine; pass engine='torch', or give it to "
                "the engine itself"
            )
        _check_kind(engine.name, kind)
        return engine
    if engine == "auto":
        if _library(init) == "torch" or any(_is_torch_module(part) for part in _parts(function)):
            engine = "torch"
        else:
            engine = "numpy" if kind == "value_and_grad" else "jax"
    _check_kind(engine, kind)
    return engines.get(engine, **options)


def _check_kind(engine: str, kind: str) -> None:
    if engine == "numpy" and kind in ("energy", "logdensity"):
        raise ValueError(
            "engine='numpy' has no autodiff; pass value_and_grad=, a function that returns "
            "energies and gradients, or use engine='jax' or 'torch'"
        )
    if engine in ("jax", "torch") and kind == "value_and_grad":
        raise ValueError(f"value_and_grad= runs on engine='numpy', not {engine!r}")


def _parts(function):
    return (function, getattr(function, "__self__", None))


def _library(value):
    """The array library that a value belongs to, by the name of its engine."""
    name = type(value).__module__.partition(".")[0]
    return {"jaxlib": "jax"}.get(name, name)


def _is_torch_module(value):
    return any(base.__module__.startswith("torch.nn") for base in type(value).__mro__)


def _positions(engine: Engine, init):
    """The start as (chains, *shape) and as (chains, dim), and the ways back."""
    given = arrayed("init", init)
    if str(given.dtype) == "object":
        raise TypeError(
            f"init must be positions, shape (chains, dim), got {type(init).__name__}; pass an "
            "array (dicts and functions are for schuss.sample)"
        )
    if _library(given) == "torch" and engine.name != "torch":
        raise ValueError(
            f"init is a torch tensor but the engine is {engine.name!r}; pass a NumPy array or use "
            "engine='torch'"
        )
    if "float16" in str(given.dtype):
        raise ValueError(
            f"init has dtype {given.dtype}, too coarse to follow a flow in; convert it to 32 or 64 "
            "bits (gradient_dtype= sets the precision inside a torch energy)"
        )
    given = filled("init", floating("init", given))
    shape = tuple(given.shape)
    native = _library(given) == engine.name
    export = (lambda array: array) if native else engine.to_numpy
    x = engine.asarray(given[None] if len(shape) == 1 else given)
    flat, unflatten = engine.flatten(x)

    def restore(positions):
        positions = unflatten(positions)
        return export(positions[0] if len(shape) == 1 else positions)

    return x, flat, export, unflatten, restore


def _function(engine, kind, given):
    if kind == "target":
        if engine.name == "numpy":
            return lambda x: (given.energy(np, x), given.gradient(np, x))
        return OfTarget(given.energy, engine.xp)
    return Negative(given) if kind == "logdensity" else given


def _check_start(engine, grad_fn, state):
    energy, g = engine.to_numpy(state.energy), engine.to_numpy(state.g)
    bad = ~(np.isfinite(energy) & np.isfinite(g).all(axis=-1))
    if bad.any():
        check_weights(engine, grad_fn)
        raise ValueError(
            f"energy or gradient is not finite at the start of {bad.sum()} of {len(bad)} chains "
            f"(the first is chain {int(bad.argmax())}); move init to where the energy is finite"
        )
