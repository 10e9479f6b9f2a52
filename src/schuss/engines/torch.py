"""The PyTorch engine: any module as an energy; eager, compiled, and CUDA graphs on a GPU."""

import contextlib
import dataclasses
import functools
import types
from collections.abc import Callable

import array_api_compat.torch as xp
import numpy as np
import torch

from schuss.arguments import entropy
from schuss.core.kernel import Noise, finite
from schuss.engines.cuda_graph import Graph, copy_into, leaves, rebuild
from schuss.engines.engine import (
    Job,
    ahead,
    argument,
    begin,
    check_per_chain,
    collected,
    finish_step,
    hashable,
    injected,
    keep,
    stacked,
    step,
    tick,
    told,
    walk,
)
from schuss.engines.modules import check_parameters, check_tensor, evaluation, modules


@dataclasses.dataclass(frozen=True)
class Layout:
    """How positions lie in memory: in order, or images with their channels last."""

    shape: tuple[int, ...]
    channels_last: bool

    def flatten(self, x):
        """(chains, *shape) as (chains, dim)."""
        if self.channels_last:
            x = x.permute(0, 2, 3, 1)
        return x.reshape(len(x), -1)

    def restore(self, x):
        """(chains, dim) as (chains, *shape), never a copy; NumPy arrays too."""
        if self.channels_last:
            channels, height, width = self.shape
            return x.reshape(-1, height, width, channels).swapaxes(2, 3).swapaxes(1, 2)
        return x if len(self.shape) == 1 else x.reshape(-1, *self.shape)


@dataclasses.dataclass(frozen=True)
class Gradient:
    """An energy of images or vectors as one of flat positions, with its gradient."""

    energy: Callable
    layout: Layout
    dtype: torch.dtype | None = None  # of the arithmetic inside the energy

    def energies(self, x):
        """One energy per chain as the energy shapes them, in the precision of the positions."""
        if self.dtype is None:
            energy = self.energy(self.layout.restore(x))
        else:
            with torch.autocast(x.device.type, dtype=self.dtype):
                energy = self.energy(self.layout.restore(x))
        check_tensor(energy, argument(self.energy))
        check_per_chain(energy.shape, x.shape[0], argument(self.energy))
        return energy.to(x.dtype)

    def __call__(self, x):
        """Energies and gradients at x."""
        if torch.compiler.is_compiling():
            return _functional(self.energies, x)
        if torch.is_inference_mode_enabled():
            raise ValueError(
                "gradients can't be taken under torch.inference_mode(); sample outside of it, or "
                "under torch.no_grad()"
            )
        y = x.detach().requires_grad_()
        with torch.enable_grad():
            energy = self.energies(y)
            if not energy.requires_grad:
                raise ValueError(
                    "energy has no gradient with respect to its argument; compute it with torch "
                    "operations on the tensor it is given, without .detach(), .item() or NumPy"
                )
            (g,) = torch.autograd.grad(energy, y, torch.ones_like(energy))
        return energy.detach().reshape(x.shape[0]), g


def _functional(energies, x):
    def total(z):
        energy = energies(z)
        return energy.sum(), energy

    g, energy = torch.func.grad(total, has_aux=True)(x)
    return energy.reshape(len(x)), g


