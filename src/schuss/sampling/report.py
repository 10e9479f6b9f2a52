"""One line that says where a run is: phase, draws, gradients a second, worst R-hat, time left."""

import math

from schuss.sampling.state import RunState, rows
from schuss.sampling.stopping import Clock, StoppingRule


def line(state: RunState, rule: StoppingRule, clock: Clock) -> str:
    """The phase, draws, gradients, convergence, and the time left."""
    chains, gradients = len(state.chains.energy), state.counts.gradients
    parts = [f"{state.phase:<8}"]
    made = rows(state.settled_blocks) * state.thin
    parts.append(f"{made}" + (f"/{rule.draws}" if rule.draws else "") + f" draws × {chains}")
    parts.append(f"{gradients:,} gradients, {gradients / max(clock.total, 1e-9):,.0f}/s")
    if math.isfinite(state.mixing.rhat):
        parts.append(f"R-hat {state.mixing.rhat:.3f}  ESS {state.mixing.ess:.0f}")
    left = remaining(state, rule, clock)
    if left is not None:
        parts.append(f"{left:.0f} s left")
    return "  ".join(parts)


def remaining(state: RunState, rule: StoppingRule, clock: Clock) -> float | None:
    """Seconds left, where they can be told."""
    if rule.seconds is not None:
        return max(rule.seconds - clock.total, 0.0)
    if rule.gradients is not None:
        return clock.total * max(rule.gradients / max(state.counts.gradients, 1) - 1, 0.0)
    wanted = rule.wanted_ess(len(state.chains.energy))
    if not state.mixing.ess > 0 or len(state.history) < 2:
        return None
    spent = sum(clock.seconds.get(phase, 0.0) for phase in ("adapting", "sampling"))
    return spent * max(wanted / state.mixing.ess - 1, 0.0)
