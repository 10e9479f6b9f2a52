"""Modes that chains were in and left are told; lines with two modes are sampled."""

import warnings

import jax.numpy as jnp
import numpy as np
import pytest

import schuss
from schuss.sampling.result import _missed_mass
from schuss.sampling.state import Facts, Visited
from schuss.tuning.local_mass import log_mass

pytestmark = pytest.mark.statistics

DIM = 20


def two_modes(size):
    """Of equal mass: one of sd 1, and one of that size, eight away."""

    def logdensity(x):
        wide = -0.5 * jnp.sum(x**2)
        narrow = -0.5 * jnp.sum((x - 8 * jnp.eye(DIM)[0]) ** 2) / size**2 - DIM * jnp.log(size)
        return jnp.logaddexp(wide, narrow)

    return logdensity


def starts(size, count):
    """So many of four chains in the narrow mode."""
    x = np.random.default_rng(1).standard_normal((4, DIM))
    x[4 - count :] = x[4 - count :] * size + 8 * np.eye(DIM)[0]
    return x


def of_two_modes(size, count):
    return schuss.sample(
        logdensity=two_modes(size), init=starts(size, count), gradients=8000, progress=False
    )


@pytest.mark.parametrize("size", [0.1, 0.15])
def test_a_chain_that_leaves_a_mode(size):
    """Energies of the wide mode are far above those of three chains, and its share is 1 to 1."""
    with pytest.warns(schuss.NotConverged, match="a place that the draws don't reach"):
        run = of_two_modes(size, 3)
    assert np.all(run.x[..., 0] > 6) and run.stats.restarted >= 1
    assert run.stats.left_behind == pytest.approx(1, abs=0.3)


@pytest.mark.parametrize("size", [0.15, 0.3, 0.4])
def test_a_chain_that_is_alone_in_a_mode_stays_there(size):
    """Steps of the first windows are too long for it, so that it doesn't move."""
    with pytest.warns(schuss.NotConverged, match="sample different regions"):
        run = of_two_modes(size, 1)
    assert np.all(run.x[:3, :, 0] < 6) and np.all(run.x[3, :, 0] > 6)
    assert run.stats.left_behind < 0.01


@pytest.mark.parametrize(("lower", "share"), [(True, 1.0), (False, 0.0)])
def test_a_narrow_mode_amid_a_broad_one(lower, share):
    """N(0, I) drawn from, and within 0.03 of the middle as much again: no further out, but lower.

    A place of the same mass that is as high as the draws may be one of theirs.
    """
    x = np.random.default_rng(2).standard_normal((500, 4, 2))
    kept = {"x": x, "grad": x, "energy": (x**2).sum(axis=-1) / 2}
    place = np.random.default_rng(3).standard_normal((8, 2)) * 0.03
    energy = (place**2).sum(axis=-1) / 2 / 0.03**2 + 2 * np.log(0.03)
    mass, error = log_mass(place, place / 0.03**2, energy)
    at = energy[-1:] if lower else np.array([1.0])
    visited = Visited(place[-1:], at, np.array([mass - error]))
    facts = Facts(np.zeros(2), 0.0, np.zeros(2), visited)
    assert _missed_mass(facts, kept) == pytest.approx(share, abs=0.1)


@pytest.mark.parametrize("kind", ["gaussian", "centred", "mode"])
def test_nothing_was_left_behind(kind):
    """Also where chains climb out of the neck that the mode of a centred hierarchy is."""
    target = schuss.targets.get("eight-schools-centred")
    init = None
    if kind == "gaussian":
        target = schuss.targets.isotropic(DIM)
    if kind == "mode":
        init = np.tile([4.0, -18.0] + [4.0] * (target.dim - 2), (4, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", schuss.NotConverged)
        run = schuss.sample(target, init=init, progress=False, gradients=20_000)
    assert run.stats.left_behind < 0.01


def test_a_line_with_two_modes():
    """0.8 N(0, 1) + 0.2 N(12, 1) from a single point; 0.06 is four errors of 40 crossings."""

    def logdensity(x):
        return jnp.logaddexp(jnp.log(0.8) - 0.5 * x[0] ** 2, jnp.log(0.2) - 0.5 * (x[0] - 12) ** 2)

    run = schuss.sample(logdensity=logdensity, init=np.zeros(1), progress=False)
    assert run.verdict.converged
    assert abs((run.x > 6).mean() - 0.2) < 0.06
