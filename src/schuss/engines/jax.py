"""The JAX engine: one compiled `lax.scan`, with the chains spread over the devices there are."""

import contextlib
import dataclasses
import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from schuss.core.kernel import Noise
from schuss.engines.compiling import apart, compiled
from schuss.engines.engine import (
    Job,
    NoNumber,
    argument,
    begin,
    check_per_chain,
    collected,
    flat,
    hashable,
    injected,
    keep,
    number,
    per_chain,
    step,
    tick,
    told,
)
from schuss.engines.philox import PHILOX, normals, uniforms
from schuss.traced import failure, untraceable


@dataclasses.dataclass(frozen=True)
class Gradient:
    """An energy, flat and differentiable. Equal fields make equal functions: nothing recompiles."""

    energy: Callable
    shape: tuple[int, ...]
    pointwise: bool

    def __call__(self, x):
        """Energies and gradients at x."""
        if self.pointwise:
            point = jax.value_and_grad(self._one)
            return jax.vmap(point)(x)

        def total(z):
            energies = per_chain(self.energy(z.reshape(-1, *self.shape)), len(z)).astype(z.dtype)
            return energies.sum(), energies

        (_, energies), gradient = jax.value_and_grad(total, has_aux=True)(x)
        return energies, gradient

    def _one(self, z):
        return jnp.asarray(self.energy(z.reshape(self.shape)), z.dtype).reshape(())


@dataclasses.dataclass(frozen=True)
class Jax:
    """Compiled loops. Runs in 64 bits where the positions have them, whatever the global switch.

    Chains are spread over the first `devices` of the devices there are, or over all.
    """

    devices: int | None = None
    name = "jax"
    xp = jnp

    def asarray(self, value, like=None):
        """An array with the dtype of `like`."""
        value = np.asarray(value)
        dtype = value.dtype if like is None else like.dtype
        with precision(dtype):
            return jnp.asarray(value, dtype=dtype)

    def to_numpy(self, array):
        """The same numbers on the host."""
        return np.asarray(array)

    def flatten(self, x):
        """Positions as (chains, dim), and the way back."""
        return flat(x)

    def value_and_grad(self, energy, x):
        """An energy of one point is mapped over the chains; one of a batch is taken as it is."""
        shape = x.shape[1:]
        with precision(x.dtype):
            return Gradient(hashable(energy), shape, _is_pointwise(energy, x))

    def source(self, seed, like):
        """A key: the noise of a step comes from the key folded with the step's number."""
        words = np.asarray([seed >> 32 & 0xFFFFFFFF, seed & 0xFFFFFFFF], np.uint32)
        return jax.random.wrap_key_data(jnp.asarray(words), impl=PHILOX)

    def start(self, job: Job, z, velocity=None):
        """The state at step 0, its chains shared out among the devices."""
        with precision(z.dtype):
            return _start(*_static(job), *_traced(job), spread(z, self.devices), velocity)

    def record(self, job: Job, state, first, count, every, show=None, room=None):
        """One loop over the recorded states, and inside it one over the steps between them."""
        single, room = room is None and every == 1, room or count
        with precision(state.x.dtype):
            state = jax.tree.map(lambda part: spread(part, self.devices), state)
            state, record = _record(
                *_static(job),
                show or told,
                room,
                single,
                *_traced(job),
                state,
                np.int32(first),
                np.int32(count),
                np.int32(every),
            )
        if count < room:
            record = jax.tree.map(lambda rows: np.asarray(rows)[:count], record)
        return state, job.source, record

    def collect(self, job: Job, state, kept, first, count, collection):
        """One loop whose length is data."""
        with precision(state.x.dtype):
            gathered = collected(jnp, job, state, kept, collection)
            bounds = np.int32(first + 1), np.int32(first + count + 1)
            state, gathered = _collect(
                *_static(job), collection, *_traced(job), state, gathered, *bounds
            )
            return state, job.source, keep(jnp, job, state, gathered)


def precision(dtype):
    """64-bit arithmetic where the positions are 64-bit."""
    return jax.enable_x64(True) if dtype == np.float64 else contextlib.nullcontext()


def spread(x, most: int | None = None):
    """Share the chains out among the local devices where they divide evenly."""
    devices = jax.local_devices()[:most]
    if len(devices) == 1 or len(x) % len(devices):
        return x
    mesh = jax.sharding.Mesh(np.asarray(devices), ("chains",))
    return jax.device_put(x, jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("chains")))


