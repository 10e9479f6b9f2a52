"""The recipes of docs/scale.md run, and give what it says."""

import importlib.util
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "multihost.py"
PAGE = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)


def example():
    spec = importlib.util.spec_from_file_location("multihost", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_names_files_that_exist_and_its_one_block_resumes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in re.findall(r"\]\(([^)h][^)]*)\)", PAGE):
        assert (ROOT / "docs" / name).exists(), name
    (code,) = BLOCKS
    stopped = code.replace("< 10", "< 4")
    assert stopped != code
    exec(stopped, {})
    names = {}
    exec(code, names)
    whole = {}
    exec(code.replace("walk.zarr", "other.zarr"), whole)
    assert names["found"][0]["window"] == 4 and whole["found"] is None
    np.testing.assert_array_equal(names["last"], whole["last"])


def test_pooled_moments_are_those_of_all_draws():
    """Chains of different lengths, against the mean and variance of everything put together."""
    rng = np.random.default_rng(0)
    chains = [rng.normal(loc, 2.0, size=(n, 2)) for loc, n in ((0, 5), (1, 20), (3, 7), (-1, 50))]
    together = np.concatenate(chains)
    weight = np.array([len(chain) for chain in chains], float).reshape(2, 2)
    mean = np.array([chain.mean(axis=0) for chain in chains]).reshape(2, 2, 2)
    variance = np.array([chain.var(axis=0) for chain in chains]).reshape(2, 2, 2)
    found = example().pool(weight, mean, variance)
    np.testing.assert_allclose(found[0], together.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(found[1], together.var(axis=0), rtol=1e-12)


@pytest.mark.slow
def test_two_processes_give_the_numbers_of_one_with_the_same_chains(tmp_path):
    """And the mean is right to 5 standard errors (false alarms: 2e-6), the variance to 5 %."""
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        address = f"localhost:{probe.getsockname()[1]}"
    out = tmp_path / "pooled.npz"
    flags = ["--coordinator", address, "--processes", "2", "--save", str(out)]
    processes = [
        subprocess.Popen(
            [sys.executable, str(EXAMPLE), *flags, "--process", str(index)],
            env=os.environ | {"JAX_PLATFORMS": "cpu", "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for index in range(2)
    ]
    try:
        said = [process.communicate(timeout=300) for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [process.returncode for process in processes] == [0, 0], said
    assert "2 processes of 32 chains" in said[0][0] and "variance" not in said[1][0]

    module = example()
    shares = [module.share(index) for index in range(2)]
    assert not np.any(shares[0][1] == shares[1][1])
    mean, variance, error = module.pool(*map(np.stack, zip(*shares, strict=True)))
    found = np.load(out)
    np.testing.assert_allclose(found["mean"], mean, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found["variance"], variance, rtol=1e-12)
    np.testing.assert_allclose(found["error"], error, rtol=1e-9)
    assert np.all(np.abs(mean) < 5 * error)
    # 64 chains of 4000 steps: the variance is known to about half a percent.
    np.testing.assert_allclose(variance, module.SCALES**2, rtol=0.05)
