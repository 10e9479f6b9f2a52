"""Energy errors by hand and on numbers of known variance."""

import numpy as np
import pytest

from schuss.diagnostics import energy_error_variance, hamiltonian_error


def test_hamiltonian_error_by_hand():
    got = hamiltonian_error([[1.0, 10.0], [2.0, 8.0], [0.0, 14.0]])
    assert list(got.per_chain) == [1, 3]
    assert list(got.over_time) == [0, 1.5, 2.5]
    assert got.mean == 2
    assert got.non_finite == 0


def test_hamiltonian_error_leaves_out_what_is_not_finite():
    got = hamiltonian_error([[1.0, 0.0, np.nan], [3.0, np.inf, 1.0], [5.0, np.nan, 1.0]])
    assert got.per_chain[0] == 3
    assert np.isnan(got.per_chain[1:]).all()
    assert list(got.over_time) == [0, 2, 4]
    assert got.mean == 3
    assert got.non_finite == 4


def test_variance_per_dimension():
    """A variance from 1e5 normal numbers is good to √(2e-5) = .45 %; the bound is 5 times that."""
    errors = 3 + 0.2 * np.random.default_rng(0).normal(size=(1000, 100))
    errors[5, :3] = np.nan, np.inf, -np.inf
    got = energy_error_variance(errors, 10)
    assert got.eevpd == pytest.approx(0.004, rel=0.0225)
    assert (got.finite, got.non_finite) == (99_997, 3)


def test_nothing_finite():
    got = energy_error_variance([np.nan, 1.0], 2)
    assert np.isnan(got.eevpd)
    assert (got.finite, got.non_finite) == (1, 1)


def test_bad_input():
    with pytest.raises(ValueError, match="dim must be at least 1, got 0"):
        energy_error_variance([1.0, 2.0], 0)
    with pytest.raises(ValueError, match=r"h must have shape \(draws, chains\)"):
        hamiltonian_error([1.0, 2.0])
    with pytest.raises(ValueError, match="at least 2 draws"):
        hamiltonian_error([[1.0, 2.0]])
