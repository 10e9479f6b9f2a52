"""What `schuss.sample` gives back: draws, whether to trust them, and ways to look at them."""

from schuss.results.posterior import Posterior
from schuss.results.stats import Moments, Stats
from schuss.results.summary import Summary
from schuss.results.verdict import NotConverged, Reason, Verdict, judge

__all__ = ["Moments", "NotConverged", "Posterior", "Reason", "Stats", "Summary", "Verdict", "judge"]
