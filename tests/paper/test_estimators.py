"""Algorithms 1 to 3 against the library's paths and against their own definitions."""

import numpy as np

from schuss.algorithms import ESH
from schuss.paper import estimators
from schuss.paper.item import Settings
from schuss.targets import mog
from schuss.trajectory import trajectory

from .running import run

RNG = np.random.default_rng(0)


def test_algorithm_1_is_the_library_path():
    x, u = RNG.standard_normal((2, 4, 2))
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    mine, speeds = estimators.algorithm_1(mog(), x, u, 0.05, 30, literal=False)
    path = trajectory(mog(), init=x, velocity=u, sampler=ESH(step_size=0.05), steps=30)
    np.testing.assert_allclose(mine, path.x, atol=1e-9)
    np.testing.assert_allclose(speeds, path.r, atol=1e-9)
    _, printed = estimators.algorithm_1(mog(), x, u, 0.05, 30, literal=True)
    assert np.abs(printed - path.r).max() > 0.1


def test_a_random_time_at_constant_speed_is_uniform():
    """Kolmogorov's distance of 20,000 draws is above 0.0138 once in a thousand seeds."""
    x = np.linspace(0, 1, 11)[:, None, None]
    drawn = estimators.by_time(np.random.default_rng(1), x, np.zeros((11, 1)), 20_000)
    seen = np.sort(drawn[:, 0, 0])
    assert np.abs(seen - (np.arange(len(seen)) + 0.5) / len(seen)).max() < 0.0138


def test_reservoirs_keep_states_by_weight():
    """4.5 standard errors of a share of 10,000 draws."""
    r = np.log(np.asarray([1.0, 2.0, 5.0]))[:, None]
    x = np.arange(3.0)[:, None, None]
    kept = estimators.by_reservoir(np.random.default_rng(2), x, r, 10_000)[:, 0, 0]
    shares = np.bincount(kept.astype(int), minlength=3) / 10_000
    wanted = np.asarray([1, 2, 5]) / 8
    assert np.all(np.abs(shares - wanted) < 4.5 * np.sqrt(wanted * (1 - wanted) / 10_000))


def test_small():
    found = run(estimators.ITEM, Settings(quick=True))
    assert found["algorithm_1"]["as printed"] > 20 * found["algorithm_1"]["put right"]
    assert "nan" not in estimators.ITEM.tell(found)
