"""Small densities with known moments, each one function: it is compiled once."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import polygamma, psi

import schuss

SHAPES = np.array([0.7, 1.0, 2.0])
"""x_i = log of a Gamma(a_i) variable: skewed, with light tails to the right."""

MEAN = psi(SHAPES)
SECOND = polygamma(1, SHAPES) + MEAN**2
ENERGY = float(np.sum(SHAPES * (1 - MEAN)))


def energy(x):
    """Σ e^x − a x."""
    # A NumPy array here would be taken for one of 64 bits by JAX in later runs with 32 bits.
    return jnp.sum(jnp.exp(x) - jnp.asarray(SHAPES.tolist(), x.dtype) * x)


def logdensity(x):
    return -energy(x)


def value_and_grad(x):
    """The same for NumPy, for chains."""
    e = np.exp(x)
    return np.sum(e - SHAPES * x, axis=-1), e - SHAPES


def quietly(*args, **given):
    """`schuss.sample` of the energy above, unless told otherwise; a verdict may be bad."""
    kinds = {"energy", "logdensity", "value_and_grad"}
    if not args and not kinds & given.keys():
        given["energy"] = energy
    if not args:
        given.setdefault("init", np.zeros(3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", schuss.NotConverged)
        return schuss.sample(*args, **({"progress": False} | given))


def sigmas(values, truth):
    """Standard errors between a mean over (chains, draws) and the truth, by the chains' scatter."""
    means = values.mean(axis=1)
    error = means.std(axis=0, ddof=1) / len(means) ** 0.5
    return np.abs(means.mean(axis=0) - truth) / error, error


assert not jax.config.jax_enable_x64
