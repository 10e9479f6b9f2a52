"""Thermostats against what each must conserve or sample."""

import numpy as np
import pytest

from schuss.paper import thermostats
from schuss.paper.item import Settings
from schuss.plotting import style
from schuss.targets import coupled_quartic, isotropic

from .running import run


def test_the_chain_conserves_its_quantity_to_second_order():
    rng = np.random.default_rng(0)
    x, v = rng.standard_normal((2, 20, 2))
    errors = []
    for step in (0.02, 0.01):
        kept = thermostats.nose_hoover_chain(coupled_quartic(), x, v, step, round(2 / step))
        errors.append(np.abs(kept["conserved"] - kept["conserved"][0])[-1].mean())
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.15)


def test_the_langevin_thermostat_samples_a_gaussian():
    """BAOAB has no error in x on a Gaussian; 4.5 standard errors of 4000 chains' variance."""
    rng = np.random.default_rng(1)
    x, v = rng.standard_normal((2, 4000, 2))
    seen = thermostats.langevin(isotropic(2), x, v, 0.5, 60, rng)["x"][-1]
    assert np.mean(seen**2) == pytest.approx(1, abs=4.5 * np.sqrt(2 / 8000))


def test_the_isokinetic_path_is_the_scaled_flow():
    apart = thermostats._isokinetic(0)["d"]
    assert apart[0] < 1e-4 and apart[0] / apart[1] == pytest.approx(4, rel=0.1)


def test_small(tmp_path):
    found = run(thermostats.ITEM, Settings(quick=True))
    assert set(found["heat"]) == set(thermostats.KINDS)
    assert thermostats.best({"a": [1.0, 0.5], "b": None, "c": [2.0, 0.1]}) == ("c", [2.0, 0.1])
    with style():
        assert thermostats.ITEM.draw(found, tmp_path) == ["thermostats.png"]
    assert "nan" not in thermostats.ITEM.tell(found)
