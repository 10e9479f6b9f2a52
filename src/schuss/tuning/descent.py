"""Come near the typical set from far away: batched L-BFGS that stops before it gets to a mode.

One gradient an iteration. A chain stops when its energy has fallen by less than 2d in eight
iterations; it then goes back to the first point of its path whose energy was within d/2 of the
last one, so that it doesn't begin at the bottom of a well or in the neck of a funnel.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from schuss.core.kernel import select

MEMORY, CHUNK, ARMIJO = 8, 8, 1e-4


class Pairs(NamedTuple):
    """The last moves s, changes y of the gradient, and 1/(s·y), zero where there is none."""

    s: np.ndarray  # (MEMORY, chains, dim)
    y: np.ndarray
    rho: np.ndarray  # (MEMORY, chains)


class Place(NamedTuple):
    """Where the chains are at one time of their way."""

    x: np.ndarray
    energy: np.ndarray
    g: np.ndarray


class Descent(NamedTuple):
    """Where the chains ended up, and the iterations it took: one gradient of each chain apiece."""

    x: np.ndarray
    energy: np.ndarray
    g: np.ndarray
    iterations: int


def descend(grad_fn: Callable, x: np.ndarray, *, most: int = 800) -> Descent:
    """Descend from `x` (chains, dim) with `grad_fn(x)` → energies (chains,) and gradients."""
    chains, dim = x.shape
    energy, g = grad_fn(x)
    found = Place(x, energy, g)
    path = [found]
    empty = np.zeros((MEMORY, chains, dim))
    pairs = Pairs(empty, empty, np.zeros((MEMORY, chains)))
    p, t = _first_move(g, dim), np.ones(chains)
    before, active, done = energy, np.ones(chains, bool), 1
    while active.any() and done < most:
        for _ in range(CHUNK):
            trial = np.where(active[:, None], x + t[:, None] * p, x)
            trial_energy, trial_g = grad_fn(trial)
            done += 1
            slope = np.sum(p * g, axis=-1)
            sound = np.isfinite(trial_energy) & np.isfinite(trial_g).all(axis=-1)
            good = active & sound & (trial_energy <= energy + ARMIJO * t * slope)
            pairs = _remember(pairs, trial - x, trial_g - g, good)
            t = np.where(good, 1.0, t * _backtrack(t, energy, trial_energy, slope, sound))
            x = np.where(good[:, None], trial, x)
            energy, g = np.where(good, trial_energy, energy), np.where(good[:, None], trial_g, g)
            with np.errstate(over="ignore", invalid="ignore"):
                direction = _direction(pairs, g)
                downhill = np.sum(direction * g, axis=-1) < 0
            known = np.any(pairs.rho > 0, axis=0) & downhill
            direction = np.where(known[:, None], direction, _first_move(g, dim))
            p = np.where(good[:, None], direction, p)
            path.append(Place(x, energy, g))
        first = _first(path, energy + dim / 2)
        found = select(np, active, _back(path, first), found)
        active = active & (before - energy >= 2 * dim)
        before = energy
        # Energies never rise, so that nobody who is still on the way comes back to before these.
        path = path[first[active].min(initial=len(path)) :]
    return Descent(found.x, found.energy, found.g, done)


def _first_move(g, dim):
    """A tenth of √d downhill; the square of a gradient far away may be infinite."""
    largest = np.abs(g).max(axis=-1, keepdims=True)
    g = g / np.where(largest > 0, largest, 1.0)
    norm = np.linalg.norm(g, axis=-1, keepdims=True)
    return -0.1 * np.sqrt(dim) * g / np.where(norm > 0, norm, 1.0)


def _backtrack(t, energy, trial_energy, slope, sound):
    """The minimum of the parabola through what is known, within [0.1, 0.5]; 0.1 without sound."""
    rise = np.where(sound, trial_energy - energy - t * slope, np.inf)
    with np.errstate(all="ignore"):
        factor = -0.5 * t * slope / rise
    return np.clip(np.where(np.isfinite(factor), factor, 0.1), 0.1, 0.5)


def _remember(pairs: Pairs, s, y, good) -> Pairs:
    with np.errstate(over="ignore", invalid="ignore"):
        product = np.sum(s * y, axis=-1)
        norms = np.linalg.norm(s, axis=-1) * np.linalg.norm(y, axis=-1)
    useful = good & np.isfinite(norms) & (product > 1e-8 * norms)
    if not useful.any():
        return pairs
    with np.errstate(all="ignore"):
        rho = np.where(useful, 1 / product, 0.0)
    column = useful[:, None]
    newest = (np.where(column, s, 0.0), np.where(column, y, 0.0), rho)
    shifted = []
    for old, new in zip(pairs, newest, strict=True):
        moved = np.concatenate([old[1:], new[None]])
        keep = useful.reshape((1, -1) + (1,) * (old.ndim - 2))
        shifted.append(np.where(keep, moved, old))
    return Pairs(*shifted)


def _direction(pairs: Pairs, g):
    """−H g by the two-loop recursion, chain by chain at once."""
    q, alphas = g, []
    for s, y, rho in zip(*(part[::-1] for part in pairs), strict=True):
        alpha = rho * np.sum(s * q, axis=-1)
        q = q - alpha[:, None] * y
        alphas.append(alpha)
    newest = np.sum(pairs.y[-1] ** 2, axis=-1) * pairs.rho[-1]
    q = q / np.where(newest > 0, newest, 1.0)[:, None]
    for s, y, rho, alpha in zip(*pairs, reversed(alphas), strict=True):
        beta = rho * np.sum(y * q, axis=-1)
        q = q + (alpha - beta)[:, None] * s
    return -q


def _first(path, level):
    """The number of the first point of each chain's path at or below its level."""
    return np.argmax(np.stack([place.energy for place in path]) <= level, axis=0)


def _back(path, which) -> Place:
    """Each chain at its point of that number."""
    chosen = [[part[chain] for part in path[k]] for chain, k in enumerate(which)]
    return Place(*map(np.stack, zip(*chosen, strict=True)))
