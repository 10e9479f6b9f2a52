"""The first step, and steps by how often they are accepted, whose errors grow like ε³."""

import numpy as np
import pytest
from scipy.stats import norm

from schuss.tuning import step_size


def test_acceptance_of_nine_tenths_changes_nothing():
    assert step_size.from_acceptance(0.9, 0.9) == pytest.approx(1, abs=1e-12)
    assert step_size.from_acceptance(0.7, target=0.7) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 3.0])
def test_steps_converge_to_the_acceptance_wanted(epsilon):
    """With a(ε) = 2Φ(−cε³), the acceptance of normal errors, from far above and below."""

    def acceptance(epsilon):
        return 2 * norm.cdf(-0.4 * epsilon**3)

    for _ in range(25):
        epsilon *= step_size.from_acceptance(acceptance(epsilon), 0.9)
    assert acceptance(epsilon) == pytest.approx(0.9, abs=1e-6)
    near = epsilon * 1.1
    assert near * step_size.from_acceptance(acceptance(near), 0.9) == pytest.approx(epsilon)


def test_factors_are_bounded_and_grow_with_the_rate():
    factors = [step_size.from_acceptance(rate, 0.9) for rate in np.linspace(0, 1, 101)]
    assert factors[0] == 0.6 and factors[-1] == 1.6
    assert np.all(np.diff(factors) >= 0)


def test_first_steps():
    """A tenth of d/|g|, and no more than 2.5√d where there is hardly a force."""
    g = np.array([[3.0, 4.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0], [1e-9, 0.0, 0.0, 0.0]])
    np.testing.assert_allclose(step_size.first_step(g), [0.1 * 4 / 5, 5.0, 5.0])
