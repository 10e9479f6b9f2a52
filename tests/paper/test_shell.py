"""Shells of constant energy against quadrature, and the line against a closed form."""

import math

import numpy as np
import pytest

from schuss.paper import shell
from schuss.paper.item import Settings
from schuss.targets import coupled_quartic

from .running import run


def test_shells_are_gibbs_for_esh_and_uniform_for_newton():
    """4.5 standard errors: a false alarm in a hundred thousand seeds."""
    rng = np.random.default_rng(0)
    energy = coupled_quartic().energy(np, shell.on_shell(rng, 1.0, 1, 300_000))
    assert (
        abs(energy.mean() - coupled_quartic().truth.energy)
        < 4.5 * energy.std() / len(energy) ** 0.5
    )
    x = shell.on_shell(rng, 1.0, 0, 300_000)
    below = coupled_quartic().energy(np, x)
    # Under Newton in two dimensions x is uniform where E < c − h.
    line = np.linspace(-shell.REACH, shell.REACH, 400)
    grid = coupled_quartic().energy(np, np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2))
    wanted = np.mean(grid < 0.25) / np.mean(grid < 0.5)
    assert np.mean(below < 0.25) / np.mean(below < 0.5) == pytest.approx(wanted, rel=0.1)


def test_the_time_to_infinity_is_a_gamma_function():
    assert shell.to_infinity(1) == pytest.approx(4**0.25 * math.gamma(0.25) / 4)
    assert shell.to_infinity(2) == pytest.approx(8**0.25 * math.gamma(0.25) / 8)


def test_chains_of_the_plane_turn_and_the_line_never_does():
    found = run(shell.ITEM, Settings(quick=True))
    assert found["line"]["slowest"] > 0
    assert all(row["turned"] == 1 for row in found["plane"])
    heights = found["head_on"]["highest"]
    assert heights == sorted(heights, reverse=True)
    assert "nan" not in shell.ITEM.tell(found)