def _is_pointwise(energy, x):
    """Whether an energy takes one position or a batch: asked without computing anything."""
    shape, name, first = x.shape[1:], argument(energy), None

    def shaped(x):
        return number(name, energy(x))

    try:
        value = jax.eval_shape(shaped, jax.ShapeDtypeStruct(shape, x.dtype))
        if value.size == 1:
            return True
        alone = f"returned shape {value.shape}"
    except NoNumber:
        raise
    except Exception as error:
        alone, first = failure(error), error
    try:
        value = jax.eval_shape(shaped, jax.ShapeDtypeStruct(x.shape, x.dtype))
    except Exception as error:
        raise _failed(name, shape, x.shape, alone, first or error, error) from (first or error)
    check_per_chain(value.shape, len(x), name)
    return False


def _failed(name, one, batch, alone, first, second):
    """What to do about an energy that fails: it is PyTorch's, NumPy's, wrong, or of other shapes.

    `alone` says what became of one position, `first` is its error if there was one.
    """
    known = untraceable(name, first) or untraceable(name, second)
    if known and not isinstance(second, NoNumber):
        return ValueError(known)
    also = failure(second)
    alone = "" if alone == also else f" ({alone})"
    fails = (
        f"{name} works neither on one position of shape {one}{alone} nor on a batch of shape "
        f"{batch} ({also})"
    )
    if "torch" in str(first):
        return ValueError(
            f"{fails}; for PyTorch pass init as a tensor (like= where there is no init), or "
            "engine='torch'"
        )
    return ValueError(
        f"{fails}; make it take what init holds, or pass an init of the shape that it takes (a "
        "dict for one of a dict)"
    )


def _static(job):
    return job.kernel, job.grad_fn


def _traced(job):
    return job.params, job.source, job.frames


def _noise(job, z, t, starting=False):
    if isinstance(job.source, Noise):
        return injected(job.source, t)
    kernel, key, t = job.kernel, jax.random.fold_in(job.source, t), jnp.asarray(t)
    normal = uniform = None
    if (kernel.normal or starting) and kernel.coarse:
        normal = normals(job.source, t, z.shape).astype(z.dtype)
    elif kernel.normal or starting:
        normal = jax.random.normal(key, z.shape, z.dtype)
    if kernel.uniforms:
        shape = (len(z), kernel.uniforms)
        # Where normals are cheap, deriving keys for the uniforms would cost more than all of them.
        if kernel.coarse:
            uniform = uniforms(job.source, t, shape, z.dtype)
        else:
            uniform = jax.random.uniform(jax.random.fold_in(key, 1), shape, z.dtype)
    return Noise(normal, uniform)


@compiled("kernel", "grad_fn")
def _start(kernel, grad_fn, params, source, frames, z, velocity):
    job = Job(kernel, grad_fn, params, source, frames)
    return begin(jnp, job, z, _noise(job, z, 0, starting=True), velocity)


@compiled("kernel", "grad_fn", "show", "room", "single")
def _record(
    kernel, grad_fn, show, room, single, params, source, frames, state, first, count, every
):
    job = Job(kernel, grad_fn, params, source, frames)

    def advance(t, carry):
        state, _ = carry
        noise, around = _noise(job, state.x, t + 1), lambda f: apart(f, t >= 0)
        return step(jnp, job, state, noise, around)

    def remember(state, t):
        _, told = jax.eval_shape(advance, t, (state, None))
        carry = state, jax.tree.map(lambda one: jnp.zeros(one.shape, one.dtype), told)
        carry = advance(t, carry) if single else jax.lax.fori_loop(t, t + every, advance, carry)
        return carry[0], show(jnp, job, *carry)

    def body(k, carry):
        state, rows = carry
        state, row = remember(state, first + k * every)
        write = functools.partial(jax.lax.dynamic_update_index_in_dim, index=k, axis=0)
        return state, jax.tree.map(write, rows, row)

    _, row = jax.eval_shape(remember, state, first)
    rows = jax.tree.map(lambda one: jnp.zeros((room, *one.shape), one.dtype), row)
    return jax.lax.fori_loop(0, count, body, (state, rows))


@compiled("kernel", "grad_fn", "collection")
def _collect(kernel, grad_fn, collection, params, source, frames, state, gathered, lower, upper):
    job = Job(kernel, grad_fn, params, source, frames)

    def body(t, carry):
        state, gathered = carry
        uniform = None
        if collection.uniforms:
            key = jax.random.fold_in(jax.random.fold_in(source, t), 2)
            uniform = jax.random.uniform(key, (len(state.x),), state.x.dtype)
        noise, around = _noise(job, state.x, t), lambda f: apart(f, t >= 0)
        return tick(jnp, job, collection, state, gathered, noise, uniform, around)

    return jax.lax.fori_loop(lower, upper, body, (state, gathered))
