"""Losses, joint energies, ensembles and averages against what they are by hand."""

import math

import pytest
import torch
from torch import nn

from schuss import ebm

from .runs import small_net

GENERATOR = torch.Generator().manual_seed(0)
DATA = torch.randn(5, generator=GENERATOR, dtype=torch.float64)
NEGATIVE = torch.randn(7, generator=GENERATOR, dtype=torch.float64)
LOGS = 3 * torch.randn(7, generator=GENERATOR, dtype=torch.float64)


def test_plain_and_weighted_loss():
    plain = sum(DATA.tolist()) / 5 - sum(NEGATIVE.tolist()) / 7
    assert float(ebm.contrastive_loss(DATA, NEGATIVE)) == pytest.approx(plain, abs=1e-14)
    raw = [math.exp(value) for value in LOGS.tolist()]
    mean = sum(w * e for w, e in zip(raw, NEGATIVE.tolist(), strict=True)) / sum(raw)
    got = ebm.contrastive_loss(DATA[:, None], NEGATIVE[:, None], LOGS)
    assert float(got) == pytest.approx(sum(DATA.tolist()) / 5 - mean, abs=1e-14)
    squares = sum(e * e for e in DATA.tolist()) / 5 + sum(e * e for e in NEGATIVE.tolist()) / 7
    got = ebm.contrastive_loss(DATA, NEGATIVE, regularise=0.3)
    assert float(got) == pytest.approx(plain + 0.3 * squares, abs=1e-14)


def test_weights_get_no_gradient_through_far_apart_logs():
    """A constant in the log-weights changes nothing, however large."""
    got = ebm.contrastive_loss(DATA, NEGATIVE, LOGS - 1e4)
    assert float(got) == pytest.approx(float(ebm.contrastive_loss(DATA, NEGATIVE, LOGS)), abs=1e-9)


def test_weights_of_the_wrong_shape():
    with pytest.raises(
        ValueError, match=r"^log_weights must have shape \(7,\), one for each negative, got \(5,\)$"
    ):
        ebm.contrastive_loss(DATA, NEGATIVE, LOGS[:5])


def test_joint_energy_and_loss():
    torch.manual_seed(0)
    classifier = nn.Linear(4, 3).double()
    x, negatives = torch.randn(6, 4).double(), torch.randn(5, 4).double()
    y = torch.tensor([0, 1, 2, 2, 1, 0])
    energy = ebm.JointEnergy(classifier, scale=7.0)
    logits = classifier(x)
    by_hand = -7 * torch.log(torch.exp(logits).sum(1))
    torch.testing.assert_close(energy(x), by_hand)

    log_p = logits - torch.log(torch.exp(logits).sum(1, keepdim=True))
    label = -log_p[torch.arange(6), y].mean()
    others = torch.log(torch.exp(classifier(negatives)).sum(1))
    gap = by_hand.mean() / 7 + others.mean()
    torch.testing.assert_close(energy.loss(x, y, negatives, weight=0.5), label + 0.5 * gap)
    terms = energy.terms(x, y, negatives)
    torch.testing.assert_close(terms.energy_data, by_hand / 7)
    torch.testing.assert_close(terms.energy_negative, -others)
    right = (logits.argmax(1) == y).double().mean()
    assert float(terms.accuracy) == pytest.approx(float(right), abs=1e-6)


def test_joint_energy_of_something_else():
    with pytest.raises(
        ValueError, match=r"^classifier must return logits of shape \(6, classes\), got \(6,\)$"
    ):
        ebm.JointEnergy(nn.Flatten(0))(torch.zeros(6))


def test_ensemble_is_the_mean():
    nets = [small_net(seed) for seed in range(3)]
    x = torch.randn(5, 2)
    want = sum(net(x)[:, 0] for net in nets) / 3
    torch.testing.assert_close(ebm.Ensemble(nets)(x), want)
    with pytest.raises(ValueError, match="members must hold at least one module"):
        ebm.Ensemble([])


def test_average_of_weights():
    """θ̄ by hand, with the decay that rises from 0.1."""
    net = nn.Linear(1, 1, bias=False)
    net.register_buffer("count", torch.zeros(()))
    average = ebm.EMA(net, 0.3)
    want = float(net.weight.detach())
    for step in range(20):
        with torch.no_grad():
            net.weight += 1
            net.count += 1
        average.update(net)
        decay = min(0.3, (1 + step) / (10 + step))
        want = decay * want + (1 - decay) * float(net.weight.detach())
    assert float(average.module.weight) == pytest.approx(want, abs=1e-5)
    assert float(average.module.count) == 20
    assert not average.module.weight.requires_grad and net.weight.requires_grad
    other = ebm.EMA(net, 0.3)
    other.load_state_dict(average.state_dict())
    assert other.steps == 20 and float(other.module.weight) == float(average.module.weight)
    with pytest.raises(ValueError, match="decay must be at least 0 and below 1"):
        ebm.EMA(net, 1)
