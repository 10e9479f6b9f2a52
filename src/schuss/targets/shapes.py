"""Two-dimensional shapes and a double well, each with exact samples and known truth."""

import functools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from schuss.targets.constants import constant
from schuss.targets.draws import normal_start, rejection
from schuss.targets.logsumexp import logsumexp
from schuss.targets.mixture import mixture
from schuss.targets.quadrature import quadrature_truth
from schuss.targets.target import Array, Namespace, Target, Truth


@functools.cache
def rings(radii: Sequence[float] = (1.0, 2.0, 3.0, 4.0), sd: float = 0.15) -> Target:
    """Rings of the toy energy model: angle uniform, radius R_k + sd N(0, 1).

    E = log 2πρ − log Σ_k N(ρ; R_k, sd²)/k with ρ² = |x|² + (sd/10)², smooth at the origin.
    Since dρ = |x| d|x|/ρ, ρ has exactly the mixture's law, cut off at sd/10: exact samples are
    |x| = √(ρ² − sd²/100), and Z = 1 up to the cut-off mass (under 1e-11 by default).
    """
    if len(radii) == 0 or min(radii) < 5 * sd or not sd > 0:
        raise ValueError(
            f"radii must all be at least 5 sd, got {tuple(radii)} with sd={sd}; "
            "pass larger radii or a smaller sd"
        )
    centres = np.asarray(radii, dtype=np.float64)
    places = constant(centres)
    core = sd / 10
    log_height = -math.log(len(radii) * sd * math.sqrt(2 * math.pi) * 2 * math.pi)

    def polar(xp: Namespace, x: Array) -> tuple[Array, Array, Array]:
        rho = xp.sqrt(xp.sum(x**2, axis=-1) + core**2)
        apart = (rho[:, None] - places(xp, x)[None, :]) / sd
        return rho, apart, -(apart**2) / 2

    def energy(xp: Namespace, x: Array) -> Array:
        rho, _, terms = polar(xp, x)
        return xp.log(rho) - log_height - logsumexp(xp, terms)

    def gradient(xp: Namespace, x: Array) -> Array:
        rho, apart, terms = polar(xp, x)
        share = xp.exp(terms - logsumexp(xp, terms)[:, None])
        slope = 1 / rho + xp.sum(share * apart, axis=-1) / sd
        return (slope / rho)[:, None] * x

    def radius(rng: np.random.Generator, n: int) -> np.ndarray:
        return rng.choice(centres, size=n) + sd * rng.standard_normal(n)

    draw_rho = rejection(radius, accept=lambda rho: (rho > core).astype(np.float64))

    def sample(rng: np.random.Generator, n: int) -> np.ndarray:
        size = np.sqrt(draw_rho(rng, n) ** 2 - core**2)
        angle = rng.uniform(0, 2 * math.pi, n)
        return size[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=-1)

    rho2 = np.mean(centres**2) + sd**2
    rho4 = np.mean(centres**4 + 6 * centres**2 * sd**2) + 3 * sd**4
    second = np.full(2, (rho2 - core**2) / 2)
    fourth = (rho4 - 2 * core**2 * rho2 + core**4) * 3 / 8
    rho = np.linspace(core, centres.max() + 10 * sd, 20_001)
    e = energy(np, np.stack([np.sqrt(rho**2 - core**2), np.zeros_like(rho)], axis=-1))
    density = 2 * math.pi * rho * np.exp(-e)
    return Target(
        name="rings",
        dim=2,
        energy=energy,
        gradient=gradient,
        start=normal_start(2, sd=2.0),
        sample=sample,
        truth=Truth(
            mean=np.zeros(2),
            variance=second,
            second_moment=second,
            second_variance=fourth - second**2,
            energy=float(np.sum(density * e) / np.sum(density)),
            log_z=0.0,
        ),
    )


