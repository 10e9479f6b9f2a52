"""The NumPy engine: reads like the paper, and takes any function with value and gradient."""

import dataclasses

import numpy as np

from schuss.arguments import pair
from schuss.core.kernel import Noise
from schuss.engines.engine import (
    Job,
    ahead,
    begin,
    collected,
    finish_step,
    flat,
    injected,
    keep,
    stacked,
    step,
    tick,
    told,
    walk,
)


@dataclasses.dataclass(frozen=True)
class Numpy:
    """Plain loops. There is no autodiff: it wants functions that return value and gradient."""

    name = "numpy"
    accelerator = False
    xp = np

    def asarray(self, value, like=None):
        """An array with the dtype of `like`."""
        return np.asarray(value, dtype=None if like is None else like.dtype)

    def to_numpy(self, array):
        """The array itself."""
        return np.asarray(array)

    def flatten(self, x):
        """Positions as (chains, dim), and the way back."""
        return flat(x)

    def value_and_grad(self, energy, x):
        """`energy` returns energies and gradients already; only the shapes are fitted.

        All is copied, so that it may work in place and give the same arrays every time.
        """
        shape = x.shape[1:]

        def flattened(z):
            found = energy(np.array(z).reshape(-1, *shape))
            value, gradient = pair(
                "value_and_grad",
                found,
                "two arrays, energies (chains,) and gradients like the positions",
            )
            if gradient.shape != (len(z), *shape):
                raise ValueError(
                    f"value_and_grad returned a gradient of shape {gradient.shape} for "
                    f"positions of shape {(len(z), *shape)}; return one of the same shape"
                )
            if value.shape not in ((len(z),), (len(z), 1)):
                raise ValueError(
                    f"value_and_grad returned energies of shape {value.shape} for {len(z)} chains; "
                    f"return one for each, shape ({len(z)},), or pass "
                    "schuss.from_value_and_grad(fn, dim), whose fn takes one position"
                )
            value, gradient = np.array(value, z.dtype), np.array(gradient, z.dtype)
            return value.reshape(len(z)), gradient.reshape(z.shape)

        return flattened

    def source(self, seed, like):
        """A seed: the noise of a step is a function of the seed and the number of the step."""
        return seed

    def start(self, job: Job, z, velocity=None):
        """The state at step 0."""
        with np.errstate(all="ignore"):
            return begin(np, job, z, _noise(job, z, 0, starting=True), velocity)

    def record(self, job: Job, state, first, count, every):
        """Loop and remember."""
        rows = []
        with np.errstate(all="ignore"):
            for t in range(first + 1, first + count * every + 1):
                state, info = step(np, job, state, _noise(job, state.x, t))
                if (t - first) % every == 0:
                    rows.append(told(np, job, state, info))
        return state, job.source, stacked(np.stack, rows)

    def evaluate(self, grad_fn, x):
        """Energies and gradients at x."""
        with np.errstate(all="ignore"):
            return grad_fn(x)

    def ahead(self, job: Job, state):
        """Where the next step evaluates the energy."""
        return ahead(np, job, state)

    def finish_step(self, job: Job, state, t, energy, g, moving):
        """The rest of the step."""
        with np.errstate(all="ignore"):
            noise = _noise(job, state.x, t)
            return *finish_step(np, job, state, noise, energy, g, moving), job.source

    def fused(self, job: Job, state, first, count, moving):
        """The same steps: there is nothing to fuse."""
        return walk(self, job, state, first, count, moving)

    def collect(self, job: Job, state, kept, first, count, collection):
        """Loop and forget."""
        with np.errstate(all="ignore"):
            gathered = collected(np, job, state, kept, collection)
            for t in range(first + 1, first + count + 1):
                uniform = _generator(job.source, t, stream=1).random(len(state.x), state.x.dtype)
                noise = _noise(job, state.x, t)
                state, gathered = tick(np, job, collection, state, gathered, noise, uniform)
        return state, job.source, keep(np, job, state, gathered)


def _generator(seed, t, stream=0):
    return np.random.Generator(np.random.Philox(key=seed, counter=[0, 0, stream, t]))


def _noise(job, z, t, starting=False):
    if isinstance(job.source, Noise):
        return injected(job.source, t)
    kernel, generator = job.kernel, _generator(job.source, t)
    normal = uniform = None
    if kernel.normal or starting:
        normal = generator.standard_normal(z.shape, z.dtype)
    if kernel.uniforms:
        uniform = generator.random((len(z), kernel.uniforms), z.dtype)
    return Noise(normal, uniform)
