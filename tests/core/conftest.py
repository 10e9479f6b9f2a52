"""Precision for tests that differentiate."""

import jax
import pytest


@pytest.fixture
def x64():
    """64-bit JAX for the length of a test."""
    with jax.enable_x64(True):
        yield
