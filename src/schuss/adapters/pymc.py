"""PyMC models: their log-density and values in JAX, over PyMC's unconstrained value variables."""

import contextlib
import functools
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.continuous import FlatRV, HalfFlatRV
from pymc.distributions.custom import CustomDistRV
from pymc.distributions.multivariate import ICARRV, LKJCorrRV, _LKJCholeskyCovRV
from pymc.distributions.transforms import _default_transform
from pymc.initial_point import make_initial_point_expression
from pymc.logprob.transforms import CircularTransform
from pymc.pytensorf import compile as compiled
from pymc.pytensorf import find_rng_nodes, replace_rng_nodes, reseed_rngs
from pytensor import config
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import graph_inputs
from pytensor.tensor.random.type import RandomType

from schuss.adapters import start
from schuss.adapters.circle import Circles
from schuss.adapters.layout import Layout, join, layout
from schuss.adapters.over import gradients, named
from schuss.adapters.translation import translated
from schuss.engines.width import wide
from schuss.model import Model, Parts

# Flat ones can't be normalised, of those that the user wrote it isn't known, and the constant of
# PyMC's LKJ densities has the wrong sign.
_IMPROPER = (FlatRV, HalfFlatRV, ICARRV, CustomDistRV, _LKJCholeskyCovRV, LKJCorrRV)

_BUILDING = threading.RLock()


def from_pymc(model: pm.Model) -> Model:
    """log p = Σ log prior + log |Jacobian| + Σ log likelihood + Σ potentials, as PyMC has it."""
    _check(model)
    with _uncompiled():
        point = model.initial_point(0)
    inputs, transforms = model.value_vars, dict(model.rvs_to_transforms)
    centre = [np.asarray(point[value.name], np.float64) for value in inputs]
    flat = layout(centre)
    free, shown = list(model.free_RVs), [*model.free_RVs, *model.deterministics]
    names = [variable.name for variable in shown]

    factors = cast(list, model.logp(sum=False))
    if find_rng_nodes(factors):
        raise ValueError(
            "model draws random numbers in its logp, as with pm.Minibatch; pass the whole data"
        )
    data = _data([*factors, *shown])
    circles = Circles(_angles(model, transforms, centre))
    logdensity = circles.logdensity(_sum(inputs, factors, data, flat))
    _check_gradient(logdensity, circles.planar_dim)
    values = _jax(inputs, model.replace_rvs_by_values(shown), data)
    dims, coords = _dims(model, names)
    parts = None
    if all(map(_is_proper, free, map(transforms.get, free))):
        likelihood = factors[len(free) :]
        parts = Parts(
            _lazily(lambda: _sum(inputs, factors[: len(free)], data, flat)),
            _lazily(lambda: _sum(inputs, likelihood, data, flat)),
            _lazily(lambda: start.finite(_forward(free, transforms, data))),
        )
    return Model(
        name=model.name or "PyMC model",
        dim=circles.planar_dim,
        logdensity=logdensity,
        start=start.around(
            circles.planar(join(np, centre)),
            start.uniform(1.0),
            gradients(logdensity),
            "give the model's variables an initval= at which its logp is finite",
        ),
        constrain=named(names, lambda x: values(*flat.split(circles.angles(jnp, x)))),
        dims=dims,
        coords=coords,
        parts=parts,
    )


def _angles(model: pm.Model, transforms: Mapping, centre: Sequence[np.ndarray]) -> np.ndarray:
    """Which coordinates PyMC winds around a circle, (dim,) of bool."""
    circular = {
        model.rvs_to_values[variable]
        for variable, transform in transforms.items()
        if isinstance(transform, CircularTransform)
    }
    sizes = zip(model.value_vars, centre, strict=True)
    return np.concatenate([np.full(value.size, name in circular) for name, value in sizes])


def _check(model: Any) -> None:
    if not isinstance(model, pm.Model):
        raise TypeError(
            f"model must be a pymc.Model, got {type(model).__name__}; pass the one that "
            "`with pm.Model() as model` made"
        )
    discrete = [rv.name for rv in model.free_RVs if not rv.dtype.startswith("float")]
    if discrete:
        raise ValueError(
            f"model has discrete free variables, {', '.join(discrete)}, along which there is no "
            "gradient; sum them out, e.g. with pm.Mixture"
        )
    if not model.free_RVs:
        raise ValueError(
            "model has no free variables, so there is nothing to sample; leave observed= out of "
            "those that are unknown"
        )


