"""Independent answers: a posterior by hand, Jacobians by differences, integrals by sums."""

import itertools

import numpy as np
import scipy.stats as st

from schuss.adapters.over import over

EFFECTS = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
SCHOOLS = ["Choate", "Deerfield", "Andover", "Exeter", "Hotchkiss", "Lawrence", "Paul", "Hermon"]


def eight_schools(x):
    """log p of (μ, log τ, z): μ ~ N(0, 5²), τ ~ C⁺(5), z ~ N(0, 1), y ~ N(μ + τ z, σ²)."""
    mu, log_tau, z = x[..., 0], x[..., 1], x[..., 2:]
    tau = np.exp(log_tau)
    theta = mu[..., None] + tau[..., None] * z
    return (
        st.norm.logpdf(mu, 0, 5)
        + st.halfcauchy.logpdf(tau, 0, 5)
        + log_tau
        + st.norm.logpdf(z).sum(-1)
        + st.norm.logpdf(EFFECTS, theta, ERRORS).sum(-1)
    )


def differences(function, x, step=1e-5):
    """∂f/∂x by central differences: (…, dim) → values (…, dim, *shape of a value)."""
    moves = step * np.eye(x.shape[-1])
    up, down = function(x[..., None, :] + moves), function(x[..., None, :] - moves)
    return (up - down) / (2 * step)


def log_jacobian(model, coordinates, x):
    """log |∂ coordinates(values)/∂x| at positions (n, dim)."""

    def place(x):
        flat = x.reshape(-1, 1, x.shape[-1])
        return coordinates(model.constrain(flat))[:, 0].reshape(*x.shape[:-1], -1)

    return np.linalg.slogdet(differences(place, x))[1]


def integral(log_density, width, points, dim):
    """∫ e^{log p} over a box around 0, by sums over a grid."""
    axis = np.linspace(-width, width, points)
    grid = np.array(list(itertools.product(axis, repeat=dim)))
    return np.exp(over(log_density)(grid)).sum() * (axis[1] - axis[0]) ** dim
