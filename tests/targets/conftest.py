"""Every registered target, built once."""

import pytest

from schuss.targets import TARGETS, Target, get

BUILT = {name: get(name) for name in TARGETS}


@pytest.fixture(params=list(BUILT), ids=list(BUILT))
def target(request: pytest.FixtureRequest) -> Target:
    return BUILT[request.param]