def _check_gradient(logdensity: Callable, dim: int) -> None:
    with wide():
        try:
            jax.eval_shape(jax.grad(logdensity), jax.ShapeDtypeStruct((dim,), np.float64))
        except (NotImplementedError, ValueError) as error:
            raise NotImplementedError(
                f"model has an operation that JAX has no gradient for: {str(error).splitlines()[0]}"
            ) from error


def _uncompiled() -> contextlib.AbstractContextManager:
    """Keeps PyTensor from calling a C compiler, for what isn't worth the seconds that takes."""
    return config.change_flags(cxx="")


def _data(graphs: Sequence) -> dict:
    """What the shared variables hold now, as constants."""
    return {
        variable: pt.constant(variable.get_value(borrow=False))
        for variable in graph_inputs(graphs)
        if isinstance(variable, SharedVariable) and not isinstance(variable.type, RandomType)
    }


def _jax(inputs: Sequence, outputs: Sequence, data: Mapping) -> Callable:
    """A graph as a JAX function of its inputs, its constants in 64 bits."""
    plain = [pt.as_tensor(output, allow_xtensor_conversion=True) for output in outputs]
    # Evaluated now, the constants don't belong to whatever JAX may be tracing meanwhile.
    with _BUILDING, wide(), jax.ensure_compile_time_eval(), _uncompiled():
        try:
            return translated(inputs, cast(list, clone_replace(plain, data)))
        except NotImplementedError as error:
            raise NotImplementedError(
                f"model has an operation that PyTensor can't translate to JAX: {error}"
            ) from error


def _sum(inputs: Sequence, factors: Sequence, data: Mapping, flat: Layout) -> Callable:
    """The sum of some of the model's terms, as a function of one flat position."""
    if not factors:
        return lambda x: jnp.zeros((), x.dtype)
    terms = [pt.as_tensor(factor, allow_xtensor_conversion=True).sum() for factor in factors]
    graph = _jax(inputs, [pt.add(*terms, 0.0)], data)
    return lambda x: graph(*flat.split(x))[0]


def _lazily(build: Callable) -> Callable:
    """A function that is built when it is first called."""
    built = functools.cache(build)

    def function(*args):
        # Two threads that built at once would mix up PyTensor's settings.
        with _BUILDING:
            ready = built()
        return ready(*args)

    return function


def _is_proper(variable: Any, transform: Any) -> bool:
    """Whether a variable's logp is normalised where its values can go, and can be drawn from.

    A transform other than the distribution's own, such as `ordered`, confines it to a part of its
    support; a circular one winds the real line around it.
    """
    own = _default_transform(variable.owner.op, variable)
    return (
        not isinstance(variable.owner.op, _IMPROPER)
        and not isinstance(transform, CircularTransform)
        and (transform is None or type(transform) is type(own))
    )


def _forward(free: Sequence, transforms: dict, data: Mapping) -> Callable:
    """(rng, n) → draws of the free variables, by PyMC's generators, unconstrained and flat."""
    draws = make_initial_point_expression(
        free_rvs=free,
        rvs_to_transforms=transforms,
        initval_strategies=dict.fromkeys(free, "prior"),
        return_transformed=True,
    )
    draws = replace_rng_nodes(cast(list, clone_replace(draws, data)))
    with _uncompiled():
        function = compiled(inputs=[], outputs=draws, mode="FAST_COMPILE")
    generators = find_rng_nodes(function.maker.fgraph.outputs)

    def draw(rng: np.random.Generator, n: int) -> np.ndarray:
        reseed_rngs(generators, int(rng.integers(2**63)))
        with _uncompiled():
            rows = [join(np, function()) for _ in range(n)]
        return np.stack(rows).astype(np.float64)

    return draw


def _dims(model: pm.Model, names: Sequence[str]) -> tuple[dict, dict]:
    """ArviZ's dims of the named variables, and the coords of those dims which have some."""
    dims = {
        name: [
            dim or f"{name}_dim_{axis}" for axis, dim in enumerate(model.named_vars_to_dims[name])
        ]
        for name in names
        if name in model.named_vars_to_dims
    }
    used = {dim for names in dims.values() for dim in names}
    coords = {
        dim: list(values)
        for dim, values in model.coords.items()
        if dim in used and values is not None
    }
    return dims, coords
