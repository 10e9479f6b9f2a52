"""Logistic regression with a sparse prior on scikit-learn's breast-cancer data.

The form and the size (51) are those of `GermanCreditNumericSparseLogisticRegression` in Inference
Gym: a constant and 24 standardised features, here the first 24 of the 30.
"""

import functools

import numpy as np

from schuss.targets.draws import normal_start
from schuss.targets.posteriors.logistic import sigmoid, softplus
from schuss.targets.posteriors.reference import reference
from schuss.targets.posteriors.table import table
from schuss.targets.target import Array, Namespace, Target

FEATURES = 25


def design() -> np.ndarray:
    """The rows ±(1, features), the sign that of the label: row · β > 0 is a right guess."""
    try:
        from sklearn.datasets import load_breast_cancer
    except ImportError as error:
        raise ImportError(
            "sparse_logistic needs scikit-learn for its data; pip install 'schuss[posteriors]'"
        ) from error
    features, label = load_breast_cancer(return_X_y=True)
    features = np.asarray(features)[:, : FEATURES - 1]
    features = (features - features.mean(axis=0)) / features.std(axis=0)
    rows = np.concatenate([np.ones((len(features), 1)), features], axis=-1)
    return rows * (2.0 * np.asarray(label)[:, None] - 1)


@functools.cache
def sparse_logistic() -> Target:
    """x = (log g, log l_1 … log l_25, w_1 … w_25), β_i = g l_i w_i, g and l_i ~ Gamma(½, ½), w ~ N.

    E = Σ_{s in g, l} (s − log s)/2 + ½ Σ w_i² + Σ_rows log(1 + e^{−row·β}), Jacobians included.
    """
    rows = table(design())

    def beta(xp: Namespace, x: Array) -> Array:
        return xp.exp(x[:, :1] + x[:, 1 : 1 + FEATURES]) * x[:, 1 + FEATURES :]

    def energy(xp: Namespace, x: Array) -> Array:
        scales, w = x[:, : 1 + FEATURES], x[:, 1 + FEATURES :]
        margin = beta(xp, x) @ rows(xp, x).T
        prior = xp.sum(xp.exp(scales) - scales, axis=-1) + xp.sum(w**2, axis=-1)
        return prior / 2 + xp.sum(softplus(xp, -margin), axis=-1)

    def gradient(xp: Namespace, x: Array) -> Array:
        scales, w = x[:, : 1 + FEATURES], x[:, 1 + FEATURES :]
        b, data = beta(xp, x), rows(xp, x)
        pull = -(sigmoid(xp, -(b @ data.T)) @ data)
        along = b * pull
        grow = xp.concat([xp.sum(along, axis=-1, keepdims=True), along], axis=-1)
        size = xp.exp(x[:, :1] + x[:, 1 : 1 + FEATURES])
        return xp.concat([(xp.exp(scales) - 1) / 2 + grow, w + size * pull], axis=-1)

    return Target(
        name="sparse-logistic",
        dim=1 + 2 * FEATURES,
        energy=energy,
        gradient=gradient,
        start=normal_start(1 + 2 * FEATURES),
        truth=reference("sparse-logistic"),
    )
