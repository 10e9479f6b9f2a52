"""Coordinates that are normal given others, against the normal density written out."""

import numpy as np

from schuss.coordinates import Conditional

DIM, GIVEN = 6, (4, 1)


def random_frame():
    """Three forms, of which the last goes with both of what is given."""
    rng = np.random.default_rng(0)
    rest = [i for i in range(DIM) if i not in GIVEN]
    vectors = np.eye(DIM)
    vectors[np.ix_(rest, rest)] += 0.4 * rng.standard_normal((len(rest), len(rest)))
    precision, pull_to, rate = np.zeros((3, 3, DIM))
    precision[:, rest] = rng.uniform(0.1, 1.0, (3, len(rest)))
    pull_to[:, rest] = rng.standard_normal((3, len(rest)))
    precision[0, list(GIVEN)] = 1
    rate[1, 4], rate[2] = -2, 0.5 * (np.arange(DIM) == 1) - (np.arange(DIM) == 4)
    return Conditional(vectors, np.linalg.inv(vectors), precision, pull_to, rate)


def test_mean_and_covariance():
    """x at z = 0 and ∂x/∂z: those of Σ_f φ_f (½ wᵀλ_f w − β_f·w), w = V⁻¹x, with θ given."""
    frame = random_frame()
    rest = [i for i in range(DIM) if i not in GIVEN]
    for theta in ((0.3, -1.2), (2.0, 1.0)):
        z = np.zeros((1, DIM))
        z[0, GIVEN] = theta
        forms = np.exp(frame.rate @ z[0])
        inner = frame.inverted[np.ix_(rest, rest)]
        precision = inner.T @ np.diag((forms @ frame.precision)[rest]) @ inner
        mean = np.linalg.solve(precision, inner.T @ (forms @ frame.pull_to)[rest])
        at = frame.forward(np, z)[0]
        np.testing.assert_allclose(at[rest], mean, rtol=1e-10)
        np.testing.assert_array_equal(at[list(GIVEN)], theta)
        factor = (frame.forward(np, z + np.eye(DIM)[rest]) - at)[:, rest]
        np.testing.assert_allclose(factor.T @ factor, np.linalg.inv(precision), rtol=1e-9)
