"""The samplers as data: what they are. How they run is the core's and the engine's affair.

`build(dim)` gives the kernel, which is fixed when a loop is compiled, and its parameters, which
are not: another step size compiles nothing anew.
"""

import dataclasses
import math
import numbers
from typing import Any, NamedTuple, Protocol

import numpy as np

from schuss.arguments import one_of, positive, positive_number, whole
from schuss.core import endpoint, flow, nose_hoover, orbit, persistent
from schuss.core.dynamics import ESH as ESH_FLOW
from schuss.core.dynamics import NEWTON, q_dynamics
from schuss.core.integrators import INTEGRATORS, LEAPFROG
from schuss.core.kernel import Kernel
from schuss.core.reflect import BOUNDARIES
from schuss.core.refresh import amount
from schuss.keywords import explaining


class Build(NamedTuple):
    """A kernel and its parameters, as plain numbers."""

    kernel: Kernel
    params: Any


class Algorithm(Protocol):
    """A frozen dataclass that knows how to build its kernel."""

    @property
    def step_size(self) -> float:
        """The step ε."""
        ...

    def build(self, dim: int, *, speed: bool = True, weighted: bool = True) -> Build:
        """The kernel for `dim` coordinates; r and the weights may be left out where unneeded."""
        ...


@explaining
@dataclasses.dataclass(frozen=True)
class ESH:
    """Energy Sampling Hamiltonian dynamics. The defaults are the paper's.

    step_size: the step ε in scaled time, which is the distance a step covers.
    kappa: force divisor κ; None is the paper's d. κ = d − 1 needs no weights.
    refresh: length L over which the velocity is forgotten; None is the deterministic flow.
    integrator: "leapfrog", "minimal-norm", "long-step" or "fourth-order".
    adjust: None follows the flow as it is. "endpoint" (Metropolis after `steps` steps), "orbit"
        (windows of `steps` points, all of them weighted) and "persistent" (Metropolis in every
        step, needs `refresh`) are exact at any step size.
    weight: what a state counts: "energy" (closed form e^(−(1−(d−1)/κ)E)), "speed" (|v|, as
        Algorithm 3 has it) or "time" (exact elapsed time; κ = d).
    metric: scales of the coordinates, (dim,).
    box: lower and upper corner; what the path meets there is `boundary`, "reflect" or "clamp".
    gradient_clip: largest size of a component of the gradient that the sampler follows.
    """

    step_size: Any = 0.1
    kappa: float | None = None
    refresh: float | None = None
    integrator: str = "leapfrog"
    adjust: str | None = None
    steps: int = 10
    weight: str = "energy"
    metric: Any = None
    box: Any = None
    boundary: str = "reflect"
    gradient_clip: float | None = None

    def __post_init__(self):
        """Refuse what can't run."""
        _check(self, exact=self.adjust is not None)
        one_of("integrator", self.integrator, tuple(INTEGRATORS))
        one_of("adjust", self.adjust, (None, "endpoint", "orbit", "persistent"))
        one_of("weight", self.weight, ("energy", "speed", "time"))
        if self.kappa is not None:
            positive_number("kappa", self.kappa)
        if self.refresh is not None:
            positive_number("refresh", self.refresh)
        if self.metric is not None:
            positive("metric", self.metric)
        whole("steps", self.steps, 2 if self.adjust == "orbit" else 1)
        if self.adjust == "persistent" and self.refresh is None:
            raise ValueError("adjust='persistent' needs a refresh length; pass e.g. refresh=3.0")
        if self.adjust in ("endpoint", "orbit") and self.refresh is not None:
            raise ValueError(
                f"adjust={self.adjust!r} draws a new velocity each time; leave refresh=None"
            )
        if self.weight == "time" and (self.refresh is not None or self.adjust is not None):
            raise ValueError(
                "weight='time' is the clock of the deterministic flow; use weight='energy' with "
                "refresh or adjust"
            )
        if self.adjust in ("orbit", "persistent") and self.box is not None:
            raise ValueError(
                "box works with adjust=None and adjust='endpoint' only; leave one of them out"
            )

    @property
    def looks(self) -> int:
        """Further steps that a persistent proposal looks ahead at most: half of its memory."""
        if self.refresh is None:
            return 0
        return math.floor(0.5 * self.refresh / float(np.median(self.step_size)))

    def build(self, dim: int, *, speed: bool = True, weighted: bool = True) -> Build:
        """The kernel for `dim` coordinates."""
        kappa = float(dim) if self.kappa is None else float(self.kappa)
        scheme = INTEGRATORS[self.integrator]
        if self.adjust == "endpoint":
            params = endpoint.Params(self.step_size, kappa, dim - 1.0, float(self.steps))
            return _proposing(ESH_FLOW, scheme, params, self.box)
        if self.adjust == "orbit":
            params = orbit.Params(self.step_size, kappa, dim - 1.0, float(self.steps))
            return Build(orbit.kernel(ESH_FLOW, scheme), params)
        length = math.inf if self.refresh is None else self.refresh
        nu = _noise_amount(self.step_size, length, dim)
        if self.adjust == "persistent":
            slide = 2 * float(np.median(self.step_size)) / length
            params = persistent.Params(
                self.step_size, kappa, dim - 1.0, nu, float(self.looks), slide
            )
            return Build(persistent.kernel(ESH_FLOW, scheme), params)
        if self.weight == "time" and kappa != dim:
            raise ValueError(f"weight='time' needs kappa equal to the dimension {dim}, got {kappa}")
        kernel = flow.kernel(
            ESH_FLOW,
            scheme,
            refreshment="none" if self.refresh is None else "partial",
            weight=self.weight if weighted else None,
            boundary=None if self.box is None else self.boundary,
            speed=speed,
        )
        return Build(kernel, flow.Params(self.step_size, kappa, nu, -math.inf, math.inf))


