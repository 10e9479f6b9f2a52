"""Runs on images in small: kept, continued and measured."""

import dataclasses
import json
import time

import numpy as np
import pytest
import torch

from schuss.algorithms import ESH, ULA
from schuss.ebm import jarzynski_runs, joint_runs
from schuss.ebm.persistent import main, run_all
from schuss.ebm.recipe_parts import ruler_of
from schuss.ebm.recipe_run import run_recipe
from schuss.ebm.recipes import RECIPES, changed, longer, smaller
from schuss.ebm.trainer import Trainer
from schuss.ebm.wide_resnet import WideResNet, load_jem

from .images import stripes

TINY = dataclasses.replace(
    smaller(RECIPES["cifar"]),
    features=2,
    samplers={"ESH": ESH(step_size=0.1), "ULA": ULA(step_size=0.03)},
    energy_scale=10.0,
    iterations=8,
    batch=8,
    steps=2,
    buffer=40,
    measured=40,
    noise_chains=12,
    noise_gradients=4,
)


@pytest.fixture(scope="module")
def images():
    return stripes()


def test_a_stopped_run_goes_on_to_the_same_numbers(images, tmp_path):
    ruler = ruler_of(TINY, images, tmp_path, "cpu", lambda done: None)
    whole = run_recipe(TINY, images, ruler, "ESH", 0, tmp_path / "whole")
    assert whole is not None
    at = dataclasses.replace(TINY, looks=1)
    said = []
    # Time is up after the first look at the clock, which comes when there is a state to save.
    stopped = run_recipe(
        at,
        images,
        ruler,
        "ESH",
        0,
        tmp_path / "cut",
        until=time.monotonic() + 1e-3,
        advance=said.append,
    )
    assert stopped is None and "stopped" in said[-1]
    resumed = run_recipe(TINY, images, ruler, "ESH", 0, tmp_path / "cut")
    assert resumed is not None
    assert resumed["distance"] == pytest.approx(whole["distance"], rel=1e-6)
    assert resumed["distance_from_noise"] == pytest.approx(whole["distance_from_noise"], rel=1e-6)
    assert not list((tmp_path / "whole").glob("*.checkpoint"))


def test_results_are_read_where_they_are(images, tmp_path, monkeypatch):
    monkeypatch.setattr("schuss.ebm.persistent.load_images", lambda recipe, path: images)
    made = run_all(TINY, None, tmp_path, seeds=[0])
    assert made["finished"] and [r["sampler"] for r in made["runs"]] == ["ESH", "ULA"]
    with np.load(tmp_path / "ESH-0.npz") as held:
        assert held["buffer"].dtype == np.uint8 and held["buffer"].shape == (40, 3, 8, 8)
    monkeypatch.setattr("schuss.ebm.persistent.load_images", None)
    again = run_all(TINY, None, tmp_path, seeds=[0])
    assert again == json.loads(json.dumps(made))


def test_a_long_run_has_a_name_and_an_ensemble(images, tmp_path, monkeypatch):
    """The last looks' weights are sampled together: not what the last weights alone give."""
    monkeypatch.setattr("schuss.ebm.persistent.load_images", lambda recipe, path: images)
    long = dataclasses.replace(longer(TINY), iterations=8, looks=4, ensemble=2)
    options = {"samplers": ["ESH"], "seeds": [0], "label": "long"}
    cut = run_all(long, None, tmp_path, until=time.monotonic() + 6e-4, **options)
    assert not cut["finished"]
    (made,) = run_all(long, None, tmp_path, **options)["runs"]
    assert made["name"] == "ESH-long" and (tmp_path / "ESH-long.json").exists()
    assert [point["gradients"] for point in made["curve"]] == [4, 8, 12, 16]
    assert made["ensemble"]["members"] == 2
    assert made["ensemble"]["distance_from_noise"] != made["distance_from_noise"]
    assert made["image_gradients_per_second"] > 0
    with np.load(tmp_path / "ESH-long.npz") as held:
        assert held["ensemble"].shape == held["noise"].shape


def test_numbers_of_a_recipe_can_be_set():
    made = changed(TINY, ["iterations=30", "rate=1e-3", "ESH=0.7"])
    assert (made.iterations, made.rate) == (30, 1e-3)
    assert (made.samplers["ESH"].step_size, made.samplers["ULA"].step_size) == (0.7, 0.03)
    for wrong in ("speed=3", "rate=fast"):
        with pytest.raises(ValueError, match="set must"):
            changed(TINY, [wrong])


