"""Samplers on one target at equal cost in gradients, judged alike."""

from schuss.comparison.compare import Comparison, compare
from schuss.comparison.outcome import Outcome
from schuss.comparison.samplers import SAMPLERS

__all__ = ["SAMPLERS", "Comparison", "Outcome", "compare"]
