"""The toy models: networks side by side are the paper's, distances are right, and they learn."""

import json
import math

import numpy as np
import pytest
import torch
from seeds import shifted

from schuss.ebm import toy
from schuss.ebm.networks import ToyMLP


def test_stacked_networks_are_the_papers():
    stacked = toy.StackedMLP([3, 4])
    x = torch.randn(2 * 7, 2, generator=torch.Generator().manual_seed(0))
    for copy in range(2):
        one = ToyMLP()
        layers = [layer for layer in one if isinstance(layer, torch.nn.Linear)]
        with torch.no_grad():
            for layer, w, b in zip(layers, stacked.weights, stacked.biases, strict=True):
                layer.weight.copy_(w[copy].T)
                layer.bias.copy_(b[copy, 0])
        mine = slice(7 * copy, 7 * copy + 7)
        torch.testing.assert_close(stacked(x)[mine], one(x[mine])[:, 0])


@pytest.mark.parametrize("name", toy.DATA)
def test_truth_on_the_grid(name):
    """The grid holds the density: its second moment is that of exact samples, within 5 sigma."""
    data = toy.toy_data(name)
    p, points = toy.truth(data), toy.grid(data.reach)
    assert p.sum() == pytest.approx(1)
    squares = (data.target.sample(np.random.default_rng(shifted(0)), 20_000) ** 2).sum(axis=1)
    error = squares.std() / math.sqrt(len(squares))
    assert abs(p @ (points**2).sum(axis=1) - squares.mean()) < 5 * error + 0.01


def test_starts_have_their_reference():
    """−log of the start's density minus E₀ is the same everywhere."""
    rings = toy.toy_data("rings")
    x = torch.tensor([[0.0, 0.0], [2.0, 0.0], [1.0, -3.0]])
    normal = torch.distributions.Normal(0.0, 2.0)
    gap = -normal.log_prob(x).sum(dim=1) - rings.reference(x)
    torch.testing.assert_close(gap, gap[0].expand(3))
    start = rings.start(np.random.default_rng(0), 20_000)
    assert start.std() == pytest.approx(2, rel=0.03)


def test_distances_of_gaussians():
    """Against the closed forms of KL and TV for two shifted Gaussians, by quadrature."""
    line = np.linspace(-8, 8, 4001)
    p, q = (toy.normalised((line - m) ** 2 / 2) for m in (0.0, 1.0))
    assert toy.divergence(p, q) == pytest.approx(0.5, rel=1e-4)
    assert toy.total_variation(p, q) == pytest.approx(math.erf(0.5 / math.sqrt(2)), rel=1e-4)
    assert toy.total_variation(p, p) == 0


def test_a_run_learns_and_is_kept(tmp_path):
    """From about .75 for an untrained network to under .6 in 60 iterations, both seeds."""
    told = toy.run_toy("mixture", "ESH", [0, 1], 60, tmp_path, compile=False)
    assert all(row["distance_last"] < 0.6 for row in told["rows"])
    assert told["rows"][0]["gradients"] == 60 * toy.STEPS
    assert 0 < told["rows"][0]["weight_ess"] <= 1
    again = toy.run_toy("mixture", "ESH", [0, 1], 60, tmp_path, advance=lambda done: None)
    assert again == json.loads(json.dumps(told))


@pytest.mark.slow
def test_weights_matter():
    """Exact weights must come far closer than none at all, whose negatives aren't from e^(−E)."""
    plain = toy.METHODS["ESH"]._replace(weighted=False)
    toy.METHODS["ESH, unweighted"] = plain
    try:
        runs = {m: toy.train_toy("mixture", m, [0], 1500) for m in ("ESH", "ESH, unweighted")}
    finally:
        del toy.METHODS["ESH, unweighted"]
    right = toy.truth(toy.toy_data("mixture"))
    far = {
        m: float(toy.total_variation(toy.normalised(r.averaged[0]), right)) for m, r in runs.items()
    }
    assert far["ESH"] < 0.35
    assert far["ESH"] < 0.8 * far["ESH, unweighted"]
