"""Volumes of maps on spheres: determinants between orthonormal bases of tangent spaces."""

import numpy as np


def across(u):
    """Orthonormal vectors across u, (d, d − 1)."""
    return np.linalg.svd(np.asarray(u)[None])[2][1:].T


def log_volume(jacobian, before, after):
    """log|det| of a map with the given Jacobian, between the spaces that two bases span."""
    return np.linalg.slogdet(after.T @ np.asarray(jacobian) @ before)[1]


def beside(first, second):
    """A basis of the product of two spaces."""
    (p, q), (r, s) = first.shape, second.shape
    return np.block([[first, np.zeros((p, s))], [np.zeros((r, q)), second]])
