"""The three updates, against many digits."""

import mpmath
import numpy as np
import pytest

from schuss.paper import kick_precision
from schuss.paper.item import Settings

from .running import run


@pytest.mark.parametrize(("angle", "delta"), [(1.0, 0.1), (1e-3, 5.0), (1e-4, 10.0), (0.3, 50.0)])
def test_the_truth_is_that_of_many_digits(angle, delta):
    with mpmath.workdps(50):
        u, e = mpmath.matrix([-mpmath.cos(angle), mpmath.sin(angle)]), mpmath.matrix([1, 0])
        c, s, ch = u[0], mpmath.sinh(delta), mpmath.cosh(delta)
        turned = (u + e * (s + c * ch - c)) / (ch + c * s)
        wanted = float(mpmath.atan2(turned[1], turned[0]))
    assert kick_precision.angle_after(angle, delta) == pytest.approx(wanted, rel=1e-12)


def test_the_forms_are_one_in_double_precision():
    rng = np.random.default_rng(0)
    u, g = rng.standard_normal((2, 50, 2))
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    first, *others = (form(u, g, np.float64(0.3)) for form in kick_precision.FORMS.values())
    for other in others:
        np.testing.assert_allclose(other, first, atol=1e-12)


def test_only_ours_keeps_its_digits_near_minus_e():
    found = run(kick_precision.ITEM, Settings(quick=True))
    near = "within 0.01 rad of −e"
    errors = {name: row[near] for name, row in found["errors"].items()}
    assert errors["ours"] < 1000
    assert all(errors[name] is None or errors[name] > 1e5 for name in ("textbook", "public code"))
    # 15 % of chains stray: with 100 of them fewer than three is a chance of 2e-5.
    assert found["strays"]["public code"]["strayed"] > 0.02
    assert found["strays"]["ours"]["strayed"] == 0
