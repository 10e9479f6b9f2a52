"""A Sampler's scale of the energy, its conditions y, and coordinates that are fixed."""

import math
import re

import numpy as np
import pytest
import torch
from seeds import shifted

import schuss

PRECISION = np.array([[2.0, 0.8, -0.5], [0.8, 1.5, 0.3], [-0.5, 0.3, 1.0]])
START = np.random.default_rng(0).standard_normal((600, 3))


def pair(x):
    return np.einsum("ni,ij,nj->n", x, PRECISION, x) / 2, x @ PRECISION


@pytest.mark.parametrize("engine", ["numpy", "torch", pytest.param("jax", marks=pytest.mark.slow)])
def test_a_scale_is_a_factor_of_the_energy(engine):
    """The same numbers as those of the energy that was multiplied."""
    found = []
    for inside, outside in ((3.0, 1.0), (1.0, 3.0)):
        sampler = schuss.Sampler(schuss.ESH(0.1), steps=5, energy_scale=outside, engine=engine)
        if engine == "numpy":
            given = {"value_and_grad": lambda x, a=inside: tuple(a * part for part in pair(x))}
        else:
            given = {"energy": lambda x, a=inside: a * ((x**2).sum(-1) + x[..., 0])}
        init = torch.as_tensor(START[:4]) if engine == "torch" else START[:4]
        found.append(np.asarray(sampler(init=init, **given)))
    np.testing.assert_allclose(*found, rtol=1e-12)


@pytest.mark.statistics
def test_fixed_coordinates_leave_the_conditional_density():
    """x₀, x₂ given x₁ = 1 of a normal density; 4.5 standard errors of 600 chains, p < 1e-4."""
    start, fixed = START.copy(), np.array([False, True, False])
    start[:, 1] = 1.0
    sampler = schuss.Sampler(schuss.HMC(0.6, steps=3), steps=60, seed=shifted(0))
    x = sampler.run(value_and_grad=pair, init=start, fixed=fixed).x
    assert (x[:, 1] == 1).all()
    inner = PRECISION[np.ix_(~fixed, ~fixed)]
    mean = -np.linalg.solve(inner, PRECISION[~fixed, 1])
    covariance = np.linalg.inv(inner)
    error = np.sqrt(np.diag(covariance) / len(x))
    assert (abs(x[:, ~fixed].mean(axis=0) - mean) < 4.5 * error).all()
    spread = x[:, ~fixed].var(axis=0) / np.diag(covariance)
    assert (abs(spread - 1) < 4.5 * math.sqrt(2 / len(x))).all()


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_fixed_pixels_of_images(layout, compiled):
    """However they lie in memory, in a box and a metric of the images' own shape."""
    torch.manual_seed(0)
    x = torch.rand(5, 3, 4, 4).contiguous(memory_format=layout)
    mask = torch.rand(3, 4, 4) < 0.5
    metric = torch.rand(3, 4, 4).numpy() + 0.5
    box = (np.zeros((3, 4, 4)), np.where(mask, 1.0, 1.5))
    sampler = schuss.ESH(0.3, metric=metric, box=box)
    energy = torch.nn.Sequential(
        torch.nn.Conv2d(3, 2, 3), torch.nn.Flatten(), torch.nn.Linear(8, 1)
    )
    run = schuss.Sampler(sampler, steps=20, compile=compiled).run(energy, x, fixed=mask)
    for found in (run.x, run.extend(5).x):
        assert torch.equal(found[:, mask], x[:, mask])
        assert (found[:, ~mask] != x[:, ~mask]).all() and 0 <= found.min() <= found.max() <= 1.5


@pytest.mark.statistics
def test_conditions():
    """Each chain near its own y: x ~ N(y, 1/4), with the mean over 400 chains at 4.5 sigma."""

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.centres = torch.nn.Embedding.from_pretrained(torch.tensor([[-2.0, 0], [3.0, 1]]))

        def forward(self, x, y):
            return 2 * (x - self.centres(y)).square().sum(1)

    y = torch.arange(400) % 2
    sampler = schuss.Sampler(schuss.HMC(0.3, steps=3), steps=60, seed=shifted(0))
    for given in (y, y.numpy()):
        x = sampler(Net(), torch.zeros(400, 2), y=given)
        for k, centre in enumerate(([-2.0, 0.0], [3.0, 1.0])):
            mean = x[y == k].mean(0)
            assert (abs(mean - torch.tensor(centre)) < 4.5 * 0.5 / math.sqrt(200)).all()


@pytest.mark.parametrize(
    ("options", "given", "message"),
    [
        ({"energy_scale": 0.0}, {}, "energy_scale must be positive and finite, got 0.0"),
        (
            {"engine": "jax"},
            {"energy": lambda x, y: x, "y": [1, 2]},
            "y is for an energy of (x, y) on engine='torch'; pass that as energy=",
        ),
        (
            {},
            {"energy": lambda x, y: x, "y": [1, 2, 3]},
            "y must have an entry for each of the 2 chains, got shape (3,)",
        ),
        (
            {},
            {"value_and_grad": pair, "fixed": [1, 0, 0]},
            "fixed must be a mask, True where a coordinate stays as it is in init, of shape (3,), "
            "got dtype int64 and shape (3,)",
        ),
        (
            {},
            {"value_and_grad": pair, "fixed": [True] * 3},
            "fixed must leave a coordinate free, got True everywhere",
        ),
        (
            {"keep": "moments"},
            {"value_and_grad": pair, "fixed": [True, False, False]},
            "fixed doesn't go with keep='moments'; use 'last' or 'reservoir'",
        ),
    ],
)
def test_refused(options, given, message):
    with pytest.raises(ValueError, match="^" + re.escape(message) + "$"):
        schuss.Sampler(schuss.ESH(0.1), steps=3, **options).run(init=START[:2], **given)
