"""The networks have the paper's sizes; the copy that stands still is the same function."""

import itertools

import pytest
import torch
from torch import nn

from schuss import ebm
from schuss.ebm.still import Still


def count(net):
    return sum(p.numel() for p in net.parameters())


def test_sizes():
    sizes = (2, 32, 64, 64, 64, 1)
    want = sum(a * b + b for a, b in itertools.pairwise(sizes))
    assert count(ebm.ToyMLP()) == want
    net = ebm.ConvEnergy()
    assert round(count(net) / 1e6, 2) == 11.03
    assert net(torch.zeros(2, 3, 32, 32)).shape == (2,)


def test_operations_of_a_forward():
    """812 MFLOP for an image, two for each multiplication with an addition."""
    total = 0

    def add(layer, _, output):
        nonlocal total
        total += 2 * layer.weight[0].numel() * output.numel()

    net = ebm.ConvEnergy(spectral=False)
    for layer in net.modules():
        if isinstance(layer, nn.Conv2d):
            layer.register_forward_hook(add)
    net(torch.zeros(1, 3, 32, 32))
    assert round(total / 1e6) == 812


@pytest.mark.parametrize(("channels", "size"), [(1, 8), (1, 28), (3, 32), (2, 17)])
def test_images_of_other_sizes(channels, size):
    net = ebm.ConvEnergy(4, channels, size)
    assert net(torch.zeros(3, channels, size, size)).shape == (3,)


def test_spectral_norm_of_every_layer():
    """Largest singular values, by SVD, are one once the power iteration has settled."""
    torch.manual_seed(0)
    net = ebm.ConvEnergy(4, 1, 8)
    for _ in range(200):
        net(torch.zeros(1, 1, 8, 8))
    net.eval()
    layers = [layer for layer in net.modules() if isinstance(layer, nn.Conv2d)]
    assert len(layers) == 5
    for layer in layers:
        largest = torch.linalg.svdvals(layer.weight.detach().flatten(1))[0]
        assert float(largest) == pytest.approx(1, abs=1e-3)


def test_energies_keep_their_digits_in_16_bits():
    """The last layer sums in 32 bits: energies differ from their rounding to 16."""
    torch.manual_seed(0)
    net, x = ebm.ConvEnergy(8, 1, 8), torch.randn(20, 1, 8, 8)
    with torch.autocast("cpu", torch.bfloat16):
        energy = net(x)
    assert energy.dtype == torch.float32
    assert not torch.equal(energy, energy.bfloat16().float())
    torch.testing.assert_close(energy, net.eval()(x), rtol=0.1, atol=0.02)


def test_images_of_the_wrong_size_are_refused():
    with pytest.raises(ValueError, match="images of 8×8"):
        ebm.ConvEnergy(4, 3, 32)(torch.zeros(2, 3, 8, 8))


@pytest.mark.parametrize(
    "make",
    [
        lambda: ebm.ConvEnergy(4, 1, 8),
        lambda: ebm.JointEnergy(ebm.ResidualClassifier(3, 1, 4)),
        lambda: ebm.Ensemble([ebm.ConvEnergy(4, 1, 8), ebm.ConvEnergy(2, 1, 8)]),
    ],
    ids=["conv", "joint", "ensemble"],
)
def test_rounded_copies_are_what_autocast_makes(make):
    """Energies and gradients to the last bit, and after the weights have changed too."""
    torch.manual_seed(0)
    net, x = make(), torch.randn(5, 1, 8, 8)
    plain, rounded = Still(net), Still(net, torch.bfloat16)
    assert torch.bfloat16 in {p.dtype for p in rounded.energy.parameters()}
    for _ in range(2):
        found = []
        for still in (plain, rounded):
            y = x.clone().requires_grad_()
            with torch.autocast("cpu", torch.bfloat16):
                energy = still.update()(y)
            found.append((energy.detach(), torch.autograd.grad(energy.sum(), y)[0]))
        assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))
        with torch.no_grad():
            for p in net.parameters():
                p.add_(0.01 * torch.randn_like(p))


def test_classifier():
    torch.manual_seed(0)
    net, x = ebm.ResidualClassifier(7, 1, 4), torch.randn(5, 1, 16, 16)
    assert net(x).shape == (5, 7)
    assert not any(isinstance(part, nn.modules.batchnorm._BatchNorm) for part in net.modules())
    # One image's logits don't depend on the others.
    torch.testing.assert_close(net(x)[:1], net(x[:1]), rtol=1e-4, atol=1e-5)


def batch_normed():
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 1))


def spectral():
    layer = nn.utils.parametrizations.spectral_norm(nn.Linear(3, 4))
    return nn.Sequential(layer, nn.SiLU(), nn.utils.parametrizations.weight_norm(nn.Linear(4, 1)))


def tied():
    net = nn.Sequential(nn.Linear(3, 3), nn.SiLU(), nn.Linear(3, 3), nn.Linear(3, 1))
    net[2].weight = net[0].weight
    return net


@pytest.mark.parametrize("make", [batch_normed, spectral, tied], ids=lambda make: make.__name__)
def test_the_copy_that_stands_still(make):
    """It follows the weights, is the network in evaluation mode, and touches nothing."""
    torch.manual_seed(0)
    net = make().train()
    still, x = Still(net), torch.randn(6, 3)
    places = [p.data_ptr() for p in still.energy.parameters()]
    optimiser = torch.optim.SGD(net.parameters(), 0.1)
    for _ in range(3):
        optimiser.zero_grad()
        net(x).square().sum().backward()
        optimiser.step()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    got = still.update()(x)
    after = net.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert all(part.training for part in net.modules())
    assert all(p.requires_grad for p in net.parameters())
    assert [p.data_ptr() for p in still.energy.parameters()] == places
    assert not any(p.requires_grad for p in still.energy.parameters())
    torch.testing.assert_close(got, net.eval()(x).detach(), rtol=1e-6, atol=1e-6)
    net.train()(x).sum().backward()
