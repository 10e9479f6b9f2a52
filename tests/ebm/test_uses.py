"""Ratios of densities, outliers and diversity, against NumPy, scikit-learn and loops."""

import numpy as np
import pytest
import torch
from PIL import Image
from scipy import stats
from seeds import shifted
from torch import nn

from schuss import ebm

from .runs import small_net


def test_a_ratio_of_densities():
    """log N(x; 0, 1/4) − log N(z; 0, 1/4), in a module with dropout, which is left as it was."""

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.drop = nn.Dropout(0.5)

        def forward(self, x):
            return self.drop(x).square().sum((1, 2))

    net, x, z = Net().train(), torch.randn(1500, 2, 3), torch.randn(1500, 2, 3)
    normal = torch.distributions.Normal(0.0, 0.5)
    want = (normal.log_prob(x) - normal.log_prob(z)).sum((1, 2))
    found = ebm.log_density_ratio(net, x, z, energy_scale=2.0)
    torch.testing.assert_close(found, want, rtol=1e-4, atol=1e-4)
    assert net.training and not found.requires_grad
    with pytest.raises(ValueError, match=r"^z must have the shape of x \(1500, 2, 3\), got"):
        ebm.log_density_ratio(net, x, z[:3])


def test_energies_given_conditions():
    class Net(nn.Module):
        def forward(self, x, y):
            return (x.sum(1) * y)[:, None]

    x, y = torch.randn(1200, 2), torch.arange(1200)
    found = ebm.log_density_ratio(Net(), x, torch.zeros_like(x), y=y)
    torch.testing.assert_close(found, -x.sum(1) * y)


@pytest.mark.parametrize("digits", [1, 8])
def test_auroc_is_scikit_learns(digits):
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(0)
    low, high = (np.round(rng.normal(m, 1, n), digits) for m, n in ((0, 70), (0.7, 90)))
    want = metrics.roc_auc_score([0] * 70 + [1] * 90, np.concatenate((low, high)))
    assert ebm.auroc(low, high) == pytest.approx(want, rel=1e-12)
    for wrong in ([], [[1.0]], [np.nan]):
        with pytest.raises(ValueError, match=r"^scores must be"):
            ebm.auroc(low, wrong)


def test_outliers(tmp_path):
    net = nn.Sequential(nn.Linear(2, 1, bias=False))
    nn.init.ones_(net[0].weight)
    found = ebm.outliers(net, torch.randn(300, 2) - 2, torch.randn(200, 2) + 2)
    assert found.auroc > 0.98 and found.inside.shape == (300,)
    found.picture(tmp_path / "outliers.png")
    with Image.open(tmp_path / "outliers.png") as picture:
        assert np.asarray(picture.convert("L")).std() > 10


def test_diversity():
    """As data it is 1; every sample twice, 0; half as wide, a half."""
    data = torch.randn(200, 3, 2)
    assert ebm.diversity(data, data) == pytest.approx(1)
    assert ebm.diversity(data[:100].repeat(2, 1, 1), data) < 1e-6
    assert ebm.diversity(data / 2, data) == pytest.approx(0.5)
    nine = list(enumerate(data[:9]))
    apart = [min(float((a - b).norm()) for i, b in nine if i != k) for k, a in nine]
    far = data[:9] * 3
    assert ebm.diversity(far, data) == pytest.approx(3)
    assert np.mean(apart) == pytest.approx(ebm.uses._nearest(data[:9]), rel=1e-5)
    with pytest.raises(ValueError, match=r"^data must be at least as many as x"):
        ebm.diversity(data, data[:10])


def test_a_net_of_ones_own_is_left_alone():
    net = small_net()
    ebm.outliers(net, torch.randn(3, 2), torch.randn(3, 2))
    assert all(p.requires_grad for p in net.parameters())


@pytest.mark.statistics
def test_bits_per_dimension():
    """A normal density that the box truncates, by its distribution function; 5 standard errors."""

    class Net(nn.Module):
        def forward(self, x):
            return x.square().sum((1, 2, 3)) / 4

    normal, scale, dim = stats.norm(scale=0.4), 2 / 0.4**2, 4
    log_z = dim * (np.log(normal.cdf(1) - normal.cdf(-1)) + np.log(0.4 * np.sqrt(2 * np.pi)))
    x = torch.as_tensor(normal.rvs((500, 1, 2, 2), random_state=0)).clamp(-1, 1)
    options = {"particles": 128, "seed": shifted(0), "progress": False}
    found = ebm.bits_per_dimension(Net(), x, energy_scale=scale, **options)
    assert found.evidence.log_z == pytest.approx(log_z, abs=5 * found.evidence.error)
    want = (scale * float(Net()(x).mean()) + log_z) / (dim * np.log(2))
    assert found.value == pytest.approx(want, abs=5 * found.error) and found.error < 0.1