@functools.cache
def banana(sd: float = 10.0, bend: float = 0.03) -> Target:
    """E = x₁²/2sd² + (x₂ − bend (x₁² − sd²))²/2: a Gaussian, bent without change of volume."""
    if not (sd > 0 and math.isfinite(bend)):
        raise ValueError(
            f"sd must be positive and bend finite, got {sd} and {bend}; "
            "pass e.g. sd=10.0, bend=0.03"
        )

    def rest(x: Array) -> Array:
        return x[:, 1] - bend * (x[:, 0] ** 2 - sd**2)

    def energy(xp: Namespace, x: Array) -> Array:
        return ((x[:, 0] / sd) ** 2 + rest(x) ** 2) / 2

    def gradient(xp: Namespace, x: Array) -> Array:
        off = rest(x)
        return xp.stack([x[:, 0] / sd**2 - 2 * bend * x[:, 0] * off, off], axis=-1)

    def sample(rng: np.random.Generator, n: int) -> np.ndarray:
        first = sd * rng.standard_normal(n)
        second = rng.standard_normal(n) + bend * (first**2 - sd**2)
        return np.stack([first, second], axis=-1)

    # x₂ = z + a (w² − 1) with standard normal z, w; w² − 1 has moments 0, 2, 8, 60.
    a = bend * sd**2
    second = np.array([sd**2, 1 + 2 * a**2])
    fourth = np.array([3 * sd**4, 3 + 12 * a**2 + 60 * a**4])
    return Target(
        name="banana",
        dim=2,
        energy=energy,
        gradient=gradient,
        start=normal_start(2),
        sample=sample,
        truth=Truth(
            mean=np.zeros(2),
            variance=second,
            second_moment=second,
            second_variance=fourth - second**2,
            energy=1.0,
            log_z=math.log(2 * math.pi * sd),
        ),
        whiten=lambda x: np.stack([x[:, 0] / sd, rest(x)], axis=-1),
    )


@functools.cache
def two_moons() -> Target:
    """E = ½((ρ − 2)/.4)² − log Σ_± e^{−½((x₁ ∓ 2)/.6)²}, ρ² = |x|² + .01: facing crescents.

    Exact samples by rejection: x₁ from its two Gaussians, x₂ uniform in ±6 (beyond it e^{−E} is
    under e^{−50}), accepted by the first term. Truth by quadrature.
    """

    def rho_of(xp: Namespace, x: Array) -> Array:
        return xp.sqrt(xp.sum(x**2, axis=-1) + 0.01)

    def energy(xp: Namespace, x: Array) -> Array:
        first = xp.stack([x[:, 0] - 2, x[:, 0] + 2], axis=-1)
        sides = -((first / 0.6) ** 2) / 2
        return ((rho_of(xp, x) - 2) / 0.4) ** 2 / 2 - logsumexp(xp, sides)

    def gradient(xp: Namespace, x: Array) -> Array:
        rho, first = rho_of(xp, x), x[:, 0]
        ring = ((rho - 2) / (0.16 * rho))[:, None] * x
        # The two Gaussians' shares differ by tanh(2 x₁/.36).
        side = (first - 2 * xp.tanh(2 * first / 0.36)) / 0.36
        return ring + xp.stack([side, xp.zeros_like(side)], axis=-1)

    def propose(rng: np.random.Generator, n: int) -> np.ndarray:
        first = rng.choice([-2.0, 2.0], size=n) + 0.6 * rng.standard_normal(n)
        return np.stack([first, rng.uniform(-6.0, 6.0, n)], axis=-1)

    return Target(
        name="two-moons",
        dim=2,
        energy=energy,
        gradient=gradient,
        start=normal_start(2),
        sample=rejection(propose, accept=lambda x: np.exp(-(((rho_of(np, x) - 2) / 0.4) ** 2) / 2)),
        truth=quadrature_truth(energy, (-6.0, -6.0), (6.0, 6.0), 301),
    )