@dataclasses.dataclass(frozen=True)
class Torch:
    """Loops in Python around eager, compiled or graphed steps.

    `compile` fuses a whole step, gradient included, and on a GPU replays it as a CUDA graph, which
    sees weights that change but not other attributes of the network.
    `gradient_dtype` (say torch.bfloat16) is the precision inside the energy; positions,
    velocities and sums keep theirs.
    """

    compile: bool = False
    gradient_dtype: torch.dtype | None = None
    name = "torch"
    accelerator = False
    xp = xp

    def asarray(self, value, like=None):
        """A tensor with the dtype and device of `like`."""
        if not isinstance(value, torch.Tensor):
            value = torch.tensor(np.asarray(value))
        return value if like is None else value.to(like.device, like.dtype)

    def to_numpy(self, array):
        """The same numbers on the host."""
        return array.detach().cpu().numpy()

    def flatten(self, x):
        """Positions as (chains, dim), and the way back: views of contiguous and channels-last."""
        layout = Layout(tuple(x.shape[1:]), _channels_last(x))
        return layout.flatten(x.detach()), layout.restore

    def value_and_grad(self, energy, x):
        """An energy of tensors like x, as a function of flat positions."""
        check_parameters(energy, x, self.gradient_dtype)
        layout = Layout(tuple(x.shape[1:]), _channels_last(x))
        return Gradient(hashable(energy), layout, self.gradient_dtype)

    def source(self, seed, like):
        """A generator on the device of `like`, from a seed or out of another generator."""
        return torch.Generator(like.device).manual_seed(entropy(seed))

    def start(self, job: Job, z, velocity=None):
        """The state at step 0."""
        with evaluation(job.grad_fn.energy), torch.no_grad():
            noise = _noise(job, job.source, z, 0, starting=True)
            return begin(xp, job, z, noise, velocity)

    def record(self, job: Job, state, first, count, every):
        """Loop and remember, on the host."""
        source, rows = _fork(job.source), []
        with evaluation(job.grad_fn.energy, cache=not self.compile), torch.no_grad():
            advance = self._made(_stepping, state.x, job.kernel, job.grad_fn)
            state = distinct(state) if self.compile else state
            for t in range(first + 1, first + count * every + 1):
                noise = _noise(job, source, state.x, t)
                state, info = advance(state, noise, job.params, job.frames)
                if (t - first) % every == 0:
                    shown = told(xp, job, state, info)
                    rows.append([rebuild(torch.Tensor.cpu, part) for part in shown])
        return state, source, stacked(torch.stack, rows)

    def evaluate(self, grad_fn, x):
        """Energies and gradients at x."""
        with evaluation(grad_fn.energy, cache=not self.compile), torch.no_grad():
            return grad_fn(x)

    def ahead(self, job: Job, state):
        """Where the next step evaluates the energy."""
        return ahead(xp, job, state)

    def finish_step(self, job: Job, state, t, energy, g, moving):
        """The rest of the step."""
        source = _fork(job.source)
        noise = _noise(job, source, state.x, t)
        moving = torch.as_tensor(moving, device=state.x.device)
        with torch.no_grad():
            return *finish_step(xp, job, state, noise, energy, g, moving), source

    def fused(self, job: Job, state, first, count, moving):
        """The same steps: there is nothing to fuse."""
        return walk(self, job, state, first, count, moving)

    def collect(self, job: Job, state, kept, first, count, collection):
        """Loop and forget; nothing in the loop waits for the device."""
        with evaluation(job.grad_fn.energy, cache=not self.compile), torch.no_grad():
            gathered = collected(xp, job, state, kept, collection)
            steps = range(first + 1, first + count + 1)
            end = None
            # Compiled guards cost nothing, and a GPU isn't waited for.
            if not self.compile and not state.x.is_cuda:
                end = _trusting(job, state, gathered, steps, collection)
            if end is None:
                end = self._collect(job, state, gathered, steps, collection)
            state, source, gathered = end
            return state, source, keep(xp, job, state, gathered)

    def _collect(self, job: Job, state, gathered, steps, collection):
        source = _fork(job.source)
        graphed = self.compile and state.x.is_cuda
        if self.compile:
            state, gathered = distinct((state, gathered))
        make = _storing if graphed else _gathering
        advance = self._made(make, state.x, job.kernel, job.grad_fn, collection)
        blank = None
        if graphed:
            advance = _graph(advance, job, state, gathered, collection.uniforms)
            blank = advance.noise
        walk = _walk(advance, job, source, state, gathered, steps, collection, blank)
        with contextlib.ExitStack() as steady:
            for t, end in zip(steps, walk, strict=True):
                state, gathered = end
                # After the first step nothing that compiled code depends on can change.
                if self.compile and t == steps[0]:
                    stance = torch.compiler.set_stance(skip_guard_eval_unsafe=True)
                    steady.enter_context(stance)
        if graphed:
            state, gathered = rebuild(torch.clone, (state, gathered))
        return state, source, gathered

    def _made(self, make, x, *parts):
        """A step function: made anew, or compiled once for the same shape, kernel and energy."""
        return compiled_once(make, x.shape, *parts) if self.compile else make(*parts)


def _channels_last(x):
    return (
        x.dim() == 4
        and not x.is_contiguous()
        and x.is_contiguous(memory_format=torch.channels_last)
    )


def _fork(source):
    """The same generator at the same place, so that a path can be continued more than once."""
    if isinstance(source, Noise):
        return source
    fork = torch.Generator(source.device)
    fork.set_state(source.get_state())
    return fork


def _noise(job, source, z, t, starting=False):
    return _drawn(source, t, _blank(job, z, starting=starting))[0]


def _blank(job, z, uniforms=0, starting=False):
    """Where a step's noise goes, and the uniforms of what is collected."""
    kernel = job.kernel
    normal = z.new_empty(z.shape) if kernel.normal or starting else None
    uniform = z.new_empty((len(z), kernel.uniforms)) if kernel.uniforms else None
    return Noise(normal, uniform), z.new_empty(len(z)) if uniforms else None


