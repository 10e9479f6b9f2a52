"""Posteriors that people meet, on unconstrained coordinates, with exact or stored moments."""

from collections.abc import Callable

from schuss.targets.posteriors.brownian import brownian
from schuss.targets.posteriors.eight_schools import eight_schools, eight_schools_centred
from schuss.targets.posteriors.gaussian_process import gaussian_process
from schuss.targets.posteriors.hierarchical_regression import hierarchical_regression
from schuss.targets.posteriors.item_response import item_response
from schuss.targets.posteriors.reference import StandardError, reference_error
from schuss.targets.posteriors.rosenbrock import rosenbrock
from schuss.targets.posteriors.sparse_logistic import sparse_logistic
from schuss.targets.posteriors.stochastic_volatility import stochastic_volatility
from schuss.targets.shapes import banana
from schuss.targets.target import Target

POSTERIORS: dict[str, Callable[[], Target]] = {
    "eight-schools": eight_schools,
    "eight-schools-centred": eight_schools_centred,
    "brownian": brownian,
    "rosenbrock": rosenbrock,
    "banana": banana,
    "sparse-logistic": sparse_logistic,
    "hierarchical-regression": hierarchical_regression,
    "stochastic-volatility": stochastic_volatility,
    "gaussian-process": gaussian_process,
    "item-response": item_response,
}

__all__ = [
    "POSTERIORS",
    "StandardError",
    "banana",
    "brownian",
    "eight_schools",
    "eight_schools_centred",
    "gaussian_process",
    "hierarchical_regression",
    "item_response",
    "reference_error",
    "rosenbrock",
    "sparse_logistic",
    "stochastic_volatility",
]
