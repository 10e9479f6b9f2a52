"""Figure 1."""

import json

import numpy as np
import pytest

from schuss.paper import trajectories
from schuss.paper.item import Settings
from schuss.plotting import style


@pytest.fixture(scope="module")
def quick():
    done = []
    return trajectories.compute(Settings(quick=True), done.append), done


def test_paths_begin_at_four_modes_and_esh_steps_are_all_as_long(quick):
    result, done = quick
    assert len(done) == trajectories.parts(Settings(quick=True))
    paths = {name: np.asarray(path["x"]) for name, path in result["paths"].items()}
    starts = np.array([x[0] for x in paths.values()])
    np.testing.assert_allclose(np.linalg.norm(starts, axis=1), 0.5, atol=1e-4)
    assert len(np.unique(starts, axis=0)) == 4
    np.testing.assert_allclose(starts[0], (0, 0.5), atol=1e-4)
    lengths = np.linalg.norm(np.diff(paths["ESH-leap"], axis=0), axis=1)
    np.testing.assert_allclose(lengths, 0.1, atol=3e-4)
    json.dumps(result, allow_nan=False)


def test_a_mode_counts_when_a_chain_comes_near():
    centres = np.array([[0.0, 0.0], [1.0, 0.0]])
    x = np.array([[[0.0, 0.0]], [[0.6, 0.0]], [[0.9, 0.0]]])
    distances = np.linalg.norm(x[:, :, None] - centres, axis=-1)
    np.testing.assert_array_equal(trajectories._within(distances)[:, 0], [0, 0, 1])


def test_esh_visits_the_most_modes_and_the_picture_is_there(quick, tmp_path):
    result, _ = quick
    with style():
        names = trajectories.draw(result, tmp_path / "new")
    assert all((tmp_path / "new" / name).stat().st_size < 200_000 for name in names)
    assert trajectories.tell(result)
