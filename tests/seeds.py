"""The seeds of statistical tests, moved all at once by a variable of the environment.

`SCHUSS_TEST_SEED=1000 pytest …` makes the same checks with other numbers, and `make test-seeds`
does so for several: how often a check fails there is its error rate.
"""

import os

SHIFT = int(os.environ.get("SCHUSS_TEST_SEED", "0"))


def shifted(seed: int) -> int:
    """This seed, or another one for another run."""
    return seed + SHIFT
