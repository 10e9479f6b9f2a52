"""Energies train without a person's care: what is stored says so, and a part of it is run again."""

import json
import pathlib
import sys

import pytest

BENCHMARKS = pathlib.Path(__file__).parents[2] / "benchmarks"
STORED = json.loads((BENCHMARKS / "results" / "training.json").read_text())
AUTO = [row for row in STORED["runs"] if row["rule"] == "auto"]


@pytest.fixture(scope="module")
def training():
    """The benchmark as a module, its digits and its ruler."""
    sys.path.insert(0, str(BENCHMARKS))
    try:
        import training

        images, rulers = training.loaded(None, None, "cpu")
    finally:
        sys.path.remove(str(BENCHMARKS))
    return training, images["digits"], rulers["digits"]


def test_no_run_gave_up():
    assert len(AUTO) >= 48 and {row["data"] for row in AUTO} == {"digits", "mnist"}
    assert not [row for row in AUTO if row["gave_up"]]
    assert sum(row["rollbacks"] for row in AUTO) <= 0.1 * len(AUTO)
    assert min(row["gradients"] for row in AUTO) >= 10_000


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["ESH", "ULA"])
@pytest.mark.parametrize("rate", [1e-4, 1e-3, 3e-3])
@pytest.mark.parametrize("net", ["mlp", "strided", "papers", "spectral"])
def test_another_seed_does_as_well(training, net, rate, sampler):
    """No divergence but one, and a distance within 1.6 of that of seed 0."""
    module, images, ruler = training
    row = {"data": "digits", "net": net, "sampler": sampler, "lr": rate, "device": "cpu"}
    found = module.trained(images, ruler, row | {"rule": "auto", "seed": 7})
    (before,) = [r["distance"] for r in AUTO if row.items() <= r.items() and r["seed"] == 0]
    assert found["gave_up"] is None and found["rollbacks"] <= 1
    assert found["distance"] < 1.6 * before
