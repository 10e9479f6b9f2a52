"""From starts to chains in the typical set, with a first metric and a first step size.

L-BFGS comes near, since from a start far away every step would be wrong; then eight steps at a
time with a step size for each chain, until energies stop falling. Chains that stay far above the
others, or hardly move, begin again beside another one.
"""

import math
from typing import NamedTuple

import numpy as np

from schuss.core.refresh import direction
from schuss.problem import Problem
from schuss.results.checks.evidence import PROPER
from schuss.results.stats import DIVERGED
from schuss.sampling.state import (
    ChainState,
    Counts,
    Facts,
    KernelParams,
    RunState,
    Transform,
    Visited,
    draws,
)
from schuss.sampling.window import Setting, window
from schuss.tuning import burn_in, step_size
from schuss.tuning.descent import descend
from schuss.tuning.local_mass import log_mass
from schuss.tuning.metric import scaled, scales_by_chain, unit

STEPS = 8
"""Steps between two decisions."""

ERROR, MEMORY, SHRINK, GROW = 0.01, 0.8, 0.5, 1.5
"""Wanted variance of the energy error per dimension, and how step sizes come to have it."""

NOWHERE = 1e30
"""No density has its mass so far away."""

WITHOUT_END = (
    "the energy falls without end: the way down from the start {}, so that the density can't be "
    f"normalised. {PROPER}. If it is proper, start nearer to where its mass is"
)


class Controller(NamedTuple):
    """Step sizes by energy errors W ∝ ε³: ε ← (S/(T wanted))^(−1/6), S = Σ W²/dε⁶ with a memory."""

    step_size: np.ndarray  # (chains,)
    errors: np.ndarray  # S ε⁶, which can't overflow
    weight: np.ndarray  # T

    def updated(self, error: np.ndarray, dim: int) -> "Controller":
        """After steps with these energy errors (steps, chains)."""
        size = np.where(np.isfinite(error), np.clip(np.abs(error), None, DIVERGED), DIVERGED)
        errors, weight = self.errors, self.weight
        for row in size:
            errors, weight = MEMORY * errors + row**2 / dim, MEMORY * weight + 1
        change = np.clip((errors / weight / ERROR + 1e-30) ** (-1 / 6), SHRINK, GROW)
        change = np.minimum(change, 2.5 * math.sqrt(dim) / self.step_size)
        return Controller(self.step_size * change, errors * change**6, weight)

    def scaled(self, factor: float) -> "Controller":
        """In coordinates in which a step of one is `factor` as long."""
        return self._replace(step_size=self.step_size * factor)


def initialise(problem: Problem, x: np.ndarray, seed: int, temperature: float = 1.0) -> RunState:
    """Chains in the typical set, from starts (chains, dim)."""
    found = descend(lambda x: evaluate(problem, x), x)
    best = np.argmin(found.energy)
    if np.abs(found.x[best]).max() > NOWHERE:
        raise ValueError(WITHOUT_END.format(f"leads to |x| > {NOWHERE:.0e}"))
    facts = Facts(x.mean(axis=0), found.energy[best], found.x[best], no_visit(problem.dim))
    gradients = found.iterations * len(x)
    counts = Counts(gradients=gradients)
    return burn_in_at(problem, found.x, found.energy, found.g, seed, temperature, facts, counts)


