"""Adaptive Runge–Kutta for the ESH dynamics: Dormand–Prince, a step size for each chain.

    original (Eq. 2)    x' = v/(v²/d)      v' = −g
    scaled (Eq. 6)      x' = u             u' = −(I − uuᵀ) g/d      r' = −u·g/d

A step costs six gradients, since its last stage is the first of the next one, and a rejected step
costs as many. Every attempt is recorded, so that a place on the path has its price.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from schuss.engines.width import wide
from schuss.targets import Target

GRADIENTS = 6
"""For each attempted step of Dormand–Prince."""
FIRST_STEP, FOREVER = 0.01, 1e12


class Attempts(NamedTuple):
    """States after each attempted step, the start included: attempts along the first axis."""

    x: Any
    log_speed: Any  # log|v|, (attempts + 1, chains)
    time: Any  # of the equations that were solved
    energy: Any
    step: Any  # the step that was tried, (attempts, chains)
    accepted: Any  # (attempts, chains)


def load():
    """Diffrax, or one sentence on how to get it."""
    try:
        import diffrax
    except ImportError as error:
        raise ImportError(
            "the Runge–Kutta curves need diffrax; install it with pip install 'schuss[paper]'"
        ) from error
    return diffrax


def integrate(
    target: Target,
    x: np.ndarray,
    u: np.ndarray,
    *,
    scaled: bool,
    attempts: int,
    rtol: float,
    atol: float,
) -> Attempts:
    """Make so many attempts from the positions x with |v| = 1 along u, both (chains, dim)."""
    with wide():
        start = jnp.asarray(x, jnp.float64), jnp.asarray(u, jnp.float64)
        out = _integrate(target.energy, scaled, attempts, *start, rtol, atol)
    return Attempts(*map(np.asarray, out))


@functools.partial(jax.jit, static_argnames=("energy", "scaled", "attempts"))
def _integrate(energy, scaled, attempts, x, u, rtol, atol):
    one = functools.partial(_one, load(), energy, scaled, attempts, rtol=rtol, atol=atol)
    return jax.vmap(one, out_axes=1)(x, u)


def vector_field(energy, scaled: bool, y: tuple) -> tuple:
    """The time derivative of y = (x, u, r), or of (x, v), for one chain."""
    g = jax.grad(lambda x: energy(jnp, x[None])[0])(y[0])
    dim = g.shape[0]
    if not scaled:
        _, v = y
        return dim * v / (v @ v), -g
    _, u, _ = y
    along = u @ g
    return u, (u * along - g) / dim, -along / dim


def _one(diffrax, energy, scaled, attempts, x, u, *, rtol, atol) -> Attempts:
    solver = diffrax.Dopri5()
    controller = diffrax.PIDController(rtol=rtol, atol=atol)
    term = diffrax.ODETerm(lambda t, y, args: vector_field(energy, scaled, y))
    zero = jnp.zeros((), x.dtype)
    y = (x, u, zero) if scaled else (x, u)
    end, order = zero + FOREVER, solver.error_order(term)
    begun = controller.init(term, zero, end, y, zero + FIRST_STEP, None, solver.func, order)
    first = (zero, begun[0], y, solver.init(term, zero, end, y, None), False, begun[1])

    def attempt(carry, _):
        t0, t1, y, memory, jump, control = carry
        tried, error, _, new_memory, _ = solver.step(term, t0, t1, y, None, memory, jump)
        keep, next_t0, next_t1, jump, control, _ = controller.adapt_step_size(
            t0, t1, y, tried, None, error, order, control
        )

        def choose(new, old):
            return jax.tree.map(lambda a, b: jnp.where(keep, a, b), new, old)

        y, memory = choose(tried, y), choose(new_memory, memory)
        return (next_t0, next_t1, y, memory, jump, control), (y, next_t0, t1 - t0, keep)

    _, (path, time, step, kept) = jax.lax.scan(attempt, first, length=attempts)
    whole: Any = jax.tree.map(lambda start, rest: jnp.concatenate([start[None], rest]), y, path)
    speed = whole[2] if scaled else jnp.log(jnp.linalg.norm(whole[1], axis=-1))
    time = jnp.concatenate([zero[None], time])
    return Attempts(whole[0], speed, time, energy(jnp, whole[0]), step, kept)
