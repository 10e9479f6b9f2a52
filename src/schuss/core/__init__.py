"""The equations, once, for every array library: no loop, no gradient, no randomness."""
