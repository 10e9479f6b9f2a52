"""Weights that turn states of the scaled flow into samples of e^(−E).

In scaled time the flow with force divisor κ visits x in proportion to exp(−(d−1)E/κ), so a
state counts with exp(−(1 − (d−1)/κ)E). Along an exact trajectory E + κr is constant and the
weight is e^((κ−d+1)r): |v| for the paper's κ = d, one for κ = d − 1.
"""


def work(energy, r, dim):
    """W = E + (d−1)r, the one number a state needs in every exact use of the flow."""
    return energy + (dim - 1) * r


def hamiltonian(energy, r, kappa):
    """E + κr, conserved by the flow (Eq. 1 up to a constant for κ = d)."""
    return energy + kappa * r


def log_weight(energy, kappa, dim):
    """The closed form −(1 − (d−1)/κ)E: it doesn't drift, and is the same in all chains."""
    return -(1 - (dim - 1) / kappa) * energy


def log_weight_by_speed(r, kappa, dim):
    """(κ−d+1)r, which is log|v| for the paper's κ = d (Alg. 3)."""
    return (kappa - dim + 1) * r


def jarzynski(reference_energy, energy, r, kappa, dim):
    """Eq. 9 and Alg. 4: E₀(x₀) − E(x₀) + r_t at κ = d, right while the Hamiltonian is conserved."""
    return reference_energy - energy + log_weight_by_speed(r, kappa, dim)


def jarzynski_exact(reference_energy, energy, r, dim):
    """E₀(x₀) − E(x_t) − (d−1)r_t, unbiased for any step size and any κ."""
    return reference_energy - work(energy, r, dim)
