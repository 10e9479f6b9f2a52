"""The README's example: a newcomer's own module, trained on digits."""

import numpy as np

EXAMPLE = """
import torch
from sklearn.datasets import load_digits
import schuss
from schuss import ebm


class Energy(torch.nn.Module):  # any module: x (n, *shape) → (n,) or (n, 1)
    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Linear(64, 256), torch.nn.Linear(256, 1)

    def forward(self, x):
        return self.last(torch.nn.functional.silu(self.first(x)))


torch.manual_seed(0)
digits = torch.tensor(load_digits().data / 8 - 1, dtype=torch.float32)  # (1797, 64) in [−1, 1]
trainer = ebm.Trainer(Energy(), digits, buffer=ebm.ReplayBuffer(1000, (64,)), batch=100, lr=1e-3,
                      sampler=schuss.ESH(step_size=0.5), steps=20, energy_scale="auto")
history = trainer.fit(iterations=200)
ebm.picture("digits.png", trainer.from_noise(100))
"""


def test_a_module_of_ones_own_learns_digits(tmp_path, monkeypatch):
    """Samples from noise have the digits' mean image and spread; noise has neither."""
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(compile(EXAMPLE, "example", "exec"), names)
    assert len([line for line in EXAMPLE.splitlines() if line.strip()]) <= 16
    history, trainer, digits = names["history"], names["trainer"], names["digits"]
    assert len(history) == 200 and not history.rollbacks and history.frozen.max() == 0
    assert (tmp_path / "digits.png").stat().st_size > 10_000

    def likeness(x):
        return np.corrcoef(x.mean(0), digits.mean(0))[0, 1]

    fresh = trainer.batches.fresh(1000, names["torch"].Generator().manual_seed(1))
    assert likeness(fresh) < 0.5
    assert likeness(trainer.from_noise(200)) > 0.95 and likeness(trainer.buffer.x) > 0.99
    assert 0.8 < float(trainer.buffer.x.std() / digits.std()) < 1.25