@explaining
@dataclasses.dataclass(frozen=True)
class Unscaled:
    """Leapfrog for the un-scaled q-Hamiltonian dynamics: the original ESH at q = 1, Newton at 0."""

    step_size: Any = 0.01
    q: float = 1.0
    box: Any = None
    boundary: str = "reflect"
    gradient_clip: float | None = None

    def __post_init__(self):
        """Refuse what can't run."""
        _check(self)
        if isinstance(self.q, bool) or not (isinstance(self.q, numbers.Real) and 0 <= self.q <= 1):
            raise ValueError(f"q must be between 0 (Newton) and 1 (ESH), got {self.q!r}")

    def build(self, dim: int, *, speed: bool = True, weighted: bool = True) -> Build:
        """The kernel for `dim` coordinates."""
        weight = "uniform" if weighted else None
        boundary = None if self.box is None else self.boundary
        kernel = flow.kernel(
            q_dynamics(self.q), LEAPFROG, weight=weight, boundary=boundary, speed=speed
        )
        return Build(kernel, _plain(self.step_size))


@explaining
@dataclasses.dataclass(frozen=True)
class ULA:
    """Unadjusted Langevin: x ← x − ε²/2 g + ε z."""

    step_size: Any = 0.1
    box: Any = None
    boundary: str = "reflect"
    gradient_clip: float | None = None

    def __post_init__(self):
        """Refuse what can't run."""
        _check(self)

    def build(self, dim: int, *, speed: bool = True, weighted: bool = True) -> Build:
        """The kernel for `dim` coordinates."""
        weight = "uniform" if weighted else None
        kernel = flow.kernel(
            NEWTON,
            LEAPFROG,
            refreshment="full",
            weight=weight,
            boundary=None if self.box is None else self.boundary,
            speed=False,
        )
        return Build(kernel, _plain(self.step_size))


@explaining
@dataclasses.dataclass(frozen=True)
class MALA:
    """Metropolis-adjusted Langevin: HMC with a single leapfrog."""

    step_size: Any = 0.1
    box: Any = None
    boundary: str = "reflect"
    gradient_clip: float | None = None

    def __post_init__(self):
        """Refuse what can't run."""
        _check(self, exact=True)

    def build(self, dim: int, *, speed: bool = True, weighted: bool = True) -> Build:
        """The kernel for `dim` coordinates."""
        return HMC(self.step_size, steps=1, box=self.box).build(dim)


