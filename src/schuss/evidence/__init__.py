"""Evidence: log Z that can be trusted."""

from schuss.evidence.compare import Comparison, compare
from schuss.evidence.estimate import evidence
from schuss.evidence.references import Normal, Prior, Uniform
from schuss.evidence.result import Evidence

__all__ = ["Comparison", "Evidence", "Normal", "Prior", "Uniform", "compare", "evidence"]
