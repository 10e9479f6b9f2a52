"""What holds for all tests."""

import os
import pathlib

# What JAX compiles is kept in the checkout: workers, subprocesses and later runs share it. JAX
# reads these when it is imported. An entry that is read while it is written fails its checksum and
# is compiled again.
os.environ.setdefault(
    "JAX_COMPILATION_CACHE_DIR", str(pathlib.Path(__file__).parents[1] / ".jax_cache")
)
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