@functools.cache
def double_well(dim: int = 2, tilt: float = 0.3) -> Target:
    """E = x₁⁴/4 − x₁² + tilt x₁ + ½ Σ_{i>1} x_i²; at tilt .3, E[x₁] = −.4825.

    Exact samples by rejection from x₁ uniform in ±6, beyond which e^{−E} is under e^{−250}.
    """
    if dim < 1:
        raise ValueError(f"dim must be at least 1, got {dim}; pass e.g. dim=2")
    if not abs(tilt) <= 5:
        raise ValueError(f"tilt must be between -5 and 5, got {tilt}; pass e.g. tilt=0.3")

    def well(x: Array) -> Array:
        return x**4 / 4 - x**2 + tilt * x

    def energy(xp: Namespace, x: Array) -> Array:
        return well(x[:, 0]) + xp.sum(x[:, 1:] ** 2, axis=-1) / 2

    def gradient(xp: Namespace, x: Array) -> Array:
        first = x[:, :1]
        return xp.concat([first**3 - 2 * first + tilt, x[:, 1:]], axis=-1)

    lowest = float(well(np.linspace(-6.0, 6.0, 12_001)).min()) - 1e-4
    draw_first = rejection(
        propose=lambda rng, n: rng.uniform(-6.0, 6.0, n),
        accept=lambda first: np.exp(lowest - well(first)),
    )

    def sample(rng: np.random.Generator, n: int) -> np.ndarray:
        return np.concatenate([draw_first(rng, n)[:, None], rng.standard_normal((n, dim - 1))], -1)

    one = quadrature_truth(lambda xp, x: well(x[:, 0]), (-6.0,), (6.0,), 1001)
    assert one.energy is not None and one.log_z is not None
    rest = np.ones(dim - 1)
    return Target(
        name="double-well",
        dim=dim,
        energy=energy,
        gradient=gradient,
        start=normal_start(dim),
        sample=sample,
        truth=Truth(
            mean=np.append(one.mean, 0 * rest),
            variance=np.append(one.variance, rest),
            second_moment=np.append(one.second_moment, rest),
            second_variance=np.append(one.second_variance, 2 * rest),
            energy=one.energy + (dim - 1) / 2,
            log_z=one.log_z + (dim - 1) / 2 * math.log(2 * math.pi),
        ),
    )


@functools.cache
def pinwheel(arms: int = 5, twist: float = 0.3) -> Target:
    """Blobs along straight arms, turned by the angle twist |x|²: a rotation on each circle.

    The map keeps areas, so E(x) = E_blobs(R(−twist |x|²) x), Z = 1 and samples are exact.
    Truth by quadrature.
    """
    if arms < 1:
        raise ValueError(f"arms must be at least 1, got {arms}; pass e.g. arms=5")
    angle = 2 * math.pi * np.arange(arms) / arms
    spokes = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    centres = np.concatenate([radius * spokes for radius in (0.8, 1.2, 1.6, 2.0)])
    blobs = mixture(centres, 0.2, name="pinwheel")
    draw_blobs = blobs.sample
    assert draw_blobs is not None

    def turn(xp: Namespace, x: Array, rate: float) -> tuple[Array, Array, Array]:
        angle = rate * xp.sum(x**2, axis=-1)
        cos, sin = xp.cos(angle), xp.sin(angle)
        turned = [cos * x[:, 0] - sin * x[:, 1], sin * x[:, 0] + cos * x[:, 1]]
        return xp.stack(turned, axis=-1), cos, sin

    def energy(xp: Namespace, x: Array) -> Array:
        return blobs.energy(xp, turn(xp, x, -twist)[0])

    def gradient(xp: Namespace, x: Array) -> Array:
        z, cos, sin = turn(xp, x, -twist)
        g = blobs.gradient(xp, z)
        back = [cos * g[:, 0] + sin * g[:, 1], cos * g[:, 1] - sin * g[:, 0]]
        torque = z[:, 0] * g[:, 1] - z[:, 1] * g[:, 0]
        return xp.stack(back, axis=-1) - 2 * twist * torque[:, None] * x

    return replace(
        blobs,
        energy=energy,
        gradient=gradient,
        sample=lambda rng, n: turn(np, draw_blobs(rng, n), twist)[0],
        truth=quadrature_truth(energy, (-4.0, -4.0), (4.0, 4.0), 401),
    )
