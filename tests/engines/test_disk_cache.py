"""Compiled steps on disk: the library's own, and never a function of the user's."""

import os
import subprocess
import sys

import pytest

SCRIPT = """
import numpy as np, schuss, jax
post = schuss.sample(logdensity=lambda x: -(x @ x) / 2, init=np.zeros(3), gradients=600,
                     progress=False)
print(repr(post.x.sum()), jax.config.jax_compilation_cache_dir)
"""


def run(folder, **more):
    env = {key: value for key, value in os.environ.items() if "CACHE" not in key}
    env |= {"SCHUSS_CACHE_DIR": str(folder), "PYTHONWARNINGS": "ignore"} | more
    found = subprocess.run([sys.executable, "-c", SCRIPT], env=env, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    return found.stdout


def files(folder):
    return {path.name for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("broken", [False, True], ids=["whole", "broken"])
def test_a_second_process_reads_what_the_first_one_compiled(tmp_path, broken):
    first = run(tmp_path)
    names = {name for name in files(tmp_path) if name.endswith("-cache")}
    assert {name.split("-")[0] for name in names} == {"jit__ahead", "jit__finish_step"}
    if broken:
        for path in tmp_path.rglob("*-cache"):
            path.write_bytes(path.read_bytes()[:100])
    assert run(tmp_path) == first and first.endswith("None\n")
    assert {name for name in files(tmp_path) if name.endswith("-cache")} == names


def test_it_is_switched_off_where_nothing_can_be_written_or_is_wanted(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert run(blocked) == run("")
    assert files(tmp_path) == {"file"}
    own = tmp_path / "own"
    assert run(tmp_path / "not", JAX_COMPILATION_CACHE_DIR=str(own)).endswith(f"{own}\n")
    assert not (tmp_path / "not").exists()
