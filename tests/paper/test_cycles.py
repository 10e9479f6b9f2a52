"""The ESS of a circle, which has a closed form."""

import math

import numpy as np
import pytest

from schuss.paper import cycles
from schuss.paper.item import Settings

from .running import run


def test_the_circle_is_an_orbit_and_its_ess_that_of_a_cosine():
    """x = √2 cos φ has the autocovariance cos ωs, which is cut where it falls to 0.05."""
    found = cycles._measure(cycles._flows()[0], 20, 500, None, 0)
    turn = cycles.STEP / math.sqrt(2)
    lags = np.arange(1, cycles.STEPS)
    rho = np.cos(turn * lags)
    first = np.argmax(rho <= 0.05)
    total = np.sum((1 - lags[:first] / cycles.STEPS) * rho[:first])
    wanted = 1 / (1 + 2 * total)
    assert found["ess"] == pytest.approx(wanted, rel=0.1)
    assert found["spread"] < 0.05


def test_small():
    found = run(cycles.ITEM, Settings(quick=True))
    rows = {row["flow"]: row for row in found["rows"] if not row["refreshed"]}
    assert rows["circle on ½|x|²"]["ess"] > rows["½|x|²"]["ess"]
    assert "nan" not in cycles.ITEM.tell(found)
