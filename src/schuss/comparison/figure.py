"""Curves of a comparison: the error of the second moments and the ESS against gradients."""

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, LogLocator, NullLocator

from schuss.comparison.compare import Comparison
from schuss.comparison.numbers import curve
from schuss.plotting import FAINT, PALETTE, Look, style

BAR = 0.01
LOOKS = {
    "auto": PALETTE["ESH"],
    "unadjusted": Look("#E69F00", "D", (0, (4, 1.5))),
    "nuts": PALETTE["NUTS"],
    "mclmc": PALETTE["NoseHoover"],
    "mams": Look("#882255", "d", (0, (4, 1.5))),
    "nutpie": Look("#8A8A8A", "x", (0, (1, 1))),
    "ula": PALETTE["ULA"],
    "mala": PALETTE["MALA"],
    "hmc": PALETTE["HMC"],
    "esh": Look("#8A6D3B", "p", (0, (1, 1))),
}


def curves(comparison: Comparison) -> Figure:
    """b²max where there is something to hold it against, and ESS; bands are the range of seeds."""
    known = comparison.reference.truth is not None
    kinds = ("b2max", "ess") if known else ("ess",)
    with style():
        drawn = Figure(figsize=(4.6 * len(kinds) + 1.2, 3.8), layout="constrained")
        panels = np.atleast_1d(np.asarray(drawn.subplots(1, len(kinds))))
        for axes, kind in zip(panels, kinds, strict=True):
            _panel(axes, comparison, kind)
        handles, labels = panels[-1].get_legend_handles_labels()
        drawn.legend(handles, labels, loc="outside right center", handlelength=2.6)
        drawn.suptitle(
            f"{comparison.name}, {comparison.dim} dimensions".replace("$", r"\$"), fontsize=10
        )
    return drawn


def _panel(axes, comparison: Comparison, kind: str) -> None:
    for name in comparison.outcomes:
        seen = LOOKS[name.partition(":")[0]]
        x, middle, low, high = curve(comparison, name, kind)
        shown = np.isfinite(middle) & (middle > 0)
        several = len(comparison.outcomes[name]) > 1
        if several:
            axes.fill_between(
                x[shown], low[shown], high[shown], color=seen.colour, alpha=0.12, linewidth=0
            )
        axes.plot(
            x[shown],
            middle[shown],
            color=seen.colour,
            marker=seen.marker,
            linestyle=seen.dash,
            markersize=3.5,
            label=name,
        )
    axes.set(xscale="log", yscale="log", xlabel="gradients, tuning included")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    if kind == "b2max":
        axes.axhline(BAR, color=FAINT, linewidth=0.8, linestyle=(0, (4, 2)))
        axes.set_title("b²max: error of E[x²], lower is better")
        bottom, own = axes.get_ylim()[0], 1 / comparison.reference.ess
        if own > bottom:
            axes.axhspan(bottom, own, color=FAINT, alpha=0.15, linewidth=0)
            axes.set_ylim(bottom)
    else:
        axes.set_title("smallest ESS of x and (x − m)², higher is better")
