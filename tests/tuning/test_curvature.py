"""Parabolas from draws whose ridges are known, and ridges that only look like parabolas."""

import numpy as np
import pytest

from schuss.targets.posteriors import rosenbrock
from schuss.tuning import curvature

WIDTH = 0.3


def fitted(x, g):
    return curvature.fit(x, g, np.random.default_rng(0))


def along(follows, ridge, slope, n=800, most=np.inf):
    """Draws and gradients of x_j ~ N(ridge(x_k), WIDTH²) where j follows k < j, else N(0, 1).

    Those that are followed are drawn within ±`most`.
    """
    rng = np.random.default_rng(1)
    x, g = rng.standard_normal((2, n, len(follows)))
    for j, k in enumerate(follows):
        if k is not None:
            x[:, j] = ridge(x[:, k]) + WIDTH * x[:, j]
        elif j in follows:
            x[:, j] = np.clip(x[:, j], -most, most)
        g[:, j] = x[:, j] if k is None else (x[:, j] - ridge(x[:, k])) / WIDTH**2
    pulled = g.copy()
    for j, k in enumerate(follows):
        if k is not None:
            pulled[:, k] -= slope(x[:, k]) * g[:, j]
    return x, pulled


@pytest.mark.parametrize("inside", [np.inf, 1.0])
def test_rosenbrock(inside):
    """b ~ N(a², .1), a ~ N(1, 1): from all draws, and from those with a near its mean alone."""
    target = rosenbrock(10)
    x = target.sample(np.random.default_rng(0), 20_000)
    x = x[(np.abs(x[:, :5] - 1) < inside).all(axis=1)]
    g = target.gradient(np, x)
    frame = fitted(x, g)
    assert frame is not None and len(frame.generations) == 1
    want = np.zeros((10, 10))
    want[5:, :5] = np.eye(5)
    np.testing.assert_allclose(frame.curve, want, atol=0.01)
    np.testing.assert_allclose(frame.follow, 2 * frame.origin * want, atol=0.02)
    assert curvature.loss(x, g, frame) < 0.01
    assert not curvature.wrong(x, g, frame)


@pytest.mark.parametrize(
    ("follows", "generations"),
    [
        ((None, 0, 0, 0, 0), 1),
        ((None, 0, 1, 0), 2),
        ((None, 0, 1, None, 3, 4, None), 2),
    ],
    ids=["star", "lines", "two lines and one alone"],
)
def test_who_follows_whom(follows, generations):
    """x_j ~ N(x_k², .3²), whoever it is, and those who follow may be followed."""
    x, g = along(follows, np.square, lambda a: 2 * a)
    frame = fitted(x, g)
    assert frame is not None and len(frame.generations) == generations
    want = np.zeros((len(follows), len(follows)))
    for j, k in enumerate(follows):
        if k is not None:
            want[j, k] = 1
    np.testing.assert_allclose(frame.curve, want, atol=0.02)
    z = frame.inverse(np, x)
    pulled = frame.pull(np, z, g) * np.where(want.any(axis=1), WIDTH, 1.0) ** 2
    # Gaussian in z, around a place that is left to the sampler.
    np.testing.assert_allclose(pulled - pulled.mean(axis=0), z - z.mean(axis=0), atol=0.1)


@pytest.mark.parametrize(
    ("ridge", "slope"),
    [
        (np.cosh, np.sinh),
        (np.exp, np.exp),
        (lambda a: 2 * np.sin(2 * a), lambda a: 4 * np.cos(2 * a)),
        (lambda a: a**3 / 3, lambda a: a**2),
        (lambda a: 4 * a**2 / (1 + a**2), lambda a: 8 * a / (1 + a**2) ** 2),
    ],
    ids=["cosh", "exp", "sin", "cubic", "saturated"],
)
def test_other_ridges_are_left_alone(ridge, slope):
    assert fitted(*along((None, 0, None, 2), ridge, slope, n=4000)) is None


def test_draws_far_out_count_for_themselves():
    """Within ±2 a parabola is right to .03 over all draws, but not where they are farthest out."""
    x, g = along((None, 0, None, 2), np.cosh, np.sinh, most=2.0)
    assert fitted(x, g) is None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(curvature, "_farthest", lambda losses, followed: 0.0)
        assert fitted(x, g) is not None


def test_nobody_follows_in_a_circle():
    x, g = along((None, 0, None, 2), np.square, lambda a: 2 * a)
    frame = curvature._straight(x)
    frame.curve[0, 1] = 1e-12
    links = curvature._links(x, g, frame)
    assert links[3, 2] and not links[1, 0]


def test_what_was_a_parabola_in_the_middle_is_told_from_farther_out():
    near, far = (along((None, 0, None, 2), np.cosh, np.sinh, most=most) for most in (1.2, 4.0))
    frame = fitted(*near)
    assert frame is not None and not curvature.wrong(*near, frame)
    assert curvature.wrong(*far, frame)


def test_a_parabola_that_cannot_be_fitted_ends_the_search(monkeypatch):
    """Fits that stay where they begin, as those of draws that overflow do."""
    monkeypatch.setattr(curvature, "solve", lambda rows, theta, *given: theta)
    assert fitted(*along((None, 0, None, 2), np.square, lambda a: 2 * a)) is None


def test_draws_that_are_not_finite():
    """They are left out."""
    x, g = along((None, 0, None, 2), np.square, lambda a: 2 * a)
    x[:10], g[10:20] = np.nan, np.inf
    frame = fitted(x, g)
    assert frame is not None and frame.curve[1, 0] == pytest.approx(1, abs=0.01)
