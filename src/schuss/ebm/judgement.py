"""What speaks against a trained energy, from its history and a few samples."""

import dataclasses
from typing import Any, NamedTuple

import numpy as np
import torch

from schuss.ebm.history import History
from schuss.ebm.scale import LIMIT
from schuss.ebm.uses import diversity

LAST = 0.2
"""Share of the iterations, the last ones, that are judged."""

MOST_GAP, MOST_EXCESS, MOST_FROZEN = 1.0, 0.7, 0.01
MOST_DRIFT, LEAST_DIVERSITY, MOST_KEPT = 3.0, 0.7, 0.95
CHAINS, CALLS, ROUNDS = 100, 5, 15
"""Chains that are judged, calls of the sampler that they go on for, and those from noise."""


class Reason(NamedTuple):
    """A check that failed, and what to do."""

    kind: str
    what: str
    remedy: str


@dataclasses.dataclass(frozen=True)
class Judgement:
    """The checks that failed, what else is worth knowing, and the numbers behind both."""

    reasons: list[Reason]
    notes: list[str]
    numbers: dict[str, float]

    @property
    def headline(self) -> str:
        """The verdict in a word or two."""
        return "Trained" if not self.reasons else "Not trained well"


class Samples(NamedTuple):
    """Data, chains of the buffer, the same after some calls, and samples from noise, or None."""

    data: Any
    buffer: Any
    after: Any
    noise: Any


def kept(before: torch.Tensor, after: torch.Tensor) -> float:
    """Correlation of chains with themselves later, over what they don't have in common."""
    a, b = (x.flatten(1).double() - x.flatten(1).double().mean(0) for x in (before, after))
    return float((a * b).sum() / (a.square().sum() * b.square().sum()).sqrt().clamp(min=1e-300))


def judge(
    history: History,
    samples: Samples,
    energies: dict[str, Any],
    scale: float,
    limit: float = LIMIT,
) -> Judgement:
    """Judge a run; `energies` of each of the samples, (n,), are in units of the network.

    `limit` is that of a step's turn, as in scale.py.
    """
    last = slice(len(history) - max(1, round(LAST * len(history))), None)
    dim = samples.data[0].numel()
    numbers: dict[str, float] = {
        "energy gap per coordinate": scale * float(np.median(history.gap[last])) / dim,
        "turn of a step": float(np.nanmean(history.delta[last])),
        "frozen": float(history.frozen[last].mean()),
        "roll-backs": float(len(history.rollbacks)),
        "diversity of noise": diversity(samples.noise, samples.data),
    }
    if samples.buffer is not None:
        wide = float(np.subtract(*np.percentile(energies["buffer"], [75, 25]))) / 1.349
        apart = float(np.median(energies["noise"]) - np.median(energies["buffer"]))
        numbers |= {
            "diversity of the buffer": diversity(samples.buffer, samples.data),
            f"kept over {CALLS} calls": kept(samples.buffer, samples.after),
            "energy of noise − buffer, in sd": apart / max(wide, 1e-30),
        }
    reasons, notes = [], []
    gap, turn = numbers["energy gap per coordinate"], numbers["turn of a step"]
    if gap < -MOST_GAP:
        reasons.append(
            Reason(
                "chains lag behind",
                f"negatives have {-gap:.2g} more energy for each coordinate than data",
                "train longer, or with more steps or a smaller lr",
            )
        )
    elif gap > MOST_GAP:
        reasons.append(
            Reason(
                "chains are ahead",
                f"data have {gap:.2g} more energy for each coordinate than negatives",
                "train longer, or with a larger batch",
            )
        )
    if turn > limit + MOST_EXCESS:
        reasons.append(
            Reason(
                "steep slopes",
                f"a sampler step turns by δ = {turn:.2g}, so that chains only slide downhill",
                'pass energy_scale="auto", whose loss bounds the slope, or a smaller step_size',
            )
        )
    if numbers["frozen"] > MOST_FROZEN:
        reasons.append(
            Reason(
                "frozen chains",
                f"{100 * numbers['frozen']:.0f} % of chains met a non-finite energy or gradient",
                "look for logarithms, divisions and exponentials in the net",
            )
        )
    late = [r for r in history.rollbacks if r.iteration > (1 - LAST) * len(history)]
    if late:
        reasons.append(
            Reason(
                "diverged lately",
                f"training went back {len(history.rollbacks)} times, last at iteration "
                f"{late[-1].iteration}: {late[-1].cause}",
                "pass a smaller lr",
            )
        )
    elif history.rollbacks:
        notes.append(f"Training went back {len(history.rollbacks)} times: {history.setbacks[-1]}")
    drift = numbers.get("energy of noise − buffer, in sd", 0.0)
    if abs(drift) > MOST_DRIFT:
        side = "more" if drift > 0 else "less"
        reasons.append(
            Reason(
                "noise and buffer apart",
                f"samples from noise have {side} energy than the buffer's chains, by "
                f"{abs(drift):.2g} of their standard deviations",
                "sample with more rounds, or train with a larger reinit of the buffer"
                if drift > 0
                else "train with a larger reinit of the buffer, or longer",
            )
        )
    for name, whose in (("the buffer", "the buffer's chains"), ("noise", "samples from noise")):
        ratio = numbers.get(f"diversity of {name}", 1.0)
        if ratio < LEAST_DIVERSITY:
            reasons.append(
                Reason(
                    "samples alike",
                    f"{whose} are {ratio:.2f} times as far from each other as data are",
                    "train with a larger buffer, a larger reinit or more data_noise",
                )
            )
    if numbers.get(f"kept over {CALLS} calls", 0.0) > MOST_KEPT:
        notes.append(
            "Chains of the buffer stay where they are: new samples come from chains that begin anew"
        )
    return Judgement(reasons, notes, numbers)
