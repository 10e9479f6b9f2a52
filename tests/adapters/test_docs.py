"""Every Python block of docs/models.md runs, and gives what the text beside it says."""

import pathlib
import re

import numpy as np
import pytest

import schuss

PAGE = (pathlib.Path(__file__).parents[2] / "docs" / "models.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
NOT_RUN = [code for code in BLOCKS if code.startswith("# not run\n")]

pytestmark = pytest.mark.skipif(not hasattr(schuss, "sample"), reason="schuss.sample is missing")


def block(words):
    """Run the one block that contains `words`."""
    (code,) = [code for code in BLOCKS if words in code and code not in NOT_RUN]
    names = {"__name__": "models"}
    exec(compile(code, f"models.md, block with {words!r}", "exec"), names)
    return names


def test_every_block_is_run_here():
    assert len(BLOCKS) - len(NOT_RUN) == 6
    assert len(NOT_RUN) == 1
    compile(NOT_RUN[0], "models.md", "exec")


def test_pymc(capsys):
    pytest.importorskip("pymc")
    names = block("pm.Model")
    draws = names["post"].draws
    assert draws["theta"].shape == (4, 500, 8)
    assert np.all(draws["tau"] > 0)
    assert names["data"].posterior["theta"].dims == ("chain", "draw", "school")
    assert "theta" in capsys.readouterr().out


def test_numpyro():
    pytest.importorskip("numpyro")
    names = block("numpyro.plate")
    posterior = names["data"].posterior
    assert posterior["theta"].dims == ("chain", "draw", "school")
    # The posterior mean of μ is 4.4, its deviation 3.3; a wrong sign or scale is farther off.
    assert abs(float(posterior["mu"].mean()) - 4.4) < 1.0


def test_a_function_of_a_vector():
    names = block("a banana")
    mean = np.asarray(names["post"].draws).reshape(-1, 3).mean(0)
    # E x₁ = E x₀² = 1, with deviation √3; more than 5 sigma at 200 effective draws.
    assert np.all(np.abs(mean[1:] - 1) < 0.7)


def test_a_function_of_a_dict():
    names = block("logistic regression")
    draws = names["post"].draws
    assert draws["slopes"].shape == (4, 500, 3) and draws["intercept"].shape == (4, 500)
    assert draws["slopes"][..., 0].mean() > 0.3 > -0.3 > draws["slopes"][..., 1].mean()
    model = schuss.from_pytree(logdensity=names["logdensity"], init=names["init"])
    assert set(model.constrain(np.zeros((1, 1, 4)))) == {"slopes", "intercept"}


def test_a_function_with_its_gradient():
    """Variances of a Gaussian, to 5 sigma at 300 effective draws."""
    draws = block("scales = ")["post"].draws
    assert draws["b"].shape == (4, 500, 2)
    variances = [draws["a"].var(), *draws["b"].var(axis=(0, 1))]
    np.testing.assert_allclose(variances, np.array([0.25, 1.0, 4.0]), rtol=5 * (2 / 300) ** 0.5)


def test_pytorch():
    """The line is 1 + 2x within 5 deviations of either, 0.5/√50; the noise is 0.5."""
    pytest.importorskip("torch")
    draws = block("import torch")["post"].draws
    assert abs(draws["slope"].mean() - 2) < 0.4
    assert abs(draws["intercept"].mean() - 1) < 0.4
    assert abs(np.exp(draws["log_sigma"].mean()) - 0.5) < 0.25
