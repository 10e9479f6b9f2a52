"""The JAX engine: one compiled `lax.scan`, with the chains spread over the devices there are."""

import contextlib
import dataclasses
import functools
import math
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from schuss.core.kernel import Noise
from schuss.engines.compiling import apart, compiled
from schuss.engines.disk_cache import on_disk
from schuss.engines.engine import (
    Job,
    NoNumber,
    Step,
    ahead,
    argument,
    begin,
    check_per_chain,
    collected,
    finish_step,
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
from schuss.engines.traced import MOST, Traced, content, has_rules, trace
from schuss.engines.width import wide
from schuss.user_code import failure, untraceable


@dataclasses.dataclass(frozen=True)
class Batched:
    """An energy of a batch: as it was traced, and as it is for another number of chains."""

    traced: Traced
    energy: Callable

    def __call__(self, x):
        """Energies at x."""
        return (self.traced if x.shape == self.traced.shape else self.energy)(x)


@dataclasses.dataclass(frozen=True)
class Gradient:
    """An energy, flat and differentiable. Equal fields make equal functions: nothing recompiles."""

    energy: Traced | Batched
    shape: tuple[int, ...]
    pointwise: bool
    rules: Hashable = None  # the content of the gradient, if the energy has its own rules for it

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

    @property
    def accelerator(self) -> bool:
        """Whether there is one."""
        return jax.default_backend() != "cpu"

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
        """An energy of one point is mapped over the chains; one of a batch is taken as it is.

        It is the energy as it is now. Where that is one of the last ones, compiled code is kept.
        """
        with precision(x.dtype):
            return _known(_traced(energy, x))

    def source(self, seed, like):
        """A key: the noise of a step comes from the key folded with the step's number."""
        words = np.asarray([seed >> 32 & 0xFFFFFFFF, seed & 0xFFFFFFFF], np.uint32)
        return jax.random.wrap_key_data(jnp.asarray(words), impl=PHILOX)

    def start(self, job: Job, z, velocity=None):
        """The state at step 0, its chains shared out among the devices."""
        with precision(z.dtype):
            return loops(job.grad_fn).start(
                job.kernel, _varying(job), spread(z, self.devices), velocity
            )

    def record(self, job: Job, state, first, count, every):
        """One loop over the recorded states, and inside it one over the steps between them."""
        with precision(state.x.dtype):
            state = jax.tree.map(lambda part: spread(part, self.devices), state)
            state, record = loops(job.grad_fn).record(
                job.kernel,
                count,
                every == 1,
                _varying(job),
                state,
                np.int32(first),
                np.int32(count),
                np.int32(every),
            )
        return state, job.source, record

    def evaluate(self, grad_fn, x):
        """Energies and gradients at x: the only call that compiles the energy."""
        with precision(x.dtype):
            return loops(grad_fn).evaluate(x)

    def ahead(self, job: Job, state):
        """Where the next step evaluates the energy."""
        with precision(state.x.dtype):
            _load(job, state)
            return stepwise()[0](job.kernel, _varying(job), state)

    def finish_step(self, job: Job, state, t, energy, g, moving):
        """One compiled call, in which the energy isn't."""
        with precision(state.x.dtype):
            finish = stepwise()[1]
            parts = finish(job.kernel, _varying(job), state, np.int32(t), energy, g, moving)
        return *parts, job.source

    def fused(self, job: Job, state, first, count, moving):
        """`walk` as one compiled loop with the energy in it: dear to compile, cheap to run."""
        with precision(state.x.dtype):
            bounds = np.int32(first), np.int32(count)
            fused = loops(job.grad_fn).fused
            state, rows = fused(job.kernel, _room(count), _varying(job), state, *bounds, moving)
        return state, job.source, Step.stacked(*(np.asarray(part)[:count] for part in rows))

    def collect(self, job: Job, state, kept, first, count, collection):
        """One loop whose length is data."""
        with precision(state.x.dtype):
            gathered = collected(jnp, job, state, kept, collection)
            bounds = np.int32(first + 1), np.int32(first + count + 1)
            state, gathered = loops(job.grad_fn).collect(
                job.kernel, collection, _varying(job), state, gathered, *bounds
            )
            return state, job.source, keep(jnp, job, state, gathered)


def _room(count: int) -> int:
    """Rows that a fused loop has room for: few sizes, few compilations."""
    return 1 << max(count - 1, 1).bit_length()


def precision(dtype):
    """64-bit arithmetic where the positions are 64-bit."""
    return wide() if dtype == np.float64 else contextlib.nullcontext()


def spread(x, most: int | None = None):
    """Share the chains out among the local devices where they divide evenly."""
    devices = jax.local_devices()[:most]
    if len(devices) == 1 or len(x) % len(devices):
        return x
    mesh = jax.sharding.Mesh(np.asarray(devices), ("chains",))
    return jax.device_put(x, jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("chains")))


class Loops(NamedTuple):
    """The loops of one energy, each compiled for every kernel and shape that it is called with."""

    evaluate: Any
    start: Any
    record: Any
    fused: Any
    collect: Any


@functools.lru_cache(maxsize=MOST)
def loops(grad_fn) -> Loops:
    """Of the energies used last: code that is compiled for others goes with their loops.

    They are made at the first call, when a process may have joined others and backends may start.
    """
    start, record, fused, collect = (
        functools.partial(f, grad_fn) for f in (_start, _record, _fused, _collect)
    )
    return Loops(
        compiled(lambda x: grad_fn(x)),
        compiled(start, "kernel"),
        compiled(record, "kernel", "room", "single"),
        compiled(fused, "kernel", "room"),
        compiled(collect, "kernel", "collection"),
    )