@explaining
@dataclasses.dataclass(frozen=True)
class HMC:
    """Hamiltonian Monte Carlo with `steps` leapfrogs for each proposal."""

    step_size: Any = 0.01
    steps: int = 5
    box: Any = None
    boundary: str = "reflect"
    gradient_clip: float | None = None

    def __post_init__(self):
        """Refuse what can't run."""
        _check(self, exact=True)
        whole("steps", self.steps, 1)

    def build(self, dim: int, *, speed: bool = True, weighted: bool = True) -> Build:
        """The kernel for `dim` coordinates."""
        params = endpoint.Params(self.step_size, 1.0, 1.0, float(self.steps))
        return _proposing(NEWTON, LEAPFROG, params, self.box)


@explaining
@dataclasses.dataclass(frozen=True)
class NoseHoover:
    """Nosé–Hoover dynamics with one thermostat of the given mass."""

    step_size: Any = 0.01
    mass: float = 1.0
    box: Any = None
    boundary: str = "reflect"
    gradient_clip: float | None = None

    def __post_init__(self):
        """Refuse what can't run."""
        _check(self)
        positive_number("mass", self.mass)

    def build(self, dim: int, *, speed: bool = True, weighted: bool = True) -> Build:
        """The kernel for `dim` coordinates."""
        params = nose_hoover.Params(self.step_size, self.mass)
        if self.box is None:
            return Build(nose_hoover.kernel(), params)
        kernel = nose_hoover.kernel(boundary=self.boundary)
        return Build(kernel, nose_hoover.Boxed(*params, -math.inf, math.inf))


ALGORITHMS = (ESH, HMC, MALA, ULA, NoseHoover, Unscaled)


def checked(name: str, value: Any, *, auto: bool = False) -> Any:
    """Refuse what isn't an algorithm, by the name of the argument, which may take "auto" too."""
    if isinstance(value, type):
        raise TypeError(
            f"{name} must be an algorithm, got the class {value.__name__}; pass {value.__name__}(…)"
        )
    if hasattr(value, "build"):
        return value
    wanted = "an algorithm such as schuss.ESH(0.1)" + (' or "auto"' if auto else "")
    remedy = ""
    if isinstance(value, str):
        own = {kind.__name__.lower(): kind.__name__ for kind in ALGORITHMS}.get(value.lower())
        remedy = (
            f"; pass schuss.{own}()"
            if own
            else "; NUTS and other libraries' samplers run with schuss compare"
        )
    raise TypeError(f"{name} must be {wanted}, got {value!r}{remedy}")


def transition(algorithm: Algorithm) -> int:
    """Steps after which a sampler with proposals has surely decided one; one for the others."""
    steps, adjust = getattr(algorithm, "steps", 1), getattr(algorithm, "adjust", "endpoint")
    if isinstance(algorithm, ESH) and adjust == "persistent":
        return algorithm.looks + 1
    return {"endpoint": steps, "orbit": steps - 1}.get(adjust, 1)


def _check(algorithm, exact: bool = False) -> None:
    """Refuse what no sampler can run with: a step, a boundary or a clip that is none."""
    positive("step_size", algorithm.step_size)
    one_of("boundary", algorithm.boundary, tuple(BOUNDARIES))
    if algorithm.gradient_clip is not None:
        positive_number("gradient_clip", algorithm.gradient_clip)
    if exact and algorithm.boundary != "reflect":
        raise ValueError(
            f"boundary={algorithm.boundary!r} can't be undone, which a Metropolis test needs; use "
            "boundary='reflect'"
        )


def _proposing(dynamics, scheme, params: endpoint.Params, box) -> Build:
    """Metropolis at the end of a proposal, which a box reflects."""
    if box is None:
        return Build(endpoint.kernel(dynamics, scheme), params)
    kernel = endpoint.kernel(dynamics, scheme, boxed=True)
    return Build(kernel, endpoint.Boxed(*params, -math.inf, math.inf))


def _plain(step_size):
    return flow.Params(step_size, 1.0, 0.0, -math.inf, math.inf)


def _noise_amount(step_size, length, dim):
    if np.ndim(step_size) == 0:
        return amount(float(step_size), length, dim)
    return np.asarray([amount(float(epsilon), length, dim) for epsilon in step_size])