def _drawn(source, t, blank):
    """The same tensors with new noise in them, or noise that is given."""
    noise, uniform = blank
    if isinstance(source, Noise):
        return injected(source, t), uniform
    if noise.normal is not None:
        noise.normal.normal_(generator=source)
    for part in (noise.uniform, uniform):
        if part is not None:
            part.uniform_(generator=source)
    return blank


def _stepping(kernel, grad_fn):
    def advance(state, noise, params, frames):
        return step(xp, Job(kernel, grad_fn, params, None, frames), state, noise)

    return advance


def _gathering(kernel, grad_fn, collection):
    def gather(state, gathered, noise, uniform, params, frames):
        job = Job(kernel, grad_fn, params, None, frames)
        return tick(xp, job, collection, state, gathered, noise, uniform)

    return gather


def _storing(kernel, grad_fn, collection):
    """A step that writes over its inputs: what computes the new state also stores it."""
    gather = _gathering(kernel, grad_fn, collection)

    def store(state, gathered, noise, uniform, params, frames):
        copy_into((state, gathered), gather(state, gathered, noise, uniform, params, frames))

    return store


def _walk(advance, job, source, state, gathered, steps, collection, blank=None):
    """The state and what is gathered, step by step; a graph's noise is drawn where it reads it."""
    for t in steps:
        into = blank or _blank(job, state.x, collection.uniforms)
        noise, uniform = _drawn(source, t, into)
        state, gathered = advance(state, gathered, noise, uniform, job.params, job.frames)
        yield state, gathered


def _trusting(job, state, gathered, steps, collection):
    """The end of a walk without guards, which take as long as all the rest of a small step.

    None where there is no such walk, or where a guard was needed: a number that isn't finite
    stays in the velocity or the position, or shows in the sum of the energies.
    """
    kernel, total = job.kernel.trusting, state.energy
    if kernel is None or not bool(job.kernel.alive(xp, state).all()):
        return None
    source = _fork(job.source)
    advance = _gathering(kernel, job.grad_fn, collection)
    for end in _walk(advance, job, source, state, gathered, steps, collection):
        state, gathered = end
        total = total + state.energy
    sound = finite(xp, total, state.x + state.u + state.g)
    return (state, source, gathered) if bool(sound.all()) else None


@functools.lru_cache(maxsize=16)
def compiled_once(make, shape, *parts):
    """What `make(*parts)` gives, compiled for one shape; the same for the same shape and parts."""
    function = make(*parts)

    def apart(*inputs):
        return distinct(function(*inputs))

    return _compiled(apart)


def distinct(tree):
    """Nested tuples in which no tensor occurs twice and each lies in memory in order.

    Compiled code is guarded by which of its inputs are one tensor, and by their strides. So a step
    that is given states of this kind, and leaves such states, is compiled once.
    """
    seen = []

    def own(leaf):
        # A contiguous tensor may have any stride along an axis of length one.
        ordered = torch.empty_like(leaf, memory_format=torch.contiguous_format).stride()
        if leaf.stride() != ordered or any(leaf is other for other in seen):
            leaf = leaf.clone(memory_format=torch.contiguous_format)
        seen.append(leaf)
        return leaf

    return rebuild(own, tree)


def _compiled(function):
    """torch.compile of a whole step; a graph break or a silent return to eager is an error.

    Recompilations are counted, and limited, by code object: each function gets its own. Sizes are
    constants: with symbols for them the guards also ask for gradients of weights that have none
    yet, and a loop that doesn't evaluate guards ends in an error.
    """
    code = function.__code__.replace()
    own = types.FunctionType(
        code, function.__globals__, function.__name__, None, function.__closure__
    )
    return torch.compile(own, fullgraph=True, dynamic=False)


_GRAPHS: dict = {}
MOST_GRAPHS = 8
"""Each graph keeps its memory on the GPU: only so many stay."""


def _graph(advance, job, state, gathered, uniforms):
    """The graph for tensors of these shapes and weights in these places, captured once."""
    inputs = (state, gathered, *_blank(job, state.x, uniforms), job.params, job.frames)
    weights = tuple(
        tensor.data_ptr()
        for module in modules(job.grad_fn.energy)
        for tensor in (*module.parameters(), *module.buffers())
    )
    shapes = tuple((leaf.shape, leaf.dtype, leaf.device) for leaf in leaves(inputs))
    key = (advance, weights, shapes)
    if key not in _GRAPHS:
        if len(_GRAPHS) == MOST_GRAPHS:
            del _GRAPHS[next(iter(_GRAPHS))]
        _GRAPHS[key] = Graph(advance, inputs)
    return _GRAPHS[key].load(inputs)
