"""What exact samples turn into, against quadrature."""

import numpy as np
import pytest

from schuss.paper import stationarity
from schuss.paper.item import Settings
from schuss.plotting import style
from schuss.targets import coupled_quartic

from .running import run


def tempered(temperature):
    """E[E] under e^(−E/T) on a grid."""
    line = np.linspace(-7, 7, 801)
    energy = coupled_quartic().energy(np, np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2))
    weight = np.exp(-energy / temperature)
    return (weight * energy).sum() / weight.sum()


def test_the_stationary_density_has_temperature_two():
    assert pytest.approx(tempered(2.0), abs=2e-4) == stationarity.TEMPERED
    assert coupled_quartic().truth.energy == pytest.approx(tempered(1.0), abs=2e-4)


def test_the_second_derivative_is_what_leads_away(tmp_path):
    """d²E[E]/dt² = E[uᵀHu − |g|²(1 − 1/d)/d] at t = 0 by the equations of motion, on a grid.

    With u' = −(I − uuᵀ)g/d: d/dt (u·g) = uᵀHu − gᵀ(I − uuᵀ)g/d, whose mean over u is
    tr H/d − |g|²(d − 1)/d². Exact samples have E[tr H] = E[|g|²], so it is E[|g|²]/d².
    """
    found = run(stationarity.ITEM, Settings(quick=True))
    line = np.linspace(-6, 6, 601)
    x = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    weight = np.exp(-coupled_quartic().energy(np, x))
    square = np.sum(coupled_quartic().gradient(np, x) ** 2, axis=1)
    wanted = (weight * square).sum() / weight.sum() / 4
    first, second = found["derivative"]["values"]
    errors = found["derivative"]["errors"]
    # 4.5 standard errors, and the fit's own bias of the fourth order.
    assert abs(second - wanted) < 4.5 * errors[1] + 0.15
    assert abs(first) < 4.5 * errors[0]
    drift = found["drift d"]
    assert drift["late"] - found["truth"] > 4.5 * drift["error"]
    other = found["drift d − 1"]
    assert abs(other["late"] - found["truth"]) < 4.5 * other["error"]
    with style():
        assert stationarity.ITEM.draw(found, tmp_path) == ["stationarity.png"]
    assert "nan" not in stationarity.ITEM.tell(found)