@functools.cache
def stepwise() -> tuple[Any, Any]:
    """`ahead` and `finish_step`, compiled: they know no energy, and serve all of them."""
    return compiled(_ahead, "kernel"), compiled(_finish_step, "kernel")


_LOADED: set[Hashable] = set()
"""Kernels, shapes and dtypes whose steps are compiled."""


def _load(job: Job, state) -> None:
    """Steps of this kernel and these shapes, from disk where they were compiled before."""
    varying = _varying(job)
    parts, tree = jax.tree.flatten((varying, state))
    shapes = tuple((part.shape, part.dtype, getattr(part, "sharding", None)) for part in parts)
    key = (job.kernel, tree, shapes)
    if key in _LOADED:
        return
    with on_disk():
        ahead, finish = stepwise()
        x, moving = ahead(job.kernel, varying, state), np.ones(len(state.x), bool)
        finish(job.kernel, varying, state, np.int32(1), state.energy, x, moving)
    _LOADED.add(key)


@functools.lru_cache(maxsize=MOST)
def _known(gradient):
    """The gradient that is equal, if there is one among the last: comparing it takes no time."""
    return gradient


def _traced(energy, x) -> Gradient:
    """The gradient of an energy of one position, or else of a batch. Nothing is computed."""
    shape, name, first, point = x.shape[1:], argument(energy), None, None

    def checked(x):
        return number(name, energy(x))

    try:
        traced, value = trace(checked, shape, x.dtype)
        point = traced if value.size == 1 else None
        alone = f"returned shape {value.shape}"
    except NoNumber as error:
        raise ValueError(str(error)) from None
    except Exception as error:
        alone, first = failure(error), error
    if point is not None:
        return _ruled(Gradient(point, shape, True), point, 1)
    try:
        traced, value = trace(checked, x.shape, x.dtype)
    except Exception as error:
        raise _failed(name, shape, x.shape, alone, first or error, error) from (first or error)
    check_per_chain(value.shape, len(x), name)
    batch = Gradient(Batched(traced, hashable(energy)), shape, False)
    return _ruled(batch, traced, len(x))


def _ruled(gradient: Gradient, traced: Traced, chains: int) -> Gradient:
    """With what its own rules for derivatives compute, where it has some."""
    if not has_rules(traced.closed):
        return gradient
    x = jax.ShapeDtypeStruct((chains, math.prod(gradient.shape)), traced.dtype)
    return dataclasses.replace(gradient, rules=content(jax.make_jaxpr(gradient)(x)))


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


def _varying(job):
    return job.params, job.source, job.frames, job.temperature


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


def _ahead(kernel, varying, state):
    return ahead(jnp, Job(kernel, None, *varying), state)


def _finish_step(kernel, varying, state, t, energy, g, moving):
    job = Job(kernel, None, *varying)
    return finish_step(jnp, job, state, _noise(job, state.x, t), energy, g, moving)


def _fused(grad_fn, kernel, room, varying, state, first, count, moving):
    job = Job(kernel, grad_fn, *varying)

    def advance(k, state, x):
        noise = _noise(job, state.x, first + k + 1)
        energy, g = apart(grad_fn, k >= 0)(x)
        state, there, outcome = finish_step(jnp, job, state, noise, energy, g, moving)
        return state, there, (x, energy, g, outcome)

    def body(k, carry):
        state, x, rows = carry
        state, x, row = advance(k, state, x)
        write = functools.partial(jax.lax.dynamic_update_index_in_dim, index=k, axis=0)
        return state, x, jax.tree.map(write, rows, row)

    x = ahead(jnp, job, state)
    _, _, row = jax.eval_shape(advance, np.int32(0), state, x)
    rows = jax.tree.map(lambda one: jnp.zeros((room, *one.shape), one.dtype), row)
    state, _, rows = jax.lax.fori_loop(0, count, body, (state, x, rows))
    return state, rows


def _start(grad_fn, kernel, varying, z, velocity):
    job = Job(kernel, grad_fn, *varying)
    return begin(jnp, job, z, _noise(job, z, 0, starting=True), velocity)


def _record(grad_fn, kernel, room, single, varying, state, first, count, every):
    job = Job(kernel, grad_fn, *varying)

    def advance(t, carry):
        state, _ = carry
        noise, around = _noise(job, state.x, t + 1), lambda f: apart(f, t >= 0)
        return step(jnp, job, state, noise, around)

    def remember(state, t):
        _, info = jax.eval_shape(advance, t, (state, None))
        carry = state, jax.tree.map(lambda one: jnp.zeros(one.shape, one.dtype), info)
        carry = advance(t, carry) if single else jax.lax.fori_loop(t, t + every, advance, carry)
        return carry[0], told(jnp, job, *carry)

    def body(k, carry):
        state, rows = carry
        state, row = remember(state, first + k * every)
        write = functools.partial(jax.lax.dynamic_update_index_in_dim, index=k, axis=0)
        return state, jax.tree.map(write, rows, row)

    _, row = jax.eval_shape(remember, state, first)
    rows = jax.tree.map(lambda one: jnp.zeros((room, *one.shape), one.dtype), row)
    return jax.lax.fori_loop(0, count, body, (state, rows))


def _collect(grad_fn, kernel, collection, varying, state, gathered, lower, upper):
    job = Job(kernel, grad_fn, *varying)

    def body(t, carry):
        state, gathered = carry
        uniform = None
        if collection.uniforms:
            key = jax.random.fold_in(jax.random.fold_in(job.source, t), 2)
            uniform = jax.random.uniform(key, (len(state.x),), state.x.dtype)
        noise, around = _noise(job, state.x, t), lambda f: apart(f, t >= 0)
        return tick(jnp, job, collection, state, gathered, noise, uniform, around)

    return jax.lax.fori_loop(lower, upper, body, (state, gathered))
