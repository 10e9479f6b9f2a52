"""Movies: places as bytes, coverage of the modes, and the files."""

import json

import numpy as np
import pytest
from PIL import Image

from schuss import targets
from schuss.paper import movies
from schuss.paper.item import Settings
from schuss.plotting import style


@pytest.fixture(scope="module")
def quick():
    done = []
    return movies.compute(Settings(quick=True), done.append), done


def test_places_survive_to_half_a_level_and_those_outside_are_left_out():
    window = ((-2.0, 2.0), (0.0, 10.0))
    plane = np.random.default_rng(0).uniform((-2.5, -1), (2.5, 11), (3, 50, 2))
    back = movies.unpack(movies.pack(plane, window), 3, window)
    low, high = np.array(window).T
    inside = np.all((plane >= low) & (plane <= high), axis=-1)
    assert np.isnan(back[~inside]).all() and inside.any() and not inside.all()
    assert np.all(np.abs(back - plane)[inside] <= (high - low) / 508 + 1e-12)


def test_occupancy_of_one_mode_and_of_exact_samples():
    """7000 samples in 8 bins have a total variation of .012 ± .003."""
    one = movies._occupancy(targets.mog_prior().start(np.random.default_rng(0), 10)[None])
    assert one == [0.875]
    angles = np.deg2rad([-10.0, 10.0])
    beside = np.stack([np.cos(angles), np.sin(angles)], axis=-1)[None] / 2
    assert movies._occupancy(beside) == [0.875]
    draw = targets.mog().sample
    assert draw is not None
    (exact,) = movies._occupancy(draw(np.random.default_rng(0), 7000)[None])
    assert exact < 0.03


def test_quick_movies_are_complete_drawn_and_told(quick, tmp_path):
    result, done = quick
    assert len(done) == movies.parts(Settings(quick=True))
    assert len(json.dumps(result, allow_nan=False)) < 300_000
    for title, movie in movies.MOVIES.items():
        assert tuple(result["movies"][title]) == movie.names
    with style():
        names = movies.draw(result, tmp_path / "new")
    assert len(names) == 6
    for name in names:
        assert (tmp_path / "new" / name).stat().st_size < 200_000
        if name.endswith(".gif"):
            with Image.open(tmp_path / "new" / name) as picture:
                assert picture.n_frames == len(result["gradients"])
    assert "| ESH-leap-orig 0.01 |" in movies.tell(result)


@pytest.mark.slow
def test_esh_spreads_fastest():
    result = movies.compute(Settings(), lambda done: None)
    assert len(json.dumps(result, indent=1)) < 300_000
