"""NumPyro models: their potential, over the unconstrained values of their latent sites."""

import functools
import inspect
import threading
from collections.abc import Callable, Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from numpyro import handlers
from numpyro.distributions import Delta, ImproperUniform, MaskedDistribution
from numpyro.distributions.transforms import biject_to
from numpyro.infer.initialization import init_to_uniform
from numpyro.infer.util import constrain_fn, log_density, potential_energy
from numpyro.primitives import Messenger

from schuss.adapters import start
from schuss.adapters.called import called
from schuss.adapters.layout import join, layout
from schuss.adapters.over import gradients, mapped, named
from schuss.engines.width import wide
from schuss.model import Model, Parts
from schuss.user_code import untraceable

_RUNNING = threading.RLock()


def from_numpyro(model: Callable, *args, **kwargs) -> Model:
    """log p = Σ log prior + log |Jacobian| + Σ log likelihood + Σ factors, as NumPyro has it."""
    if not callable(model):
        raise TypeError(
            f"model must be a function with NumPyro's sample statements, got {type(model).__name__}"
        )
    try:
        inspect.signature(model).bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(
            f"model can't be called with the arguments given ({error}); pass them after it, as in "
            "schuss.from_numpyro(model, data)"
        ) from None
    name = called(model, "NumPyro model")
    trace, shapes = _look(model, args, kwargs)
    model = _settled(model, args, kwargs, trace)
    latent = list(shapes)
    shown = latent + [site for site in trace if trace[site]["type"] == "deterministic"]
    flat = layout(list(shapes.values()))

    def sites(x):
        return dict(zip(latent, flat.split(jnp.asarray(x)), strict=True))

    @_alone
    def logdensity(x):
        return -potential_energy(model, args, kwargs, sites(x))

    @_alone
    def values(x, names):
        found = constrain_fn(model, args, kwargs, sites(x), return_deterministic=True)
        return [found[name] for name in names]

    parts = None
    if all(_is_proper(trace[site]) for site in latent):
        prior, likelihood, draw = _pieces(model, args, kwargs, latent)
        parts = Parts(
            lambda x: prior(sites(x)),
            lambda x: likelihood(dict(zip(latent, values(x, latent), strict=True))),
            start.finite(draw),
        )
    dims, coords = _dims({site: trace[site] for site in shown})
    return Model(
        name=name,
        dim=flat.dim,
        logdensity=logdensity,
        start=start.around(
            np.zeros(flat.dim),
            start.uniform(2.0),
            gradients(logdensity),
            "check that its log-density is finite where the unconstrained values are near 0",
        ),
        constrain=named(shown, lambda x: values(x, shown)),
        dims=dims,
        coords=coords,
        parts=parts,
    )


def _alone(function: Callable) -> Callable:
    """Run models one at a time: NumPyro's threads share one stack of handlers."""

    @functools.wraps(function)
    def guarded(*args):
        with _RUNNING:
            return function(*args)

    return guarded


class Whole(Messenger):
    """Refuses plates that hold a part of their data: it would be the same part throughout."""

    def process_message(self, msg):
        """Look at one statement of the model."""
        if msg["type"] == "plate" and msg["args"][1] not in (None, msg["args"][0]):
            raise ValueError(
                f"plate {msg['name']!r} takes a subsample of its data; leave subsample_size out"
            )


def _look(model: Callable, args: tuple, kwargs: dict) -> tuple[dict, dict]:
    """The sites of the model, and the shapes of the latent ones where they have no bounds."""
    traces = []

    @_alone
    def unconstrained(key):
        begun = handlers.substitute(handlers.seed(model, key), substitute_fn=init_to_uniform())
        traces.append(handlers.trace(Whole(begun)).get_trace(*args, **kwargs))
        return {name: _inverse(traces[0][name]) for name in _latent(traces[0])}

    # Nothing is computed: one operation at a time, compiled for this, would take seconds.
    try:
        with wide():
            shapes = jax.eval_shape(unconstrained, jax.random.key(0))
    except Exception as error:
        known = untraceable("model", error)
        if known is None:
            raise
        raise ValueError(known) from error
    # The trip through JAX sorts the names.
    return traces[0], {name: shapes[name] for name in traces[0] if name in shapes}


