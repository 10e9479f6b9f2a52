"""Integrators as lists: consistent, palindromic, and with the noise exactly in the middle."""

import pytest

from schuss.core.integrators import INTEGRATORS, moves


@pytest.mark.parametrize("noise", [False, True])
@pytest.mark.parametrize("scheme", INTEGRATORS.values(), ids=INTEGRATORS)
def test_moves(scheme, noise):
    program = moves(scheme, noise=noise)
    kinds = [move for move, _ in program]
    assert kinds.count("gradient") == scheme.gradients
    assert kinds[-1] == "gradient"
    assert kinds.count("noise") == noise
    # Every kick is taken with the gradient of where the drifts have led.
    for k, move in enumerate(kinds):
        if move == "kick":
            assert "gradient" in kinds[:k]
            assert "drift" not in kinds[k - kinds[:k][::-1].index("gradient") : k]
    dynamics = [entry for entry in program if entry[0] != "gradient"]
    assert dynamics == dynamics[::-1]
    drifted = sum(share for move, share in program if move == "drift")
    kicked = sum(share for move, share in program if move == "kick")
    assert drifted == pytest.approx(1, abs=1e-15)
    assert kicked + scheme.kicks[0] + scheme.kicks[-1] == pytest.approx(1, abs=1e-15)
