"""The fast path on a GPU, where there is one."""

import pytest
import torch

from .gpu import CHECKS


@pytest.mark.slow
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_on_a_gpu(check):
    check()
