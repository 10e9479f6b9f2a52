"""The versions that results of a test run depend on, on one line."""

import platform
from importlib.metadata import version

NAMES = "JAX NumPy PyMC ArviZ torch NumPyro SciPy zarr xarray BlackJAX diffrax"
print(f"Python {platform.python_version()},", ", ".join(f"{n} {version(n)}" for n in NAMES.split()))