def test_data_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["persistent", "cifar", "--quick", "--work", str(tmp_path)])
    with pytest.raises(ValueError, match="pass --data PATH"):
        main()


def test_joint_model(images, tmp_path):
    told = joint_runs.run_joint(None, tmp_path, size=joint_runs.SMALL, images=images)
    for start in ("noise", "buffer"):
        curves = told["curves"][start]
        assert list(curves) == list(joint_runs.SAMPLERS)
        firsts = {curve["energy"][0] for curve in curves.values()}
        assert len(firsts) == 1
        assert all(len(c["energy"]) == joint_runs.SMALL.gradients + 1 for c in curves.values())
    assert joint_runs.run_joint(None, tmp_path, images=images) == json.loads(json.dumps(told))


def test_weighted_training(images, tmp_path):
    told = jarzynski_runs.run_weighted(None, tmp_path, size=jarzynski_runs.SMALL, images=images)
    for scale in jarzynski_runs.SCALES:
        weights = told["runs"][f"{scale:g}"]["max_weight"]
        assert all(1 / 16 - 1e-6 <= weight <= 1 + 1e-6 for weight in weights)
    # A straight line through an energy that hardly changes: all weights are equal at first.
    assert told["runs"]["1"]["max_weight"][0] == pytest.approx(1 / 16, rel=0.2)


@pytest.mark.parametrize(
    ("start", "size"),
    [
        (joint_runs.run_joint, joint_runs.SMALL),
        (jarzynski_runs.run_weighted, jarzynski_runs.SMALL),
    ],
    ids=["joint", "weighted"],
)
def test_runs_that_are_cut_go_on(start, size, images, tmp_path, monkeypatch, capsys):
    """In parts they come to the same numbers as in one go, and say how far they are."""
    size = size._replace(iterations=4, steps=2)
    whole = start(None, tmp_path / "whole", size=size, images=images)
    # Each call looks at the clock after every iteration, and time is up at once.
    made = Trainer.__init__
    monkeypatch.setattr(
        Trainer, "__init__", lambda self, *a, **k: made(self, *a, **(k | {"every": 1}))
    )
    calls, parts = 0, None
    while parts is None and calls < 20:
        until = time.monotonic() + (0.05 if calls < 3 else 60)
        parts = start(None, tmp_path / "cut", size=size, images=images, until=until, progress=True)
        calls += 1
    assert calls > 1
    assert not list((tmp_path / "cut").glob("*.checkpoint"))
    assert "images/s" in capsys.readouterr().out
    for told in (whole, parts):
        _without_times(told)
    assert parts == json.loads(json.dumps(whole))


def _without_times(told):
    for key in ("seconds", "seconds_training"):
        told.pop(key, None)
    for part in told.get("runs", {}).values():
        part.pop("seconds")


def test_checkpoint_of_jem(tmp_path):
    """Weights under the original's names, with the layers that aren't needed, and its buffer."""
    torch.manual_seed(0)
    net = WideResNet(10, 1)
    state = net.state_dict() | {"f.linear.weight": torch.zeros(10, 64)}
    state |= {"energy_output.bias": torch.zeros(1)}
    buffer = torch.rand(4, 3, 32, 32)
    torch.save({"model_state_dict": state, "replay_buffer": buffer}, tmp_path / "jem.pt")
    loaded, held = load_jem(tmp_path / "jem.pt", WideResNet(10, 1))
    torch.testing.assert_close(loaded(buffer), net(buffer))
    assert torch.equal(held, buffer)
    with pytest.raises(ValueError, match="another architecture"):
        load_jem(tmp_path / "jem.pt", WideResNet(10, 2))
    torch.save({"weights": 1}, tmp_path / "other.pt")
    with pytest.raises(ValueError, match="isn't a checkpoint of JEM"):
        load_jem(tmp_path / "other.pt")


def test_size_of_the_original():
    """36.5 million parameters, as is known of WRN-28-10."""
    with torch.device("meta"):
        count = sum(p.numel() for p in WideResNet().parameters())
    assert count == pytest.approx(36.5e6, rel=2e-3)
