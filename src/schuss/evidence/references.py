"""Where the path to the target begins: normalised densities that can be drawn from.

E₀(x) = −log p₀(x),   ∫ p₀ = 1,   so that log Z is the target's own.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from schuss.arguments import numbers, positive, whole
from schuss.coordinates import Bounded
from schuss.keywords import explaining
from schuss.problem import Negative
from schuss.targets.constants import constant


class Reference(Protocol):
    """A normalised density with exact draws."""

    @property
    def dim(self) -> int | None:
        """Coordinates, where they are known beforehand."""
        ...

    def sample(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """Exact draws, (n, dim), float64 NumPy."""
        ...

    def grad_fn(self, engine, x) -> Callable:
        """Energies −log p₀ and gradients of positions like x."""
        ...

    @property
    def frames(self) -> tuple:
        """Coordinates in which the support is the whole space, in NumPy."""
        ...


@dataclasses.dataclass(frozen=True)
class Closed:
    """Energy and gradient in closed form, for one array library."""

    reference: Any
    xp: Any
    energy = ()  # nothing here is a network

    def __call__(self, x):
        """Energies and gradients at x."""
        return self.reference.energy(self.xp, x), self.reference.gradient(self.xp, x)


@explaining
@dataclasses.dataclass(frozen=True, eq=False)
class Normal:
    """N(mean, sd²), coordinate by coordinate; `mean` and `sd` are numbers or of shape (dim,)."""

    dim: int | None = None
    mean: Any = 0.0
    sd: Any = 1.0

    def __post_init__(self):
        """Refuse what isn't a normal density."""
        positive("sd", self.sd)
        mean, sd = numbers("mean", self.mean), np.asarray(self.sd, float)
        if mean.ndim > 1 or sd.ndim > 1 or not np.all(np.isfinite(mean)):
            raise ValueError(
                "mean and sd must be finite numbers or of shape (dim,), got shapes "
                f"{mean.shape} and {sd.shape}; flatten them"
            )
        shapes = {array.shape[0] for array in (mean, sd) if array.ndim}
        if self.dim is None and not shapes:
            raise ValueError("dim is missing; pass e.g. schuss.Normal(dim=10)")
        dim = max(shapes) if self.dim is None else whole("dim", self.dim, 1)
        if shapes - {dim}:
            raise ValueError(
                f"mean and sd must be numbers or have shape ({dim},), got shapes {mean.shape} and "
                f"{sd.shape}"
            )
        object.__setattr__(self, "dim", dim)
        object.__setattr__(self, "mean", np.broadcast_to(mean, (dim,)).copy())
        object.__setattr__(self, "sd", np.broadcast_to(sd, (dim,)).copy())
        object.__setattr__(self, "_centre", constant(self.mean))
        object.__setattr__(self, "_precision", constant(1 / self.sd**2))

    def sample(self, rng, n):
        """Exact draws."""
        return self.mean + self.sd * rng.standard_normal((n, len(self.sd)))

    def energy(self, xp, x):
        """½ Σ ((x − m)/s)² + Σ log s + d/2 log 2π."""
        log_z = float(np.log(self.sd).sum()) + len(self.sd) / 2 * math.log(2 * math.pi)
        apart = x - self._centre(xp, x)
        return xp.sum(apart * apart * self._precision(xp, x), axis=-1) / 2 + log_z

    def gradient(self, xp, x):
        """(x − m)/s²."""
        return (x - self._centre(xp, x)) * self._precision(xp, x)

    def grad_fn(self, engine, x):
        """In closed form."""
        return Closed(self, engine.xp)

    @property
    def frames(self) -> tuple:
        """The support is the whole space already."""
        return ()


@explaining
@dataclasses.dataclass(frozen=True, eq=False)
class Uniform:
    """Uniform in the box from `lower` to `upper`, each of shape (dim,), or numbers with `dim`.

    log Z is then that of the box. `support=True` says that the target ends there by its nature; a
    target that the box cuts off is otherwise told in the verdict.
    """

    lower: Any
    upper: Any
    dim: int | None = None
    support: bool = False

    def __post_init__(self):
        """Refuse what isn't a box."""
        lower, upper = numbers("lower", self.lower), numbers("upper", self.upper)
        shapes = {array.shape[0] for array in (lower, upper) if array.ndim}
        if self.dim is None and not shapes:
            raise ValueError("dim is missing; pass e.g. schuss.Uniform(-1.0, 1.0, dim=10)")
        dim = max(shapes) if self.dim is None else whole("dim", self.dim, 1)
        if lower.ndim > 1 or upper.ndim > 1 or shapes - {dim}:
            raise ValueError(
                f"lower and upper must be numbers or have shape ({dim},), got shapes "
                f"{lower.shape} and {upper.shape}"
            )
        if not (
            np.all(np.isfinite(lower)) and np.all(np.isfinite(upper)) and np.all(lower < upper)
        ):
            raise ValueError(
                "lower must be below upper everywhere and both finite; a box without a side has "
                "no uniform density, use schuss.Normal"
            )
        object.__setattr__(self, "dim", dim)
        object.__setattr__(self, "lower", np.broadcast_to(lower, (dim,)).copy())
        object.__setattr__(self, "upper", np.broadcast_to(upper, (dim,)).copy())

    def sample(self, rng, n):
        """Exact draws, never on the edge."""
        share = (rng.integers(0, 2**52, (n, len(self.lower))) + 0.5) * 2.0**-52
        return self.lower + (self.upper - self.lower) * share

    def energy(self, xp, x):
        """log of the volume."""
        return xp.zeros_like(x[:, 0]) + float(np.log(self.upper - self.lower).sum())

    def gradient(self, xp, x):
        """Zero inside."""
        return xp.zeros_like(x)

    def grad_fn(self, engine, x):
        """In closed form."""
        return Closed(self, engine.xp)

    @property
    def frames(self) -> tuple:
        """The box by the logistic map."""
        return (Bounded(self.lower, self.upper),)


@explaining
@dataclasses.dataclass(frozen=True, eq=False)
class Prior:
    """A density given by two functions.

    `log_density` is normalised, and written for the engine's library as an energy would be: of one
    position or of a batch. `sample(rng, n)` draws NumPy positions (n, dim) from it.
    """

    log_density: Callable
    sample: Callable
    dim: int | None = None

    def __post_init__(self):
        """Refuse what can't be called."""
        for name in ("log_density", "sample"):
            if not callable(getattr(self, name)):
                kind = type(getattr(self, name)).__name__
                raise TypeError(f"{name} must be callable, got {kind}; pass a function")
        if self.dim is not None:
            whole("dim", self.dim, 1)

    def grad_fn(self, engine, x):
        """By the engine's autodiff; on NumPy, `log_density` returns value and gradient."""
        if engine.name == "numpy":
            return engine.value_and_grad(_Negated(self.log_density), x)
        return engine.value_and_grad(Negative(self.log_density), x)

    @property
    def frames(self) -> tuple:
        """A support with edges is left as it is: a proposal beyond them is refused."""
        return ()


@dataclasses.dataclass(frozen=True)
class _Negated:
    function: Callable

    def __call__(self, x):
        value, gradient = self.function(x)
        return -np.asarray(value), -np.asarray(gradient)
