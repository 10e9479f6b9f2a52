"""The neural items: what they compute can be drawn and told, and places stay out of results."""

import pathlib

import numpy as np
import pytest
from ebm.images import stripes
from ebm.test_image_runs import TINY

from schuss.ebm import jarzynski_runs, joint_runs, toy, weighted_buffer
from schuss.paper import ITEMS, NEURAL, image_distances, persistent_ebm
from schuss.paper.claim import judged
from schuss.paper.claims import section_3_neural
from schuss.paper.item import Settings
from schuss.plotting import style

from .running import run

BY_NAME = {item.name: item for item in NEURAL}
QUICK = Settings(quick=True)


def shown(item, result, folder):
    with style():
        pictures = item.draw(result, folder)
    assert pictures and all((folder / name).stat().st_size > 1000 for name in pictures)
    text = item.tell(result)
    assert "nan" not in text


def test_names_are_those_of_the_files():
    names = [item.name for item in (*ITEMS, *NEURAL)]
    assert len(set(names)) == len(names)
    assert set(BY_NAME) == {
        "toy_ebm",
        "digits_ebm",
        "mnist_ebm",
        "cifar_ebm",
        "cifar_jarzynski",
        "weighted_buffer",
        "jem",
    }


def test_places_are_no_part_of_a_result():
    given = Settings(seed=3, data=pathlib.Path("a"), work=pathlib.Path("b"))
    assert given.without_places() == Settings(seed=3)


def test_toy(tmp_path, monkeypatch):
    train = toy.train_toy

    def short(name, method, seeds, iterations, **options):
        options["advance"] = lambda done, tell=options["advance"]: tell(done)
        return train(name, method, seeds, 10, **options)

    monkeypatch.setattr(toy, "train_toy", short)
    item = BY_NAME["toy_ebm"]
    result = run(item, QUICK)
    assert {(r["data"], r["sampler"], r["seed"]) for r in result["rows"]} == {
        (d, s, k) for d in ("mixture", "rings") for s in ("ESH", "ULA") for k in (0, 1)
    }
    assert all({"gradients", "distance"} <= set(row) for row in result["rows"])
    shown(item, result, tmp_path)


def test_boundaries_are_crisp_where_the_distance_is_half_on_both():
    def rows(mixture, rings):
        values = {("mixture", "ESH"): mixture, ("rings", "ESH"): rings}
        return {
            "rows": [
                {"data": d, "sampler": s, "distance": values.get((d, s), 1.0)}
                for d in ("mixture", "rings")
                for s in ("ESH", "ULA")
            ]
        }

    claim = section_3_neural.crisp_boundaries
    for near, expected in (
        ((0.4, 0.5), "holds"),
        ((0.4, 0.6), "holds in part"),
        ((1.1, 1.2), "does not hold"),
    ):
        assert judged(claim, {"toy_ebm": rows(*near)})["verdict"] == expected


def test_images(tmp_path, monkeypatch):
    monkeypatch.setattr("schuss.ebm.persistent.load_images", lambda recipe, path: stripes())
    monkeypatch.setattr("schuss.ebm.recipes.smaller", lambda recipe: TINY)
    item = BY_NAME["cifar_ebm"]
    result = run(item, QUICK)
    for row in result["rows"]:
        assert {"data", "sampler", "seed", "gradients", "distance"} <= set(row)
    assert result["long"]["ensemble"]["members"] == 2
    shown(item, result, tmp_path)
    del result["long"]
    shown(item, result, tmp_path)


def rows(esh, ula):
    """Runs of three seeds whose distances are these, and a tenth more from noise."""
    return [
        {"sampler": sampler, "distance": value, "distance_from_noise": 1.1 * value}
        for sampler, found in (("ESH", esh), ("ULA", ula))
        for value in found
    ]


def test_images_are_told_apart_beyond_the_scatter():
    apart = image_distances.told_apart({"rows": rows((4.0, 4.1, 4.2), (5.0, 5.1, 5.2))})
    assert apart.count("beyond the scatter") == 2
    close = image_distances.told_apart({"rows": rows((4.0, 5.1, 6.2), (4.3, 5.4, 6.5))})
    assert close.count("within the scatter") == 2


def test_place_on_the_scale():
    marks = {"floor": 1.0, "one class": 16.0, "ceiling": 21.0}
    result = {"rows": rows((5.0, 5.0), (6.0, 6.0)), "marks": {"distances": {"10": marks}}}
    told = image_distances.where(result)
    assert "class lie at 75%" in told and "ESH at 20%, ULA at 25%, and" in told


def test_other_ruler():
    """The ruler beside has its own marks, and a longer run is compared where it was measured."""
    shown = rows((5.0, 5.2, 5.1), (6.0, 6.2, 6.1))
    for row in shown:
        row |= {"beside": {"distance": 30.0, "distance_from_noise": 40.0}, "gradients": 10}
    marks = {"floor": 1.0, "one class": 16.0, "ceiling": 21.0}
    other = {"floor": 0.0, "one class": 50.0, "ceiling": 100.0}
    result = {"rows": shown, "marks": {"distances": {"10": marks}}}
    result["beside"] = {"distances": {"10": other}, "accuracy": 0.9}
    long = {"distance": 20.0, "distance_from_noise": 10.0, "gradients": 90}
    long |= {"marks": {"distances": {"10": other | {"ceiling": 101.0}}}}
    long["ensemble"] = {"members": 5, "distance_from_noise": 9.0}
    where = image_distances.where(result | {"long": long})
    assert "By the other ruler" in where and "ULA at 30%, the long run at 20%" in where
    told = image_distances.long_words(result | {"long": long})
    assert "by that other ruler, with its buffer at 20.00, nearer than the short runs" in told
    beside = image_distances.beside_words(result)
    assert "at 30.00 and 30.00 and the samples from noise at 40.00 and 40.00" in beside
    long["marks"] = result["marks"]
    assert "no nearer than" in image_distances.long_words(result | {"long": long})
    long["beside"] = {"distance": 50.0, "distance_from_noise": 60.0}
    first, second = image_distances.where(result | {"long": long}).split("By the other ruler")
    assert "the long run at 95%" in first and "the long run at 45%" in first
    assert "the long run at 50%" in second and "the long run at 60%" in second


def test_sheets():
    """Six images in a row of three: each is where it should be, beside white gaps."""
    images = np.arange(6 * 3 * 2 * 2, dtype=np.uint8).reshape(6, 3, 2, 2)
    sheet = persistent_ebm.sheet(persistent_ebm.packed(images), columns=3)
    assert sheet.shape == (6, 9, 3)
    for k, image in enumerate(images):
        top, left = k // 3 * 3, k % 3 * 3
        np.testing.assert_array_equal(
            sheet[top : top + 2, left : left + 2].transpose(2, 0, 1), image
        )
    assert (sheet[2] == 255).all()


@pytest.mark.parametrize("name", ["jem", "cifar_jarzynski", "weighted_buffer"])
def test_other_items(name, tmp_path, monkeypatch):
    for module in (joint_runs, jarzynski_runs, weighted_buffer):
        monkeypatch.setattr(module, "cifar10", lambda path: stripes())
    settings = Settings(quick=True, data=tmp_path)
    result = run(BY_NAME[name], settings)
    shown(BY_NAME[name], result, tmp_path)