def burn_in_at(problem, x, energy, grad, seed, temperature, facts, counts) -> RunState:
    """Chains whose energies have stopped falling, from such as have come near."""
    chains, dim = len(x), max(problem.dim, 2)
    rng = np.random.default_rng([seed, 7, counts.windows])
    u = direction(np, rng.standard_normal((chains, dim)))
    now = ChainState(x, energy, grad, u, rng.uniform(-1, 1, chains))
    zero = np.zeros(chains)
    control = Controller(step_size.first_step(grad / temperature), zero, zero)
    metric, found, gone = unit(dim), [], zero > 0
    while True:
        params = KernelParams(control.step_size, math.sqrt(dim))
        setting = Setting(True, Transform(metric), params, temperature)
        key = (seed, 1, counts.windows, len(found))
        found.append(window(problem, setting, now, STEPS, key))
        now, last = found[-1].chains, found[-1].step
        control = control.updated(last.error, dim)
        later = tuple(one.block for one in found[len(found) // 2 :])
        x, grad = draws(later, "x", "grad")
        scale = np.append(scales_by_chain(x, grad / temperature), np.ones(dim - problem.dim))
        control = control.scaled(math.exp(np.mean(np.log(metric.scale / scale))))
        metric = scaled(scale)
        means = np.stack([one.block.energy.mean(0) for one in found])
        if burn_in.endless(means.mean(axis=1)):
            raise ValueError(WITHOUT_END.format("grows steeper with each step"))
        over = burn_in.over(means, problem.dim)
        lost = zero > 0
        if len(found) >= 2 * burn_in.LEAST or over:
            lost = burn_in.lost(now.energy / temperature, control.step_size, dim)
        facts = _noted(facts, found, (lost | over) & (temperature == 1), gone)
        facts = facts._replace(restarts=facts.restarts + int(lost.sum()))
        now, control = _restarted(now, control, lost, rng)
        gone = lost
        if over:
            break
    params = KernelParams(np.full(chains, np.median(control.step_size)), 2 * math.sqrt(dim))
    counts = counts._replace(
        gradients=counts.gradients + sum(one.step.error.size for one in found),
        windows=counts.windows + 1,
    )
    blocks = (found[-1].block,)
    return RunState(now, Transform(metric), params, facts, counts, temperature, blocks)


def evaluate(problem: Problem, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Energies and gradients at x on the host."""
    engine = problem.engine
    parts = engine.evaluate(problem.grad_fn, engine.asarray(x, problem.x))
    energy, grad = (np.asarray(engine.to_numpy(part), float) for part in parts)
    return energy, grad


def _noted(facts: Facts, found: list, left: np.ndarray, gone: np.ndarray) -> Facts:
    """With the last chunk's lowest energy, walls, and the places that chains leave.

    A chain leaves one where it is no worse than the others, and hasn't begun again just now.
    """
    last = found[-1]
    facts = with_step(facts, last.step)
    block = last.block
    if not len(block.energy):
        return facts
    energy = last.chains.energy
    here = left & ~gone & (energy <= np.max(energy[~gone], initial=-np.inf))
    if here.any():
        seen = last_visit(block.x[:, here], block.grad[:, here], block.energy[:, here])
        facts = facts._replace(visited=facts.visited.joined(seen))
    return facts


def with_step(facts: Facts, step) -> Facts:
    """With what the steps of a window show."""
    energy = np.where(step.moved, step.energy, np.inf)
    t, chain = np.unravel_index(np.argmin(energy), energy.shape)
    if energy[t, chain] < facts.lowest:
        facts = facts._replace(
            lowest=float(energy[t, chain]), lowest_x=np.array(step.x[t, chain], float)
        )
    return facts._replace(
        divergences=facts.divergences + int(np.sum(~(step.error < DIVERGED))),
        walls=facts.walls or bool(np.isinf(step.energy).any()),
    )


def no_visit(dim: int) -> Visited:
    """No location."""
    return Visited(np.empty((0, dim)), np.empty(0), np.empty(0))


def last_visit(x: np.ndarray, grad: np.ndarray, energy: np.ndarray) -> Visited:
    """Where paths (n, chains, dim) end, each with the mass around its way."""
    mass, error = log_mass(x, grad, energy)
    return Visited(x[-1], energy[-1], mass - error)


def _restarted(chains: ChainState, control: Controller, lost: np.ndarray, rng):
    of = beside(lost, rng)
    return moved_beside(chains, of, rng), Controller(*(part[of] for part in control))


def beside(lost: np.ndarray, rng) -> np.ndarray:
    """For each chain which one it goes on from: itself, or another where it is lost."""
    of = np.arange(len(lost))
    if lost.any():
        of[lost] = rng.choice(np.flatnonzero(~lost), lost.sum())
    return of


def moved_beside(chains: ChainState, of: np.ndarray, rng) -> ChainState:
    """Chains that go on from others, each of those in a direction of its own."""
    new = of != np.arange(len(of))
    u = chains.u.copy()
    u[new] = direction(np, rng.standard_normal((int(new.sum()), u.shape[1])))
    return ChainState(*(part[of] for part in chains))._replace(u=u)
