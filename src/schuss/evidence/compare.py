"""Two models by their evidence: the log Bayes factor with the error of the difference."""

import dataclasses
import math

from schuss.evidence.estimate import evidence
from schuss.evidence.groups import interval
from schuss.evidence.result import Evidence
from schuss.problem import check_target


@dataclasses.dataclass(frozen=True, repr=False)
class Comparison:
    """log Z₁ − log Z₂: positive where the data speak for the first model."""

    log_bayes_factor: float
    error: float  # standard error
    interval: tuple[float, float]  # 95 %
    first: Evidence
    second: Evidence

    @property
    def converged(self) -> bool:
        """Whether both estimates can be trusted."""
        return self.first.verdict.converged and self.second.verdict.converged

    def __repr__(self) -> str:
        names = [run.name or word for run, word in ((self.first, "first"), (self.second, "second"))]
        if not math.isfinite(self.log_bayes_factor):
            head = f"The log Bayes factor of {names[0]} against {names[1]} is not known"
        else:
            low, high = self.interval
            head = (
                f"log Bayes factor of {names[0]} against {names[1]}: {self.log_bayes_factor:.3f} ± "
                f"{self.error:.3f} (95 %: {low:.3f} to {high:.3f})"
            )
        told = [
            f"  {name}: {run.headline}. {run.verdict}"
            for name, run in zip(names, (self.first, self.second), strict=True)
        ]
        return "\n".join([head + ".", *told])


def compare(first, second, **options) -> Comparison:
    """Compare two models, or two runs of `schuss.evidence` that are there already.

    `options` are those of `schuss.evidence`, the same for both models.
    """
    both = {"first": first, "second": second}
    models = {name: given for name, given in both.items() if not isinstance(given, Evidence)}
    for name, given in models.items():
        check_target(
            name,
            given,
            "a target, a model or a result of schuss.evidence",
            "pass schuss.evidence(energy=…, reference=…)",
        )
    if options and not models:
        raise ValueError(
            f"{', '.join(options)} belongs to a run of schuss.evidence, but first and second are "
            "its results already; leave it out"
        )
    runs = [evidence(given, **options) if name in models else given for name, given in both.items()]
    factor = runs[0].log_z - runs[1].log_z
    variances = [run.error**2 for run in runs]
    error = math.sqrt(sum(variances))
    # Welch and Satterthwaite's degrees of freedom.
    spread = sum(v**2 / run.freedom for v, run in zip(variances, runs, strict=True))
    freedom = sum(variances) ** 2 / spread if spread > 0 and math.isfinite(spread) else 1.0
    return Comparison(factor, error, interval(factor, error, freedom, 0.95), *runs)