def _latent(trace: Mapping) -> list[str]:
    """The latent sites' names in the model's order, unless there is something we can't sample."""
    hidden = [
        name for name, site in trace.items() if site["type"] == "sample" and not site["is_observed"]
    ]
    discrete = [name for name in hidden if trace[name]["fn"].support.is_discrete]
    if discrete:
        raise ValueError(
            f"model has discrete latent sites, {', '.join(discrete)}, along which there is no "
            "gradient; sum them out, e.g. with numpyro.distributions.MixtureSameFamily"
        )
    for name, site in trace.items():
        if name in hidden and isinstance(site["fn"], Delta):
            raise ValueError(
                f"site {name!r} has a Delta distribution, so there is nothing to sample; make it "
                "a numpyro.deterministic"
            )
    if not hidden:
        raise ValueError(
            "model has no latent sites, so there is nothing to sample; leave obs= out of those "
            "that are unknown"
        )
    return hidden


def _settled(model: Callable, args: tuple, kwargs: dict, trace: Mapping) -> Callable:
    """The model with what isn't sampled, such as the weights of a module, at its first values."""
    key = jax.random.key(0)
    fixed = {}
    if any(_is_fixed(site) for site in trace.values()):
        begun = handlers.substitute(handlers.seed(model, key), substitute_fn=init_to_uniform())
        with wide(), _RUNNING:
            trace = handlers.trace(begun).get_trace(*args, **kwargs)
        fixed = {name: site["value"] for name, site in trace.items() if _is_fixed(site)}

    def settled(*args, **kwargs):
        # A new seed at every call: the handler keeps its key, which must not outlive a trace.
        known = handlers.substitute(model, data=fixed)
        return handlers.seed(known, key, hide_types=["sample"])(*args, **kwargs)

    return settled


def _is_fixed(site: Mapping) -> bool:
    return site["type"] in ("param", "mutable")


def _inverse(site: Mapping):
    """A site's value without its bounds."""
    return biject_to(site["fn"].support).inv(site["value"])


def _pieces(
    model: Callable, args: tuple, kwargs: dict, latent: Sequence[str]
) -> tuple[Callable, Callable, Callable]:
    """log prior + log |Jacobian| of unconstrained sites, log likelihood of sites, prior draws."""
    jacobians = {f"_{name}_log_det" for name in latent}

    def is_data(site):
        return site["type"] == "sample" and site["is_observed"] and site["name"] not in jacobians

    @_alone
    def prior(unconstrained):
        bare = handlers.block(model, hide_fn=is_data)
        return -potential_energy(bare, args, kwargs, unconstrained)

    @_alone
    def likelihood(values):
        known = handlers.block(handlers.substitute(model, data=values), hide=list(latent))
        return log_density(known, args, kwargs, {})[0]

    @_alone
    def forward(words):
        key = jax.random.wrap_key_data(words)
        trace = handlers.trace(handlers.seed(model, key)).get_trace(*args, **kwargs)
        return join(jnp, [_inverse(trace[name]) for name in latent])

    def draw(rng: np.random.Generator, n: int) -> np.ndarray:
        with wide():
            keys = jax.random.split(jax.random.key(int(rng.integers(2**63))), n)
        return np.asarray(mapped(forward, jax.random.key_data(keys)), np.float64)

    return prior, likelihood, draw


def _is_proper(site: Mapping) -> bool:
    """Whether a latent site's log-density is normalised and can be drawn from."""
    distribution = site["fn"]
    while distribution is not None:
        if isinstance(distribution, ImproperUniform | MaskedDistribution):
            return False
        distribution = getattr(distribution, "base_dist", None)
    return site["scale"] is None


def _dims(sites: Mapping) -> tuple[dict, dict]:
    """ArviZ's dims of the sites which lie in plates or name their own, and the plates' coords."""
    dims, coords = {}, {}
    for name, site in sites.items():
        shape, frames = np.shape(site["value"]), site["cond_indep_stack"]
        deepest = max((-frame.dim for frame in frames), default=0)
        events = site["fn"].event_dim if site["type"] == "sample" else len(shape) - deepest
        known = [f"{name}_dim_{axis}" for axis in range(len(shape))]
        given = (site.get("infer") or {}).get("event_dims", ())
        for axis, dim in enumerate(given, start=len(shape) - len(given)):
            known[axis] = dim
        for frame in frames:
            axis = len(shape) - events + frame.dim
            if 0 <= axis < len(shape) and shape[axis] == frame.size:
                known[axis] = frame.name
                coords[frame.name] = list(range(frame.size))
        if frames or given:
            dims[name] = known
    return dims, coords
