"""What training leaves: the verdict, history.csv, pictures, settings and the page."""

import csv
import json

import numpy as np
import pytest
import torch
from PIL import Image

import schuss
from schuss import ebm
from schuss.ebm.history import STATISTICS, History, Rollback
from schuss.ebm.judgement import Samples, judge, kept

from .runs import data, trainer


def history(n=100, rollbacks=(), **columns):
    rows = {name: np.zeros(n) for name in STATISTICS} | {"delta": np.full(n, 0.2)}
    rows |= {name: np.full(n, value) for name, value in columns.items()}
    return History(**rows, images_per_second=1.0, gradients=n, rollbacks=tuple(rollbacks))


def samples(n=100, **parts):
    generator = torch.Generator().manual_seed(0)
    made = {name: torch.randn(n, 3, generator=generator) for name in Samples._fields}
    return Samples(**(made | parts))


def energies(noise=0.0):
    rng = np.random.default_rng(0)
    made = {name: rng.standard_normal(100) for name in ("data", "buffer", "noise")}
    return made | {"noise": made["noise"] + noise}


def kinds(*, drift=0.0, rollbacks=(), parts=None, scale=1.0, **columns):
    found = judge(
        history(rollbacks=rollbacks, **columns), samples(**(parts or {})), energies(drift), scale
    )
    return [reason.kind for reason in found.reasons]


def test_a_run_without_faults():
    found = judge(history(), samples(), energies(), 1.0)
    assert found.reasons == [] and found.headline == "Trained" and found.notes == []
    assert found.numbers["turn of a step"] == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({"energy_data": -4.0}, "chains lag behind"),
        ({"energy_data": 4.0}, "chains are ahead"),
        ({"energy_data": 4e-3, "scale": 1000.0}, "chains are ahead"),
        ({"delta": 2.0}, "steep slopes"),
        ({"frozen": 0.2}, "frozen chains"),
        ({"rollbacks": [Rollback(95, "the loss is nan", 90)]}, "diverged lately"),
        ({"drift": 5.0}, "noise and buffer apart"),
        ({"drift": -5.0}, "noise and buffer apart"),
        ({"parts": {"buffer": torch.ones(100, 3) + 0.1 * torch.randn(100, 3)}}, "samples alike"),
        ({"parts": {"noise": torch.ones(100, 3)}}, "samples alike"),
    ],
)
def test_each_fault(given, kind):
    assert kinds(**given) == [kind]


def test_earlier_roll_backs_and_chains_that_stay_are_notes():
    still = samples().buffer
    found = judge(
        history(rollbacks=[Rollback(20, "the loss is nan", 10)]),
        samples(after=still),
        energies(),
        1.0,
    )
    assert found.reasons == [] and len(found.notes) == 2
    assert "went back 1 times: 20: the loss is nan" in found.notes[0]


def test_what_chains_keep():
    """A correlation by NumPy."""
    x, z = torch.randn(12, 2, 3), torch.randn(12, 2, 3)
    a, b = ((p - p.mean(0)).flatten().numpy() for p in (x, z))
    assert kept(x, z) == pytest.approx((a @ b) / np.sqrt(a @ a * (b @ b)), rel=1e-5)
    assert kept(x, x) == pytest.approx(1)


@pytest.mark.parametrize("images", [True, False])
def test_what_is_left(tmp_path, images):
    options = {"folder": tmp_path, "page": True, "config": {"net": {"name": "<b>"}}}
    if images:
        torch.manual_seed(0)
        options |= {"net": ebm.StridedEnergy(2, 1, 8), "examples": torch.rand(40, 1, 8, 8)}
        options |= {"buffer": ebm.ReplayBuffer(20, (1, 8, 8)), "energy_scale": "auto"}
    run = trainer(**options)
    run.fit()
    with open(tmp_path / "history.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 12 and rows[-1]["iteration"] == "12"
    assert float(rows[3]["energy_data"]) == pytest.approx(run.history.energy_data[3], rel=1e-5)
    told = json.loads((tmp_path / "settings.json").read_text())
    assert told["config"] == {"net": {"name": "<b>"}} and "torch" in told["versions"]
    assert told["arguments"]["steps"] == 3
    assert told["verdict"]["headline"] in ("Trained", "Not trained well")
    page = (tmp_path / "report.html").read_text()
    assert told["verdict"]["headline"] in page and "<b>" not in page and "http" not in page[500:]
    for name in ("curves", "samples"):
        with Image.open(tmp_path / f"{name}.png") as picture:
            assert np.asarray(picture.convert("L")).std() > 10
    assert page.count("data:image/png") == 2


def test_a_conditional_run_is_judged():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(3, 1)

        def forward(self, x, y):
            return self.layer(torch.cat((x, y[:, None]), dim=1))

    run = trainer(Net(), (data(), torch.linspace(0, 1, 60)))
    run.fit(2)
    found, samples = run.judge()
    assert samples.noise.shape == (60, 2) and "turn of a step" in found.numbers


def test_a_run_that_has_not_begun():
    with pytest.raises(ValueError, match=r"^a run without an iteration can't be judged; call fit"):
        trainer().judge()


def test_the_line_is_explained(capsys):
    trainer(progress=True, sampler=schuss.ULA(0.1)).fit()
    first, *rest = capsys.readouterr().out.splitlines()
    assert "δ turn of a sampler step" in first and "δ" in rest[-1]
