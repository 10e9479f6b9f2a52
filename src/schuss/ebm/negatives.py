"""Negatives for training: the sampler's loop without its questions, which wait for the device."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import nn

from schuss.algorithms import ESH, Algorithm, transition
from schuss.arguments import one_of, whole
from schuss.coordinates import to_x, to_z
from schuss.core import weights
from schuss.core.collect import collecting
from schuss.engines.engine import Job
from schuss.engines.modules import check_tensor
from schuss.engines.torch import compiled_once
from schuss.problem import Conditional, clamped, launch, pose


@dataclasses.dataclass(frozen=True)
class Scaled:
    """scale · E: what the sampler sees of a network."""

    scale: float
    net: nn.Module

    def __call__(self, *given):
        """Energies as the network shapes them, of x or of (x, y)."""
        energy = self.net(*given)
        check_tensor(energy)
        return self.scale * energy


class CompiledGradient(NamedTuple):
    """A gradient in compiled form, and the energy that it is of."""

    energy: Any
    gradient: Callable

    def __call__(self, x):
        """Energies and gradients at x."""
        return self.gradient(x)


def _alone(grad_fn):
    def gradient(x):
        return grad_fn(x)

    return gradient


class Negatives(NamedTuple):
    """One sample for each start, and what there is to know of the way to it; on the device."""

    x: Any
    log_weights: Any  # (n,) Jarzynski's without E₀: −E(x_t) − (d−1) r_t; None but for the flow
    energy_error: Any  # (n,) change of E + κr over the whole path, nan where nothing is conserved
    delta: Any  # (n,) turn of a step at the end, as in scale.py
    frozen: Any  # (n,)


class Drawer:
    """Makes negatives from a network that stands still: `steps` steps of an algorithm.

    Everything is checked on the first call for a shape. Later ones only queue work.
    """

    def __init__(
        self,
        net: nn.Module,
        algorithm: Algorithm,
        *,
        steps: int,
        keep: str,
        energy_scale: float,
        compile: bool,
        gradient_dtype: torch.dtype | None,
        fixed: Any = None,
    ):
        one_of("keep", keep, ("last", "reservoir"))
        if keep == "last" and getattr(algorithm, "adjust", None) == "persistent":
            raise ValueError(
                "keep='last' isn't a sample with adjust='persistent'; use keep='reservoir'"
            )
        self.algorithm, self.keep = algorithm, keep
        self.steps = whole("steps", steps, transition(algorithm) if keep == "reservoir" else 1)
        self.net, self.fixed = net, fixed
        self.compile = compile
        self.options = {"compile": compile, "gradient_dtype": gradient_dtype}
        self.esh = isinstance(algorithm, ESH)
        self.flows = self.esh and algorithm.adjust is None
        self.rescale(energy_scale)

    def rescale(self, energy_scale: float) -> None:
        """Use another energy scale from now on."""
        self.energy, self._posed = Scaled(float(energy_scale), self.net), {}

    @property
    def gradients(self) -> int:
        """Gradients for each chain in one call, the one at the start not counted."""
        return self.steps * self.algorithm.build(2).kernel.gradients

    def __call__(self, x: torch.Tensor, seed: int, y: torch.Tensor | None = None) -> Negatives:
        """Negatives from the starts x, with velocities and noise from a seed; given y if any."""
        problem, job = self._pose(x, seed, y)
        engine, xp = problem.engine, problem.engine.xp
        z, _ = engine.flatten(x)
        if y is not None:
            job.grad_fn.energy.y.copy_(y)
        if self.fixed is not None:
            problem.grad_fn.fixed.copy_(z[:, problem.grad_fn.kept])
            z = z[:, problem.grad_fn.free]
        job = job._replace(source=engine.source(seed, z))
        first, _ = engine.start(self._fast(job, z), to_z(xp, job.frames, z))
        collection = collecting(self.keep, windowed=job.kernel.windowed)
        last, _, kept = engine.collect(job, first, None, 0, self.steps, collection)
        flat = kept.collected.x if self.keep == "reservoir" else to_x(xp, job.frames, last.x)
        alive = job.kernel.alive(xp, last)
        unknown = torch.full_like(alive, float("nan"), dtype=x.dtype)
        log_weights, error = None, unknown
        length = getattr(job.params, "kappa", 0) if self.esh else math.sqrt(last.x.shape[1])
        delta = job.params.step_size * torch.linalg.vector_norm(last.g, dim=1) / length
        if self.flows:
            dim, kappa = last.x.shape[1], job.params.kappa
            error = last.energy - first.energy + kappa * (last.r - first.r)
            log_weights = weights.jarzynski_exact(0.0, last.energy, last.r - first.r, dim)
        return Negatives(problem.restore(flat), log_weights, error, delta, ~alive)

    def _fast(self, job: Job, z: torch.Tensor) -> Job:
        """The job with its gradient compiled alone: the first one belongs to no step."""
        if not self.compile:
            return job
        energy, gradient = job.grad_fn.energy, compiled_once(_alone, z.shape, job.grad_fn)
        return job._replace(grad_fn=CompiledGradient(energy, gradient))

    def _pose(self, x, seed, y):
        layout = (tuple(x.shape), tuple(x.stride()), x.dtype, x.device, y is None)
        if layout not in self._posed:
            energy = self.energy if y is None else Conditional(self.energy, y.clone())
            problem = pose(energy=energy, init=x, seed=seed, engine="torch", **self.options)
            if self.fixed is not None:
                problem = clamped(problem, self.fixed)
            job, _, _ = launch(
                problem, self.algorithm, seed, speed=self.flows, weighted=self.keep != "last"
            )
            self._posed[layout] = problem, job
        return self._posed[layout]
