"""The precision of JAX, which PyTensor changes when it is imported."""

import jax
import pytest


@pytest.fixture(autouse=True, scope="package")
def same_precision():
    """Leave the global switch as it was, for the tests that follow."""
    before = jax.config.jax_enable_x64
    yield
    jax.config.update("jax_enable_x64", before)
