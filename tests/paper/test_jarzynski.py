"""The Jarzynski figure in small: log Z of a Gaussian, with the paper's weights and exact ones."""

import numpy as np
import pytest

from schuss.paper.item import Settings
from schuss.paper.jarzynski import ITEM, log_mean, random_gaussian
from schuss.plotting import style

from .running import run


@pytest.fixture(scope="module")
def result():
    return run(ITEM, Settings(quick=True))


def test_log_mean_against_a_plain_mean():
    logs = np.random.default_rng(0).standard_normal((3, 50))
    value, error = log_mean(logs + 700)
    weights = np.exp(logs)
    assert value == pytest.approx(np.log(weights.mean(axis=1)) + 700, rel=1e-12)
    assert error == pytest.approx(
        weights.std(axis=1, ddof=1) / np.sqrt(50) / weights.mean(axis=1), rel=1e-12
    )


def test_random_gaussian_has_the_eigenvalues_it_should():
    target = random_gaussian(np.random.default_rng(3))
    precision = target.gradient(np, np.eye(3))
    values = 1 / np.linalg.eigvalsh(precision)
    assert np.all((values > 0.1) & (values < 0.2))


def test_estimates_agree_with_the_truth_while_h_is_conserved(result):
    """Within five standard errors at every time, for both kinds of weights."""
    fine = result["runs"]["fine"]
    for form in ("paper", "exact"):
        error = np.abs(np.asarray(fine[form]["log_z"]) - result["log_z"])
        assert np.all(error < 5 * np.asarray(fine[form]["error"]))
    total = np.asarray(fine["energy"]) + np.asarray(fine["kinetic"])
    np.testing.assert_allclose(total, fine["hamiltonian"], rtol=1e-3)
    assert fine["drift"] < 0.05
    lengths = {len(fine[key]) for key in ("steps", "energy", "kinetic", "hamiltonian")}
    assert lengths == {len(fine["exact"]["log_z"])}


@pytest.mark.slow
def test_coarse_steps_spoil_the_papers_weights_only():
    """Full size: the paper's form is off by more than five standard errors, the exact one not."""
    full = run(ITEM, Settings())
    last = {form: full["runs"]["coarse"][form] for form in ("paper", "exact")}
    off = {
        form: (run["log_z"][-1] - full["log_z"]) / run["error"][-1] for form, run in last.items()
    }
    assert off["paper"] > 5
    assert abs(off["exact"]) < 5


def test_pictures_and_words(result, tmp_path):
    with style():
        names = ITEM.draw(result, tmp_path)
    for name in names:
        assert name.startswith(ITEM.name)
        assert 1000 < (tmp_path / name).stat().st_size < 200_000
    assert ITEM.tell(result)
