"""A `Posterior` as ArviZ knows it."""

import json
import warnings
from typing import TYPE_CHECKING

import numpy as np

from schuss.results.stats import DIVERGED

if TYPE_CHECKING:
    from schuss.results.posterior import Posterior


def convert(post: "Posterior", resample: bool | None):
    """InferenceData, or a DataTree from ArviZ 1.0, of a posterior with draws."""
    if post.x is None:
        raise ValueError(
            "to_arviz needs draws, but only moments were kept; sample with keep='draws'"
        )
    if resample and post.weights is None:
        raise ValueError("resample is for weighted draws, and these have no weights; leave it out")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        import arviz
    weighted = post.weights is not None
    again = weighted and resample is not False
    index = systematic(np.asarray(post.weights)) if again else None

    def pick(values: np.ndarray) -> np.ndarray:
        if index is None:
            return values
        return np.take_along_axis(values, index.reshape(*index.shape, *[1] * (values.ndim - 2)), 1)

    groups = {
        "posterior": {name: pick(np.asarray(values)) for name, values in post.named.items()},
        "sample_stats": {
            name: pick(np.asarray(values)) for name, values in _statistics(post).items()
        },
    }
    if weighted and not again:
        groups["sample_stats"]["weight"] = np.asarray(post.weights)
    attributes = _attributes(post) | {"resampled": int(again)}
    labels = {
        "coords": {name: list(values) for name, values in post.coords.items()},
        "dims": {name: list(values) for name, values in post.dims.items()},
    }
    if int(arviz.__version__.split(".")[0]) >= 1:
        data = arviz.from_dict(groups, **labels)
        data.attrs.update(attributes)
        data["posterior"].attrs.update(attributes)
        return data
    data = arviz.from_dict(**groups, **labels, attrs=attributes)
    data.posterior.attrs.update(attributes)
    return data


def systematic(weights: np.ndarray) -> np.ndarray:
    """For each chain of `weights` (chains, draws), as many indices as draws, n wᵢ/Σw of each i.

    The counts are rounded by systematic resampling at the middle of each stratum, so that the same
    draws come out every time.
    """
    chains, draws = weights.shape
    total = weights.sum(axis=1, keepdims=True)
    cumulative = np.cumsum(weights, axis=1) / np.where(total > 0, total, 1.0)
    points = (np.arange(draws) + 0.5) / draws
    rows = [np.searchsorted(cumulative[c], points) for c in range(chains)]
    chosen = np.minimum(np.stack(rows), draws - 1)
    return np.where(total > 0, chosen, np.arange(draws))


def _statistics(post: "Posterior") -> dict[str, np.ndarray]:
    """Under ArviZ's names."""
    stats = post.stats
    found = {"lp": -np.asarray(stats.energy)}
    diverging = np.zeros(np.shape(stats.energy), bool)
    if stats.energy_error is not None:
        found["energy_error"] = np.asarray(stats.energy_error)
        diverging = ~(found["energy_error"] < DIVERGED)
    if stats.acceptance is not None:
        found["acceptance_rate"] = np.asarray(stats.acceptance)
    if stats.adapting is not None:
        found["adapting"] = np.asarray(stats.adapting)
    return found | {"diverging": diverging}


def _attributes(post: "Posterior") -> dict:
    from importlib.metadata import PackageNotFoundError, version

    try:
        release = version("schuss")
    except PackageNotFoundError:
        release = "unknown"
    stats = post.stats
    return {
        "inference_library": "schuss",
        "inference_library_version": release,
        "sampler": stats.sampler,
        "seed": int(stats.seed),
        "engine": stats.engine,
        "exact": int(stats.exact),
        "sampling_time": float(sum(stats.seconds.values())),
        "gradients": json.dumps({name: int(count) for name, count in stats.gradients.items()}),
        "converged": int(post.verdict.converged),
        "verdict": str(post.verdict),
    }
